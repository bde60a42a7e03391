/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "fs/fs.h"
#include "fs/fswalk.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOMEBODY = 65534, DEEP = 3000, FEW = 40, NO_NAMESPACES = 199 };

static char top[TAP_DIR_BYTES];
static int top_fd;

/* What a walk met, as "name" for a file, "name(" and ")name" for a directory, "!name" for one that
 * was missed. */
struct met {
	struct buf text;
	unsigned entries;
	int errnum;
	void (*meanwhile)(const struct fswalk_entry *e);
};

static int add(struct met *m, const char *before, const char *text, const char *after)
{
	return buf_printf(&m->text, "%s%s%s ", before, text, after);
}

static int entry(void *user, const struct fswalk_entry *e)
{
	struct met *m = user;

	m->entries++;
	if (m->meanwhile)
		m->meanwhile(e);
	if (e->type == DT_DIR)
		return FSWALK_INTO;
	return add(m, "", e->path, "");
}

static int entered(void *user, const struct fswalk_entry *e, int fd, const struct stat *st)
{
	return S_ISDIR(st->st_mode) && fd >= 0 ? add(user, "", e->path, "(") : -EINVAL;
}

static int left(void *user, const struct fswalk_entry *e)
{
	struct stat st;

	/* It is still in the directory that it was in. */
	return fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)
		       ? add(user, ")", e->path, "")
		       : -EINVAL;
}

static int missed(void *user, const struct fswalk_entry *e, int errnum)
{
	((struct met *)user)->errnum = errnum;
	return add(user, "!", e->path, "");
}

static struct fswalk_how telling(struct met *m)
{
	*m = (struct met){.text = BUF_INIT(1 << 20)};
	return (struct fswalk_how){.sorted = true,
		.user = m,
		.entry = entry,
		.entered = entered,
		.left = left,
		.missed = missed};
}

static void make_file(const char *path)
{
	int fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	must(fd >= 0);
	close(fd);
}

/* Make so many directories "d" below each other, each with a "leaf" and a directory "z". */
static void make_levels(const char *name, int levels)
{
	int at = dup(top_fd), next;

	for (int i = 0; i < levels; i++) {
		const char *own = i ? "d" : name;

		must(mkdirat(at, own, 0700) == 0);
		next = openat(at, own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(next >= 0 && symlinkat("nowhere", next, "leaf") == 0 &&
			mkdirat(next, "z", 0700) == 0);
		close(at);
		at = next;
	}
	close(at);
}

static void met_in_order(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	must(mkdirat(top_fd, "t", 0700) == 0 && mkdirat(top_fd, "t/b", 0700) == 0 &&
		mkdirat(top_fd, "t/b/e", 0700) == 0 && symlinkat("b", top_fd, "t/a") == 0);
	make_file("t/b/f");
	make_file("t/c");
	check_int(fswalk(top_fd, "t", &how), 0);
	check_str(buf_str(&m.text), "a b( b/e( )b/e b/f )b c ");
	check_int(m.entries, 5);
	buf_done(&m.text);
	how = telling(&m);
	how.sorted = false;
	check_int(fswalk(top_fd, "t", &how), 0);
	check_int(m.entries, 5);
	buf_done(&m.text);
	how = telling(&m);
	check_int(fswalk(top_fd, "t/c", &how), -ENOTDIR);
	check_int(fswalk(top_fd, "t/a", &how), -ENOTDIR);
	check_int(fswalk(top_fd, "t/none", &how), -ENOENT);
	check_int(fs_remove_tree(top_fd, "t"), 0);
}

static int count(void *user, const struct fswalk_entry *e)
{
	++*(unsigned *)user;
	return e->type == DT_DIR ? FSWALK_INTO : 0;
}

static int end_at_link(void *user, const struct fswalk_entry *e)
{
	if (e->type == DT_DIR)
		return FSWALK_INTO;
	return ++*(unsigned *)user == 100 ? 17 : 0;
}

static void any_depth_with_few_descriptors(void)
{
	struct rlimit before, few;
	unsigned n = 0;
	struct fswalk_how how = {.user = &n, .entry = count};

	make_levels("deep", DEEP);
	must(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){FEW, before.rlim_max};
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	check_int(fswalk(top_fd, "deep", &how), 0);
	check_int(n, 3 * DEEP - 1);
	n = 0;
	how.sorted = true;
	check_int(fswalk(top_fd, "deep", &how), 0);
	check_int(n, 3 * DEEP - 1);
	n = 0;
	how.entry = end_at_link;
	check_int(fswalk(top_fd, "deep", &how), 17);
	check_int(fs_remove_tree(top_fd, "deep"), 0);
	must(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* --- a tree that moves: to where a walk that trusts ".." would meet a secret. This lies so deep
 * that such a walk would not leave the test's directory --- */

#define PLACE "o/o/o/o/o/o"
enum { PLACE_DEPTH = 6, MOVED_DEPTH = 3 };

static void make_place(void)
{
	char path[] = PLACE;

	for (size_t n = 1; n <= strlen(PLACE); n += 2) {
		char end = path[n];

		path[n] = '\0';
		must(mkdirat(top_fd, path, 0700) == 0);
		path[n] = end;
	}
	_Static_assert(MOVED_DEPTH < PLACE_DEPTH, "a walk that goes astray leaves the test");
	make_file(PLACE "/secret");
}

static void check_place(void)
{
	check_int(faccessat(top_fd, PLACE "/secret", F_OK, 0), 0);
	check_int(fs_remove_tree(top_fd, "o"), 0);
}

static void move_away(void)
{
	must(renameat(top_fd, "deep/d/d/d", top_fd, PLACE "/d") == 0);
}

/* The directories above it are closed by then. */
static void move_when_deep(const struct fswalk_entry *e)
{
	int depth = 0;

	for (const char *p = e->path; (p = strchr(p, '/')); p++)
		depth++;
	if (depth == 3 * FSWALK_OPEN && strcmp(e->name, "d") == 0)
		move_away();
	check(strcmp(e->name, "secret") != 0);
}

static void a_tree_that_is_moved_leads_nowhere(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	make_levels("deep", 4 * FSWALK_OPEN);
	make_place();
	m.meanwhile = move_when_deep;
	how.missed = NULL;
	check_int(fswalk(top_fd, "deep", &how), -ESTALE);
	buf_done(&m.text);
	check_place();
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

/* The walk goes on above what was moved, and says what it has not met. */
static void what_is_moved_is_told(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	make_levels("deep", 4 * FSWALK_OPEN);
	make_place();
	m.meanwhile = move_when_deep;
	check_int(fswalk(top_fd, "deep", &how), 0);
	check_int(m.errnum, ESTALE);
	check(str_ends(buf_str(&m.text),
		STR(" !d/d/d d/d/leaf d/d/z( )d/d/z )d/d d/leaf d/z( )d/z )d leaf z( )z ")));
	buf_done(&m.text);
	check_place();
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

static int move_at(void *user)
{
	if (++*(int *)user == 9 * FSWALK_OPEN)
		move_away();
	return 0;
}

/* It is removed as far as it is there; nothing is removed where it went. */
static void removal_of_a_tree_that_is_moved(void)
{
	int beats = 0;
	const struct fs_removal how = {.force = true, .beat = move_at, .user = &beats};

	make_levels("deep", 4 * FSWALK_OPEN);
	make_place();
	check_int(fs_remove(top_fd, "deep", &how), 0);
	check(beats > 9 * FSWALK_OPEN);
	check_int(faccessat(top_fd, "deep", F_OK, 0), -1);
	check_place();
}

/* Each directory becomes a link, or goes, before it is opened. */
static void exchange(const struct fswalk_entry *e)
{
	if (strcmp(e->path, "b") == 0)
		must(renameat(e->dir, "b", e->dir, "was") == 0 &&
			symlinkat("../" PLACE, e->dir, "b") == 0);
	else if (strcmp(e->path, "c") == 0)
		must(unlinkat(e->dir, "c", AT_REMOVEDIR) == 0);
	check(strcmp(e->name, "secret") != 0);
}

static void what_is_exchanged_is_not_followed(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	make_place();
	must(mkdirat(top_fd, "t", 0700) == 0 && mkdirat(top_fd, "t/b", 0700) == 0 &&
		mkdirat(top_fd, "t/c", 0700) == 0);
	m.meanwhile = exchange;
	check_int(fswalk(top_fd, "t", &how), 0);
	check_str(buf_str(&m.text), "!b !c ");
	buf_done(&m.text);
	check_int(fs_remove_tree(top_fd, "t"), 0);
	check_place();
}

/* Somebody exchanges a directory and a link all the time. */
static void what_is_exchanged_all_the_time(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);
	pid_t pid;

	how.left = NULL;
	make_place();
	must(mkdirat(top_fd, "t", 0700) == 0 && mkdirat(top_fd, "t/a", 0700) == 0 &&
		mkdirat(top_fd, "t/a/a", 0700) == 0 && mkdirat(top_fd, "t/a/a/in", 0700) == 0 &&
		symlinkat("../../" PLACE, top_fd, "t/a/link") == 0);
	pid = tap_exchange(top_fd, "t/a/a", "t/a/link");
	for (int i = 0; i < 2000; i++) {
		check_int(fswalk(top_fd, "t", &how), 0);
		check(str_find(buf_str(&m.text), STR("secret")) == buf_len(&m.text));
		buf_clear(&m.text);
	}
	tap_exchange_end(pid);
	buf_done(&m.text);
	check_int(fs_remove_tree(top_fd, "t"), 0);
	check_place();
}

/* In a process of its own; if we are root, as_somebody is as one whom modes hold up. */
static void run_apart(int (*fn)(void), bool as_somebody)
{
	bool become = as_somebody && geteuid() == 0;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		_exit(become && setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ? 1 : fn());
	must(waitpid(pid, &status, 0) == pid);
	if (status == NO_NAMESPACES << 8)
		tap_skip("no user namespaces");
	else
		check_int(status, 0);
}

/* The filter of most rooms refuses openat2(): the walk does without, and answers the same. */
static int without_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog filter = {ARRAY_SIZE(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		return 2;
	any_depth_with_few_descriptors();
	a_tree_that_is_moved_leads_nowhere();
	what_is_moved_is_told();
	removal_of_a_tree_that_is_moved();
	what_is_exchanged_is_not_followed();
	return tap_ok_now ? 0 : 3;
}

static void where_openat2_is_refused(void)
{
	run_apart(without_openat2, false);
}

/* --- names --- */

static void any_name(void)
{
	enum { LONG = 255 };
	char name[LONG + 1], inside[2 * LONG + 2];
	unsigned n = 0;
	struct fswalk_how how = {.user = &n, .entry = count};

	memset(name, '\n', LONG);
	name[LONG] = '\0';
	snprintf(inside, sizeof(inside), "%s/%s", name, name);
	must(mkdirat(top_fd, name, 0700) == 0 && mkdirat(top_fd, inside, 0700) == 0);
	inside[LONG + 1] = '\1';
	make_file(inside);
	must(linkat(top_fd, inside, top_fd, "linked", 0) == 0);
	check_int(fswalk(top_fd, "", &how), 0);
	check_int(n, 4);
	check_int(fs_remove_tree(top_fd, name), 0);
	/* It lost one of its names. */
	check_int(faccessat(top_fd, "linked", F_OK, 0), 0);
	check_int(fs_remove_tree(top_fd, "linked"), 0);
}

static void many_entries(void)
{
	enum { MANY = 20000, NAMES = 1000 }; /* NAMES of a file: there is a limit */
	unsigned n = 0;
	struct fswalk_how how = {.user = &n, .entry = count};
	char name[32], first[32];

	must(mkdirat(top_fd, "t", 0700) == 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "t/%d", i);
		snprintf(first, sizeof(first), "t/%d", i - i % NAMES);
		if (i % NAMES == 0)
			make_file(name);
		else
			must(linkat(top_fd, first, top_fd, name, 0) == 0);
	}
	check_int(fswalk(top_fd, "t", &how), 0);
	check_int(n, MANY);
	how.sorted = true;
	check_int(fswalk(top_fd, "t", &how), 0);
	check_int(n, 2 * MANY);
	check_int(fs_remove_tree(top_fd, "t"), 0);
}

static void bounded_levels(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	make_levels("deep", 3);
	how.levels = 2;
	check_int(fswalk(top_fd, "deep", &how), 0);
	check_str(buf_str(&m.text), "d( !d/d d/leaf !d/z )d leaf z( )z ");
	check_int(m.errnum, ENAMETOOLONG);
	how.missed = NULL;
	check_int(fswalk(top_fd, "deep", &how), -ENAMETOOLONG);
	buf_done(&m.text);
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

static void bounded_names(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	make_levels("deep", 2);
	how.names = 4;
	/* "d", "leaf" and "z", and one in "d". */
	check_int(fswalk(top_fd, "deep", &how), 0);
	check_int(m.errnum, E2BIG);
	check_int(m.entries, 4);
	buf_clear(&m.text);
	how.names = 2;
	check_int(fswalk(top_fd, "deep", &how), -E2BIG);
	how.sorted = false;
	check_int(fswalk(top_fd, "deep", &how), -E2BIG);
	buf_done(&m.text);
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

/* The names in "d" are known. */
static const char *const known_names[] = {"none", "leaf", NULL};
static size_t known_at;

static bool knows(void *user, size_t depth, const struct stat *st)
{
	return S_ISDIR(st->st_mode) && depth == 1;
}

static const char *next_known(void *user, size_t depth)
{
	errno = EINVAL; /* it counts for nothing */
	return depth == 1 ? known_names[known_at++] : NULL;
}

static void names_that_are_known(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	make_levels("deep", 2);
	must(unlinkat(top_fd, "deep/z", AT_REMOVEDIR) == 0);
	how.knows = knows;
	how.next = next_known;
	known_at = 0;
	check_int(fswalk(top_fd, "deep", &how), 0);
	check_str(buf_str(&m.text), "d( d/leaf )d leaf ");
	buf_clear(&m.text);
	how.untyped = true;
	known_at = 0;
	check_int(fswalk(top_fd, "deep", &how), 0);
	/* It is the caller who looks. */
	check_str(buf_str(&m.text), "d leaf ");
	buf_done(&m.text);
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

/* --- closed directories --- */

static int mode_of(const char *path)
{
	struct stat st;

	return fstatat(top_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (int)(st.st_mode & 07777)
								    : -1;
}

static int closed(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	if (mkdirat(top_fd, "free/t", 0700) < 0 || mkdirat(top_fd, "free/t/a", 0700) < 0 ||
		mkdirat(top_fd, "free/t/a/in", 0700) < 0 || mkdirat(top_fd, "free/t/b", 0700) < 0 ||
		mkdirat(top_fd, "free/t/b/in", 0400) < 0 || fchmodat(top_fd, "free/t/a", 0, 0) < 0)
		return 2;
	if (fswalk(top_fd, "free/t", &how) != 0 || m.errnum != EACCES ||
		!str_eq(buf_str(&m.text), STR("!a b( b/in( )b/in )b ")))
		return 3;
	buf_clear(&m.text);
	how.need = 0500;
	how.restore = true;
	if (fswalk(top_fd, "free/t", &how) != 0 ||
		!str_eq(buf_str(&m.text), STR("a( a/in( )a/in )a b( b/in( )b/in )b ")))
		return 4;
	if (mode_of("free/t/a") != 0 || mode_of("free/t/b/in") != 0400)
		return 5;
	how.restore = false;
	if (fswalk(top_fd, "free/t", &how) != 0 || mode_of("free/t/a") != 0500)
		return 6;
	buf_done(&m.text);
	return 0;
}

/* One that can be read but not searched is entered, and left again, however deep it is. */
static int closed_deep(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);
	char path[PATH_MAX] = "free";

	for (int i = 0; i < 2 * FSWALK_OPEN; i++) {
		memcpy(path + strlen(path), "/d", sizeof("/d"));
		if (mkdirat(top_fd, path, 0700) < 0)
			return 2;
	}
	memcpy(path + strlen(path), "/a", sizeof("/a"));
	if (mkdirat(top_fd, path, 0400) < 0)
		return 3;
	path[strlen(path) - 1] = 'z';
	if (mkdirat(top_fd, path, 0700) < 0 || fswalk(top_fd, "free/d", &how) != 0)
		return 4;
	if (m.errnum != 0 || str_find(buf_str(&m.text), STR("/a( ")) == buf_len(&m.text) ||
		str_find(buf_str(&m.text), STR("/z( ")) == buf_len(&m.text))
		return 5;
	buf_done(&m.text);
	return 0;
}

/* However the walk ends, a mode is given back: of "deep/d", which is far above by then. */
static void check_given_back(int (*entry_fn)(void *user, const struct fswalk_entry *e), int want)
{
	unsigned n = 0;
	const struct fswalk_how how = {
		.need = 0500, .restore = true, .user = &n, .entry = entry_fn};
	int r;

	must(fchmodat(top_fd, "deep/d", 0300, 0) == 0);
	r = fswalk(top_fd, "deep", &how);
	check(r == (torture_failed ? -ENOMEM : want));
	check_int(mode_of("deep/d"), 0300);
	must(fchmodat(top_fd, "deep/d", 0700, 0) == 0);
}

static int end_when_deep(void *user, const struct fswalk_entry *e)
{
	if (e->depth == 3 * FSWALK_OPEN)
		return 17;
	return e->type == DT_DIR ? FSWALK_INTO : 0;
}

static void walk_closed(void)
{
	check_given_back(count, 0);
}

static void modes_are_given_back(void)
{
	make_levels("deep", 4 * FSWALK_OPEN);
	check_given_back(count, 0);
	check_given_back(end_when_deep, 17);
	torture(walk_closed);
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

static void closed_directories(void)
{
	must(fchmod(top_fd, 0711) == 0 && mkdirat(top_fd, "free", 0700) == 0);
	must(geteuid() != 0 || fchownat(top_fd, "free", SOMEBODY, SOMEBODY, 0) == 0);
	run_apart(closed, true);
	check_int(fs_remove_tree(top_fd, "free/t"), 0);
	run_apart(closed_deep, true);
	check_int(fs_remove_tree(top_fd, "free"), 0);
}

/* --- mounts --- */

/* Have namespaces of our own, and open the directory of the test there. */
static bool enter_namespaces(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	close(top_fd);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top_fd >= 0 && fchdir(top_fd) == 0;
}

static int mounted(void)
{
	struct met m;
	struct fswalk_how how = telling(&m);

	if (!enter_namespaces() || mount("none", "t/b", "tmpfs", 0, "") < 0)
		return NO_NAMESPACES;
	/* What is mounted is empty. */
	if (fswalk(top_fd, "t", &how) != 0 || !str_eq(buf_str(&m.text), STR("a b( )b ")))
		return 2;
	buf_clear(&m.text);
	how.stay = FSWALK_ON_DEVICE;
	if (fswalk(top_fd, "t", &how) != 0 || m.errnum != EXDEV ||
		!str_eq(buf_str(&m.text), STR("a !b ")))
		return 3;
	buf_clear(&m.text);
	how.missed = NULL;
	if (fswalk(top_fd, "t", &how) != 0 || !str_eq(buf_str(&m.text), STR("a ")))
		return 4;
	buf_done(&m.text);
	return 0;
}

/* What is mounted in a tree is not removed with it. */
static int removed_around_a_mount(void)
{
	_cleanup_(buf_donep) struct buf where = BUF_INIT(PATH_MAX);
	struct fs_removal how = {.where = &where};

	if (!enter_namespaces() || mount("none", "t/b", "tmpfs", 0, "") < 0)
		return NO_NAMESPACES;
	if (fs_remove(top_fd, "t", &how) != -EBUSY || !str_eq(buf_str(&where), STR("b")))
		return 2;
	how = (struct fs_removal){.force = true};
	if (fs_remove(top_fd, "t", &how) != -EBUSY)
		return 3;
	/* The same file system, by another mount. */
	if (umount2("t/b", 0) < 0 || mount("other", "t/b", NULL, MS_BIND, NULL) < 0)
		return 4;
	if (fs_remove(top_fd, "t", &how) != -EBUSY || faccessat(top_fd, "other/in", F_OK, 0) < 0)
		return 5;
	return 0;
}

static void removal_keeps_mounts(void)
{
	must(mkdirat(top_fd, "t", 0700) == 0 && mkdirat(top_fd, "t/b", 0700) == 0 &&
		mkdirat(top_fd, "other", 0700) == 0);
	make_file("other/in");
	run_apart(removed_around_a_mount, false);
	check_int(fs_remove_tree(top_fd, "t"), 0);
	check_int(fs_remove_tree(top_fd, "other"), 0);
}

static void a_mount_inside(void)
{
	must(mkdirat(top_fd, "t", 0700) == 0 && mkdirat(top_fd, "t/b", 0700) == 0);
	make_file("t/a");
	make_file("t/b/under");
	run_apart(mounted, false);
	check_int(fs_remove_tree(top_fd, "t"), 0);
}

/* --- lack of memory --- */

static void walk_deep(void)
{
	unsigned n = 0;
	struct fswalk_how how = {.sorted = true, .user = &n, .entry = count};
	int r = fswalk(top_fd, "deep", &how);

	check(r == (torture_failed ? -ENOMEM : 0));
}

static void survives_lack_of_memory(void)
{
	make_levels("deep", 2 * FSWALK_OPEN);
	torture(walk_deep);
	check_int(fs_remove_tree(top_fd, "deep"), 0);
}

int main(void)
{
	tap_fast_dir(top);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0);
	run_test(met_in_order);
	run_test(any_depth_with_few_descriptors);
	run_test(a_tree_that_is_moved_leads_nowhere);
	run_test(what_is_moved_is_told);
	run_test(removal_of_a_tree_that_is_moved);
	run_test(what_is_exchanged_is_not_followed);
	run_test(what_is_exchanged_all_the_time);
	run_test(where_openat2_is_refused);
	run_test(any_name);
	run_test(many_entries);
	run_test(bounded_levels);
	run_test(bounded_names);
	run_test(names_that_are_known);
	run_test(closed_directories);
	run_test(modes_are_given_back);
	run_test(a_mount_inside);
	run_test(removal_keeps_mounts);
	run_test(survives_lack_of_memory);
	close(top_fd);
	check_int(fs_remove_tree(AT_FDCWD, top), 0);
	return tap_done();
}
