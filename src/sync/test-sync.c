/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and pulls with a real worker, whose root is another directory. */
#include "base/fd.h"
#include "fileworker/serve.h"
#include "fs/fs.h"
#include "sync/sync.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static int here = -1, there = -1;
static struct sync_state state;
static struct sync_report report;
static struct sync_options options;
static struct cloche_err err;
static char told[64][200];
static unsigned told_n;

static void tell(void *user, enum sync_event event, const char *path, const char *other)
{
	if (told_n < ARRAY_SIZE(told))
		snprintf(told[told_n++], sizeof(told[0]), "%s %s%s%s", sync_event_name(event), path,
			other ? " " : "", other ? other : "");
}

static bool was_told(const char *text)
{
	for (unsigned i = 0; i < told_n; i++)
		if (strcmp(told[i], text) == 0)
			return true;
	return false;
}

/* --- the two trees --- */

static void put(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	close(fd);
}

static void make(int dir, const char *path)
{
	must(mkdirat(dir, path, 0755) == 0);
}

static void drop(int dir, const char *path)
{
	must(fs_remove_tree(dir, path) == 0);
}

static void check_text(int dir, const char *path, const char *want)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);

	if (fd_read_file(dir, path, &b, &err) < 0)
		tap_fail("%s: %s", path, err.message);
	else
		check_str(buf_str(&b), want);
}

static bool is_there(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static mode_t mode_of(int dir, const char *path)
{
	struct stat st = {0};

	check(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st.st_mode;
}

static void check_link(int dir, const char *path, const char *want)
{
	char target[100];
	ssize_t n = readlinkat(dir, path, target, sizeof(target));

	check_str(str_make(target, n > 0 ? (size_t)n : 0), want);
}

static void begin(void)
{
	char path[TAP_DIR_BYTES + 16];

	sync_state_done(&state);
	options = (struct sync_options){.id = "s1"};
	fd_close(here);
	fd_close(there);
	(void)fs_remove_tree(AT_FDCWD, top);
	must(mkdir(top, 0700) == 0);
	snprintf(path, sizeof(path), "%s/here", top);
	must(mkdir(path, 0755) == 0);
	here = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/there", top);
	must(mkdir(path, 0755) == 0);
	there = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(here >= 0 && there >= 0);
}

/* --- a push or pull --- */

static int work(bool push)
{
	int fds[2], status = -1, r;
	cloche_files *f = NULL;
	pid_t worker;

	err_clear(&err);
	told_n = 0;
	report = (struct sync_report){.tell = tell};
	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	fflush(stdout);
	worker = fork();
	must(worker >= 0);
	if (worker == 0) {
		fd_close(fds[0]);
		_exit(files_serve(fds[1], there, "", NULL, 0) < 0);
	}
	close(fds[1]);
	must(files_session_new(fds[0], &f, &err) == 0);
	r = (push ? sync_push : sync_pull)(f, here, &options, &state, &report, &err);
	cloche_files_close(f);
	must(waitpid(worker, &status, 0) == worker);
	check_int(status, 0);
	return r;
}

static void push(void)
{
	if (work(true) != 0)
		tap_fail("push: %s", err.message);
}

static void pull(void)
{
	if (work(false) != 0)
		tap_fail("pull: %s", err.message);
}

/* Through the file, as another process would have it. */
static void keep_state(void)
{
	char path[TAP_DIR_BYTES];
	int fd = tap_file(path);

	must(sync_state_write(fd, &state, &err) == 0);
	sync_state_done(&state);
	must(sync_state_read(fd, &state, &err) == 0);
	close(fd);
	unlink(path);
}

/* Nothing is left to be done. */
static void check_quiet(void)
{
	keep_state();
	pull();
	check_int((long long)(report.entries + report.removed), 0);
	check_int((int)told_n, 0);
	push();
	check_int((long long)(report.entries + report.removed), 0);
	check_int((int)told_n, 0);
}

/* --- tests --- */

static void all_goes_there(void)
{
	begin();
	make(here, "dir");
	make(here, "dir/empty");
	put(here, "dir/file", "hello");
	put(here, "\xff\xfe\n", "bytes");
	put(here, "empty", "");
	must(symlinkat("/etc/passwd", here, "link") == 0);
	must(linkat(here, "dir/file", here, "hard", 0) == 0);
	must(fchmodat(here, "dir/file", 04755, 0) == 0);
	must(mkfifoat(here, "fifo", 0600) == 0);
	make(here, "closed");
	put(here, "closed/file", "in");
	must(fchmodat(here, "closed", 0555, 0) == 0);
	push();
	check_text(there, "dir/file", "hello");
	check_text(there, "hard", "hello");
	check_text(there, "\xff\xfe\n", "bytes");
	check_text(there, "empty", "");
	check_text(there, "closed/file", "in");
	check_link(there, "link", "/etc/passwd");
	check(S_ISDIR(mode_of(there, "dir/empty")));
	check_int(mode_of(there, "dir/file"), S_IFREG | 0755);
	check_int(mode_of(there, "closed"), S_IFDIR | 0555);
	check(!is_there(there, "fifo"));
	check(was_told("special fifo"));
	check_int((int)told_n, 1);
	must(unlinkat(here, "fifo", 0) == 0);
	check_quiet();
}

static void only_what_differs_goes(void)
{
	begin();
	make(here, "a");
	make(here, "a/b");
	put(here, "a/b/one", "1");
	put(here, "two", "2");
	put(here, "three", "3");
	push();
	keep_state();
	put(here, "two", "22");
	drop(here, "a/b");
	put(here, "a/new", "n");
	must(fchmodat(here, "three", 0600, 0) == 0);
	push();
	check_int((int)report.entries, 3);
	check_int((int)report.removed, 2);
	check_text(there, "two", "22");
	check_text(there, "a/new", "n");
	check(!is_there(there, "a/b"));
	check_int(mode_of(there, "three"), S_IFREG | 0600);
	check_quiet();
	/* One that was only touched is not sent. */
	must(utimensat(here, "three", NULL, 0) == 0);
	push();
	check_int((int)report.entries, 0);
}

static void what_changed_there_comes_back(void)
{
	begin();
	make(here, "a");
	put(here, "a/one", "1");
	put(here, "a/two", "2");
	put(here, "kept", "k");
	must(symlinkat("old", here, "link") == 0);
	push();
	keep_state();
	put(there, "a/one", "one, longer");
	drop(there, "a/two");
	make(there, "new");
	put(there, "new/file", "from there");
	must(fchmodat(there, "new/file", 06711, 0) == 0);
	must(fchmodat(there, "kept", 0700, 0) == 0);
	must(unlinkat(there, "link", 0) == 0 && symlinkat("new target", there, "link") == 0);
	must(linkat(there, "new/file", there, "hard", 0) == 0);
	must(mkfifoat(there, "fifo", 0600) == 0);
	make(there, "empty");
	pull();
	check_text(here, "a/one", "one, longer");
	check(!is_there(here, "a/two"));
	check_text(here, "new/file", "from there");
	check_text(here, "hard", "from there");
	check_int(mode_of(here, "new/file"), S_IFREG | 0711);
	check_int(mode_of(here, "kept"), S_IFREG | 0700);
	check_link(here, "link", "new target");
	check(S_ISDIR(mode_of(here, "empty")));
	check(!is_there(here, "fifo"));
	check(was_told("special fifo"));
	must(unlinkat(there, "fifo", 0) == 0);
	keep_state();
	pull();
	check_int((long long)(report.entries + report.removed), 0);
	push();
	check_int((long long)(report.entries + report.removed), 0);
}

static void both_changed(void)
{
	begin();
	put(here, "both", "old");
	put(here, "alike", "old");
	put(here, "gone-there", "old");
	put(here, "gone-here", "old");
	put(here, "touched", "old");
	push();
	keep_state();
	put(here, "both", "mine");
	put(there, "both", "the room's");
	put(here, "both.from-s1", "was here");
	put(here, "alike", "the same");
	put(there, "alike", "the same");
	put(here, "new", "mine");
	put(there, "new", "the room's");
	drop(here, "gone-here");
	put(there, "gone-here", "the room's");
	put(here, "touched", "mine");
	must(utimensat(there, "touched", NULL, 0) == 0);
	/* A push alone does nothing about them. */
	push();
	check_text(there, "both", "the room's");
	check_text(there, "new", "the room's");
	check_text(there, "gone-here", "the room's");
	check(was_told("left both") && was_told("left new") && was_told("left gone-here"));
	put(here, "gone-there", "mine");
	drop(there, "gone-there");
	pull();
	check_text(here, "both", "mine");
	check_text(here, "both.from-s1", "was here");
	check_text(here, "both.from-s1.2", "the room's");
	check_text(here, "alike", "the same");
	check(!is_there(here, "alike.from-s1"));
	check_text(here, "new", "mine");
	check_text(here, "new.from-s1", "the room's");
	check_text(here, "gone-there", "mine");
	check_text(here, "gone-here", "the room's");
	check_text(here, "touched", "mine");
	check(!is_there(here, "touched.from-s1"));
	check(was_told("kept-both both both.from-s1.2"));
	check(was_told("kept-both new new.from-s1"));
	check(was_told("restored gone-here"));
	/* The person's goes there, and both sides are alike. */
	keep_state();
	push();
	check_text(there, "both", "mine");
	check_text(there, "both.from-s1.2", "the room's");
	check_text(there, "new", "mine");
	check_text(there, "touched", "mine");
	check_text(there, "gone-there", "mine");
	keep_state();
	pull();
	check_int((long long)report.entries, 0);
	check_int((int)told_n, 0);
}

static void deleted_there_and_changed_here(void)
{
	begin();
	make(here, "d");
	put(here, "d/changed", "old");
	put(here, "d/same", "old");
	push();
	put(here, "d/changed", "mine");
	put(here, "d/new", "mine, too");
	drop(there, "d");
	put(there, "other", "o");
	keep_state();
	pull();
	check_text(here, "d/changed", "mine");
	check_text(here, "d/new", "mine, too");
	check(!is_there(here, "d/same"));
	check(was_told("kept d/changed"));
	push();
	check_text(there, "d/changed", "mine");
	check_text(there, "d/new", "mine, too");
	check_quiet();
}

/* The same without a pull: the person's goes there again, with its directories. */
static void a_push_to_directories_that_were_deleted(void)
{
	begin();
	make(here, "d");
	make(here, "d/e");
	put(here, "d/e/changed", "old");
	put(here, "d/same", "old");
	push();
	put(here, "d/e/changed", "mine");
	put(here, "d/e/new", "mine, too");
	drop(there, "d");
	push();
	check_text(there, "d/e/changed", "mine");
	check_text(there, "d/e/new", "mine, too");
	check_int(mode_of(there, "d"), S_IFDIR | 0755);
	check(!is_there(there, "d/same") && is_there(here, "d/same"));
	check_int((int)told_n, 0);
	pull();
	check(!is_there(here, "d/same"));
	check_quiet();
}

static void directories_and_files_change_places(void)
{
	begin();
	make(here, "dir");
	make(here, "dir/sub");
	put(here, "dir/sub/a", "a");
	put(here, "file", "f");
	make(here, "dir2");
	put(here, "dir2/a", "a");
	put(here, "file2", "f");
	must(symlinkat("x", here, "link2") == 0);
	push();
	drop(there, "dir");
	put(there, "dir", "now a file");
	drop(there, "file");
	make(there, "file");
	put(there, "file/a", "in it");
	pull();
	check_text(here, "dir", "now a file");
	check_text(here, "file/a", "in it");
	check_int((int)told_n, 0);
	keep_state();
	drop(here, "dir2");
	put(here, "dir2", "now a file");
	drop(here, "file2");
	make(here, "file2");
	put(here, "file2/a", "in it");
	drop(here, "link2");
	make(here, "link2");
	push();
	check_text(there, "dir2", "now a file");
	check_text(there, "file2/a", "in it");
	check(S_ISDIR(mode_of(there, "link2")));
	check_int((int)told_n, 0);
}

static void directories_and_files_in_each_others_way(void)
{
	begin();
	make(here, "dir");
	put(here, "dir/a", "a");
	put(here, "file", "f");
	put(here, "victim", "v");
	push();
	/* There a file takes the place of a directory with something new. */
	put(here, "dir/mine", "mine");
	drop(there, "dir");
	put(there, "dir", "the room's");
	/* There a directory takes the place of a file that changed here. */
	put(here, "file", "mine");
	drop(there, "file");
	make(there, "file");
	put(there, "file/a", "the room's");
	/* Here a link takes the place of a file, there a directory: nothing goes through it. */
	drop(here, "victim");
	must(symlinkat("/tmp", here, "victim") == 0);
	drop(there, "victim");
	make(there, "victim");
	put(there, "victim/planted-by-cloche-test", "x");
	pull();
	check_text(here, "dir/mine", "mine");
	check_text(here, "dir.from-s1", "the room's");
	check_text(here, "file", "mine");
	check_text(here, "file.from-s1/a", "the room's");
	check_link(here, "victim", "/tmp");
	check_text(here, "victim.from-s1/planted-by-cloche-test", "x");
	check(!is_there(AT_FDCWD, "/tmp/planted-by-cloche-test"));
	keep_state();
	push();
	check_text(there, "dir/mine", "mine");
	check_text(there, "dir.from-s1", "the room's");
	check_text(there, "file", "mine");
	check_text(there, "file.from-s1/a", "the room's");
	check_link(there, "victim", "/tmp");
	check_quiet();
}

/* A push leaves what changed there, and what would lie in it. */
static void a_push_meets_a_file_where_it_has_a_directory(void)
{
	begin();
	put(here, "a", "a");
	push();
	make(here, "new");
	put(here, "new/file", "mine");
	put(there, "new", "the room's");
	push();
	check(was_told("left new") && was_told("left new/file"));
	check_text(there, "new", "the room's");
	pull();
	check_text(here, "new/file", "mine");
	check_text(here, "new.from-s1", "the room's");
	push();
	check_text(there, "new/file", "mine");
	check_quiet();
}

static void read_only_directories(void)
{
	begin();
	make(here, "ro");
	put(here, "ro/a", "a");
	put(here, "ro/b", "b");
	must(fchmodat(here, "ro", 0555, 0) == 0);
	push();
	must(fchmodat(there, "ro", 0755, 0) == 0);
	put(there, "ro/a", "changed");
	put(there, "ro/c", "new");
	drop(there, "ro/b");
	must(fchmodat(there, "ro", 0555, 0) == 0);
	pull();
	check_text(here, "ro/a", "changed");
	check_text(here, "ro/c", "new");
	check(!is_there(here, "ro/b"));
	check_int(mode_of(here, "ro"), S_IFDIR | 0555);
	/* Its mode changes, too. */
	must(fchmodat(there, "ro", 0755, 0) == 0);
	put(there, "ro/d", "new");
	must(fchmodat(there, "ro", 0500, 0) == 0);
	pull();
	check_text(here, "ro/d", "new");
	check_int(mode_of(here, "ro"), S_IFDIR | 0500);
	must(fchmodat(here, "ro", 0755, 0) == 0);
	put(here, "ro/a", "changed here");
	drop(here, "ro/c");
	must(fchmodat(here, "ro", 0555, 0) == 0);
	push();
	check_text(there, "ro/a", "changed here");
	check(!is_there(there, "ro/c"));
	check_int(mode_of(there, "ro"), S_IFDIR | 0555);
	must(fchmodat(here, "ro", 0755, 0) == 0 && fchmodat(there, "ro", 0755, 0) == 0);
}

static void many_files(void)
{
	enum { DIRS = 30, FILES = 100 };
	char path[64];

	begin();
	for (int d = 0; d < DIRS; d++) {
		snprintf(path, sizeof(path), "d%d", d);
		make(here, path);
		for (int i = 0; i < FILES; i++) {
			snprintf(path, sizeof(path), "d%d/f%d", d, i);
			put(here, path, path);
		}
	}
	push();
	check_int((int)report.entries, DIRS * (FILES + 1));
	check_text(there, "d29/f99", "d29/f99");
	keep_state();
	/* All of them in a new directory: they come as an archive. */
	make(there, "copy");
	for (int d = 0; d < DIRS; d++) {
		snprintf(path, sizeof(path), "copy/d%d", d);
		make(there, path);
		for (int i = 0; i < FILES; i++) {
			snprintf(path, sizeof(path), "copy/d%d/f%d", d, i);
			put(there, path, path);
		}
	}
	must(linkat(there, "copy/d0/f0", there, "copy/hard", 0) == 0);
	must(symlinkat("d0", there, "copy/link") == 0);
	pull();
	check_text(here, "copy/d29/f99", "copy/d29/f99");
	check_text(here, "copy/hard", "copy/d0/f0");
	check_link(here, "copy/link", "d0");
	check_int((int)report.entries, DIRS * (FILES + 1) + 3);
	keep_state();
	drop(there, "copy");
	pull();
	check(!is_there(here, "copy"));
	check_int((int)report.removed, DIRS * (FILES + 1) + 3);
}

static void tracked_files_alone(void)
{
	begin();
	options.what = SYNC_TRACKED;
	put(here, ".gitignore", "*.o\n/build/\n!keep.o\n");
	put(here, "a.c", "c");
	put(here, "a.o", "o");
	put(here, "keep.o", "k");
	make(here, "build");
	put(here, "build/out", "o");
	make(here, ".git");
	put(here, ".git/x.o", "git's");
	make(here, "sub");
	put(here, "sub/.gitignore", "!a.o\nsecret\n");
	put(here, "sub/a.o", "o");
	put(here, "sub/secret", "s");
	push();
	check(is_there(there, "a.c") && is_there(there, "keep.o") && is_there(there, "sub/a.o"));
	check(is_there(there, ".git/x.o"));
	check(!is_there(there, "a.o") && !is_there(there, "build") &&
		!is_there(there, "sub/secret"));
	put(there, "b.c", "b");
	put(there, "b.o", "o");
	make(there, "build");
	put(there, "build/out", "the room's");
	pull();
	check(is_there(here, "b.c") && !is_there(here, "b.o"));
	check_text(here, "build/out", "o");
	/* What the rules exclude later stays on both sides. */
	put(here, ".gitignore", "*.o\n*.c\n");
	push();
	check(is_there(here, "a.c") && is_there(there, "a.c"));
	/* A copy with nothing but excluded files is not lost. */
	put(here, ".gitignore", "*\n");
	pull();
	check(is_there(here, "a.c") && is_there(there, "a.c"));
	options.what = SYNC_NONE;
	put(here, "c.c", "c");
	put(there, "d.c", "d");
	push();
	pull();
	check(!is_there(there, "c.c") && !is_there(here, "d.c"));
}

static void the_first_push_wants_an_empty_place(void)
{
	begin();
	put(here, "a", "a");
	put(there, "b", "b");
	check_int(work(true), -E_EXISTS);
	check_text(there, "b", "b");
	check_int(work(false), -E_USAGE);
	/* One that broke off is begun anew. */
	state.phase = SYNC_BEGUN;
	push();
	check(is_there(there, "a") && !is_there(there, "b"));
	check_quiet();
}

static void a_lost_copy_deletes_nothing(void)
{
	begin();
	put(here, "a", "a");
	push();
	drop(there, "a");
	check_int(work(false), -E_NOT_FOUND);
	check_text(here, "a", "a");
}

/* A pull that is killed leaves the old state and some of the files. */
static void a_pull_is_repeated(void)
{
	_cleanup_(sync_state_donep) struct sync_state old = {0};
	char path[TAP_DIR_BYTES];
	int fd = tap_file(path);

	begin();
	put(here, "a", "a");
	put(here, "b", "b");
	put(here, "c", "c");
	push();
	must(sync_state_write(fd, &state, &err) == 0);
	put(there, "a", "changed");
	put(there, "new", "new");
	drop(there, "c");
	pull();
	must(sync_state_read(fd, &old, &err) == 0);
	sync_state_done(&state);
	state = old;
	old = (struct sync_state){0};
	close(fd);
	unlink(path);
	pull();
	check_int((int)told_n, 0);
	check_int((int)report.entries, 0);
	check(!is_there(here, "a.from-s1") && !is_there(here, "new.from-s1"));
	check_text(here, "a", "changed");
	check_quiet();
}

/* Both directions, again and again, while both sides are at work: what was taken or sent once is
 * the base of what comes next, so nothing is taken for a conflict later. What is the person's alone
 * stays as it is on either side, whatever the room does to it. */
static void a_pull_and_a_push_in_turn(void)
{
	char hooks[] = "hooks", obeyed[] = "obeyed", removed[] = "removed";
	char *own[] = {hooks, obeyed, removed, NULL};

	begin();
	put(here, "a", "one");
	put(here, "b", "one");
	put(here, "obeyed", "mine");
	put(here, "removed", "mine");
	push();
	options.own = own;
	put(there, "a", "the room's");
	make(there, "hooks");
	put(there, "hooks/evil", "evil");
	put(there, "obeyed", "evil");
	drop(there, "removed");
	put(here, "b", "mine");
	for (int i = 0; i < 2; i++) {
		keep_state();
		pull();
		check_int((int)(report.entries + report.removed), i == 0);
		check_int((int)told_n, 4);
		check(was_told("own hooks") && was_told("own hooks/evil"));
		check(was_told("own obeyed") && was_told("own removed"));
		keep_state();
		push();
		check_int((int)(report.entries + report.removed), i == 0);
		check_int((int)told_n, 0);
	}
	check_text(here, "a", "the room's");
	check_text(there, "b", "mine");
	/* Each side goes on with what the other one had. */
	put(here, "a", "mine after that");
	put(there, "b", "the room's after that");
	put(here, "obeyed", "mine after that");
	keep_state();
	pull();
	keep_state();
	push();
	check(was_told("left obeyed"));
	check_int((int)told_n, 1);
	drop(there, "a");
	keep_state();
	pull();
	check(!is_there(here, "a") && !is_there(here, "a.from-s1") && !is_there(here, "b.from-s1"));
	check_text(here, "b", "the room's after that");
	check_text(here, "obeyed", "mine after that");
	check_text(there, "obeyed", "evil");
	check_text(here, "removed", "mine");
	check(!is_there(there, "removed") && !is_there(here, "hooks"));
}

static void limits(void)
{
	begin();
	put(here, "a", "a");
	put(here, "b", "b");
	options.max_entries = 1;
	check_int(work(true), -E_LIMIT);
	options.max_entries = 0;
	state.phase = SYNC_FRESH;
	push();
	put(there, "large", "12345678901234567890");
	put(there, "a", "changed");
	options.max_bytes = 15;
	check_int(work(false), -E_LIMIT);
	check(!is_there(here, "large"));
	options.max_bytes = 0;
	pull();
	check_text(here, "large", "12345678901234567890");
	check_text(here, "a", "changed");
	options.max_entries = 3;
	put(there, "x", "n");
	check_int(work(false), -E_LIMIT);
}

/* Have one file here, which is of another name there, and what is beside it. */
static void begin_one(void)
{
	begin();
	put(here, "conf", "one");
	put(here, "secret", "mine");
	make(here, "dir");
	put(here, ".gitignore", "conf\n");
	options.what = SYNC_TRACKED;
	options.one = "conf";
	options.one_there = "file";
	options.one_fd = openat(here, "conf", O_PATH | O_CLOEXEC);
}

static void one_file_alone(void)
{
	begin_one();
	push();
	check_text(there, "file", "one");
	check(!is_there(there, "conf") && !is_there(there, "secret") && !is_there(there, "dir"));
	check_quiet();
	put(there, "file", "two two");
	put(there, "conf", "another");
	put(there, "secret", "another");
	must(fchmodat(there, "file", 0600, 0) == 0);
	pull();
	check_int((long long)report.entries, 1);
	check_text(here, "conf", "two two");
	check_text(here, "secret", "mine");
	check_int(mode_of(here, "conf"), S_IFREG | 0600);
	check(!is_there(here, "file"));
	put(here, "conf", "mine, too");
	pull();
	check_text(here, "conf", "mine, too");
	put(there, "file", "there");
	pull();
	check(was_told("kept-both conf conf.from-s1"));
	check_text(here, "conf", "mine, too");
	check_text(here, "conf.from-s1", "there");
	drop(here, "conf");
	put(there, "file", "there again");
	pull();
	check(was_told("restored conf"));
	check_text(here, "conf", "there again");
	drop(there, "file");
	check_int(work(false), -E_NOT_FOUND);
	check_text(here, "conf", "there again");
	must(symlinkat("/etc/passwd", there, "file") == 0);
	check_int(work(false), -E_PROTOCOL);
	check_text(here, "conf", "there again");
	fd_close(options.one_fd);
}

/* What took the name of what was granted is not sent. */
static void one_file_that_was_replaced(void)
{
	begin_one();
	must(renameat(here, "secret", here, "conf") == 0);
	check_int(work(true), -E_SYSTEM);
	check(was_told("unsteady conf"));
	check(!is_there(there, "file"));
	check_int(work(false), -E_USAGE);
	fd_close(options.one_fd);
	begin_one();
	drop(here, "conf");
	must(symlinkat("secret", here, "conf") == 0);
	(void)work(true);
	check(!is_there(there, "file") || S_ISLNK(mode_of(there, "file")));
	fd_close(options.one_fd);
	begin_one();
	drop(here, "conf");
	check_int(work(true), -E_SYSTEM);
	fd_close(options.one_fd);
}

/* Root works in a directory of somebody else's. */
static void a_changed_file_keeps_its_owner(void)
{
	struct stat st = {0};

	if (geteuid() != 0)
		return;
	begin();
	put(here, "a", "one");
	put(here, "b", "one");
	must(fchownat(here, "a", 12, 34, 0) == 0 && fchownat(here, "b", 12, 34, 0) == 0);
	push();
	put(there, "a", "changed");
	put(there, "b", "changed");
	put(there, "new", "new");
	put(here, "b", "mine");
	pull();
	check_text(here, "a", "changed");
	check(fstatat(here, "a", &st, 0) == 0 && st.st_uid == 12 && st.st_gid == 34);
	check(fstatat(here, "b.from-s1", &st, 0) == 0 && st.st_uid == 12 && st.st_gid == 34);
	check(fstatat(here, "new", &st, 0) == 0 && st.st_uid == 0);
}

static void our_temporary_files_stay_where_they_are(void)
{
	begin();
	put(here, ".cloche-0123456789abcdef.tmp", "x");
	put(here, "a", "a");
	push();
	check(!is_there(there, ".cloche-0123456789abcdef.tmp"));
	put(there, ".cloche-0123456789abcdea.tmp", "x");
	pull();
	check(!is_there(here, ".cloche-0123456789abcdea.tmp"));
	check(is_there(here, ".cloche-0123456789abcdef.tmp"));
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	tap_fast_dir(top);
	run_test(all_goes_there);
	run_test(only_what_differs_goes);
	run_test(what_changed_there_comes_back);
	run_test(both_changed);
	run_test(deleted_there_and_changed_here);
	run_test(a_push_to_directories_that_were_deleted);
	run_test(directories_and_files_change_places);
	run_test(directories_and_files_in_each_others_way);
	run_test(a_push_meets_a_file_where_it_has_a_directory);
	run_test(read_only_directories);
	run_test(many_files);
	run_test(tracked_files_alone);
	run_test(the_first_push_wants_an_empty_place);
	run_test(a_lost_copy_deletes_nothing);
	run_test(a_pull_is_repeated);
	run_test(a_pull_and_a_push_in_turn);
	run_test(limits);
	run_test(one_file_alone);
	run_test(one_file_that_was_replaced);
	run_test(a_changed_file_keeps_its_owner);
	run_test(our_temporary_files_stay_where_they_are);
	sync_state_done(&state);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
