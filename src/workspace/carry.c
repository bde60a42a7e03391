/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: carry-judge.c says what is added to a file. It is added at the file's end,
 * in place, while config.lock is held as git holds it. A new file in its place would take away the
 * guards that other rooms have on the old one; and what is only added loses nothing that the person
 * changed meanwhile, nor a comment. The directory was opened when the room began (INV-NAMED-ONCE).
 */
#include "workspace/carry.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "fs/fs.h"
#include "job/job.h"
#include "workspace/gitconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_CONFIG = 1024 * 1024, MAX_FILES = 64 };
#define PATIENCE USEC_PER_SEC /* for whoever writes the same file */

/* Logs of worktrees elsewhere are read-only, and git gc would stop there. */
#define NEVER                                                                                      \
	"[gc]\n\treflogExpire = never\n\treflogExpireUnreachable = never\n"                        \
	"\tworktreePruneExpire = never\n"

void carry_done(struct carry *c)
{
	for (size_t i = 0; i < c->n; i++) {
		fd_close(c->files[i].dir);
		free(c->files[i].path);
		free(c->files[i].name);
		free(c->files[i].before);
	}
	free(c->files);
	stuck_done(&c->stuck);
	*c = (struct carry){0};
}

/* Reads a regular file to its end. Returns its descriptor, or -errno. */
static int carry_read(int dir, const char *name, int flags, struct buf *ret)
{
	_cleanup_fd_ int fd = fs_open_beneath(dir, name, flags);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	r = fd_read_to_end(fd, ret);
	if (r == 0 && memchr(buf_data(ret), '\0', buf_len(ret)))
		r = -EINVAL;
	return r < 0 ? r : TAKE_FD(fd);
}

static bool carry_is_hooks(const struct gitconfig_entry *e)
{
	return strcmp(e->section, "core") == 0 && !e->name && strcmp(e->key, "hookspath") == 0;
}

/* Where git looks for hooks in place of the git directory, if that is a place that can be said
 * here. What lies in a git directory has the room's hooks in it already. */
static const char *carry_own_hooks(const struct gitconfig_list *l)
{
	const char *own = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (carry_is_hooks(&l->entries[i]))
			own = l->entries[i].value;
	return own && own[0] && own[0] != '~' && own[0] != '%' && !strstr(own, ".git/") ? own
											: NULL;
}

/* Writes the text of the copy. */
static int carry_copy(
	struct str text, const struct carry_ours *ours, char **ret_text, char **ret_own)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * MAX_CONFIG);
	struct gitconfig_entry copy;
	char view[64];
	const struct gitconfig_entry *last = NULL;
	struct gitconfig_list l;
	const char *own;
	int r = gitconfig_read(text, &l);

	own = carry_own_hooks(&l);
	snprintf(view, sizeof(view), "%s", ours->hooks);
	for (size_t i = 0; r == 0 && i < l.n; i++) {
		const struct gitconfig_entry *e = &l.entries[i];

		if (own && carry_is_hooks(e) && e->value != own)
			continue;
		copy = *e;
		if (e->value && e->value == own)
			copy.value = view;
		r = gitconfig_add(&b, &copy, last);
		last = e;
	}
	if (r == 0 && ours->records)
		r = buf_add_str(&b, STR(NEVER));
	if (r == 0) {
		*ret_text = buf_cstr(&b) ? strdup(buf_cstr(&b)) : NULL;
		*ret_own = own ? strdup(own) : NULL;
		r = *ret_text && !own == !*ret_own ? 0 : -ENOMEM;
	}
	gitconfig_list_done(&l);
	return r;
}

int carry_add(struct carry *c, int mount, const char *below, const char *path, size_t number,
	const struct carry_ours *ours, char **ret_text, char **ret_own)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_CONFIG);
	const char *slash = strrchr(below, '/');
	_cleanup_(freep) char *around = strndup(below, slash ? (size_t)(slash - below) : 0);
	_cleanup_fd_ int dir = around ? fs_open_beneath(mount, around, O_PATH | O_DIRECTORY) : -1;
	_cleanup_(freep) char *text = NULL, *own = NULL;
	_cleanup_fd_ int fd = -1;
	struct carry_file *more, *f;
	int r;

	if (!around)
		return -ENOMEM;
	if (c->n == MAX_FILES)
		return 0;
	fd = dir < 0 ? dir : carry_read(dir, slash ? slash + 1 : below, O_RDONLY, &b);
	r = fd < 0 ? fd : carry_copy(buf_str(&b), ours, &text, &own);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	more = array_room(c->files, c->n, &c->cap, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->files = more;
	f = &c->files[c->n++];
	*f = (struct carry_file){.dir = TAKE_FD(dir),
		.path = strdup(path),
		.name = strdup(slash ? slash + 1 : below),
		.number = number,
		.before = buf_cstr(&b) ? strdup(buf_cstr(&b)) : NULL};
	if (!f->path || !f->name || !f->before)
		return -ENOMEM;
	*ret_text = TAKE_PTR(text);
	*ret_own = TAKE_PTR(own);
	return 0;
}

/* Wait until something leaves the directory, or until this time. *watch is -1 the first time: then
 * only begin to watch, as it may have left before. */
static void carry_await(int dir, int *watch, uint64_t until)
{
	uint64_t now = clock_mono_usec();

	if (*watch == -1) {
		*watch = fs_notify(dir, IN_DELETE | IN_MOVED_FROM);
		if (*watch >= 0)
			return;
	}
	if (now < until)
		(void)!job_wait_fd(*watch, POLLIN, (int)((until - now) / USEC_PER_MSEC) + 1);
	if (*watch >= 0)
		fs_notify_clear(*watch);
}

/* Locks the file as git does, and waits for whoever has locked it, who removes the lock or renames
 * it. Returns 0 or -errno. */
static int carry_lock(const struct carry_file *f, const char *lock, uint64_t patience)
{
	uint64_t until = clock_mono_usec() + patience;
	_cleanup_fd_ int watch = -1;

	for (;;) {
		bool last = clock_mono_usec() >= until;
		int fd = openat(
			f->dir, lock, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd >= 0) {
			fd_close(fd);
			return 0;
		}
		if (errno != EEXIST || last)
			return -errno;
		carry_await(f->dir, &watch, until);
	}
}

/* Whether a text with something added at its end says what it said before, and that. */
static int carry_check(struct str text, struct str add, struct buf *ret)
{
	struct gitconfig_list before = {0}, more = {0}, all = {0};
	int r = 0;

	if (text.n && text.p[text.n - 1] != '\n')
		r = buf_add_char(ret, '\n');
	if (r == 0)
		r = buf_add_str(ret, add);
	if (r == 0) {
		_cleanup_(buf_donep) struct buf whole = BUF_INIT(2 * MAX_CONFIG);

		r = buf_add_str(&whole, text);
		if (r == 0)
			r = buf_add_str(&whole, buf_str(ret));
		if (r == 0)
			r = gitconfig_read(text, &before);
		if (r == 0)
			r = gitconfig_read(add, &more);
		if (r == 0)
			r = gitconfig_read(buf_str(&whole), &all);
	}
	if (r == 0 && all.n != before.n + more.n)
		r = -EINVAL;
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		const struct gitconfig_entry *a = &all.entries[i],
					     *e = i < before.n ? &before.entries[i]
							       : &more.entries[i - before.n];

		if (!gitconfig_is_same(a, e) || !a->value != !e->value ||
			(a->value && strcmp(a->value, e->value) != 0))
			r = -EINVAL;
	}
	gitconfig_list_done(&before);
	gitconfig_list_done(&more);
	gitconfig_list_done(&all);
	return r;
}

/* Adds text to the file that fd is. */
static int carry_write(int fd, struct str text, struct str add)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_CONFIG);
	int r = carry_check(text, add, &b);

	if (r == 0 && lseek(fd, 0, SEEK_END) != (off_t)text.n)
		r = -ESTALE;
	if (r < 0)
		return r;
	r = fd_write_all(fd, buf_data(&b), buf_len(&b));
	/* Half of it would be no configuration. */
	if (r < 0 && ftruncate(fd, (off_t)text.n) < 0)
		return -errno;
	return r < 0 || fsync(fd) == 0 ? r : -errno;
}

struct carried {
	struct buf add, said, refused;
};

/* Judges and adds, with the lock held. */
static int carry_locked(
	const struct carry_file *f, struct str room, const char *hooks_dir, struct carried *c)
{
	_cleanup_(buf_donep) struct buf now = BUF_INIT(MAX_CONFIG);
	_cleanup_fd_ int fd = carry_read(f->dir, f->name, O_RDWR | O_APPEND, &now);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	/* By its other name it may be the configuration of another repository. */
	if (fstat(fd, &st) < 0 || st.st_nlink > 1)
		return -EMLINK;
	r = carry_judge(str_from(f->before), room, buf_str(&now), hooks_dir, &c->add, &c->said,
		&c->refused);
	return r == 0 && buf_len(&c->add) ? carry_write(fd, buf_str(&now), buf_str(&c->add)) : r;
}

static int carry_take(const struct carry_file *f, struct str room, const char *hooks_dir,
	uint64_t patience, struct carried *c)
{
	char lock[NAME_MAX + 8];
	int r;

	/* Most rooms change nothing. */
	r = carry_judge(str_from(f->before), room, str_from(f->before), hooks_dir, &c->add,
		&c->said, &c->refused);
	if (r < 0 || buf_len(&c->add) == 0)
		return r;
	buf_clear(&c->add);
	buf_clear(&c->said);
	buf_clear(&c->refused);
	snprintf(lock, sizeof(lock), "%s.lock", f->name);
	r = carry_lock(f, lock, patience);
	if (r < 0)
		return r;
	r = carry_locked(f, room, hooks_dir, c);
	unlinkat(f->dir, lock, 0);
	return r;
}

static int carry_tell(const struct carry_file *f, struct look_told *told, const char *before,
	struct buf *words, const char *behind)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_CONFIG);

	if (buf_len(words) == 0)
		return 0;
	if (buf_printf(&b, "%s%.*s%s", before, STR_FMT(buf_str(words)), behind) < 0 ||
		!buf_cstr(&b))
		return -ENOMEM;
	return told_add(told, f->path, buf_cstr(&b), NULL, NULL);
}

static int carry_one(const struct carry_file *f, int copies, const char *hooks_dir,
	uint64_t *patience, struct look_told *told)
{
	_cleanup_(buf_donep) struct buf room = BUF_INIT(MAX_CONFIG);
	struct carried c = {BUF_INIT(MAX_CONFIG), BUF_INIT(MAX_CONFIG), BUF_INIT(MAX_CONFIG)};
	char name[64], why[160];
	int fd, r;

	snprintf(name, sizeof(name), "%zu/" CARRY_NAME, f->number);
	fd = carry_read(copies, name, O_RDONLY, &room);
	r = fd < 0 ? -EINVAL : carry_take(f, buf_str(&room), hooks_dir, *patience, &c);
	fd_close(fd);
	/* A room can leave such a file in each of its repositories. */
	if (r == -EEXIST)
		*patience = 0;
	if (r == 0)
		r = carry_tell(f, told, "the sandbox set ", &c.said, "");
	if (r == 0)
		r = carry_tell(f, told, "not taken over from the sandbox: ", &c.refused,
			"; set it yourself, or use --allow-write for this file");
	if (r < 0 && r != -ENOMEM) {
		snprintf(why, sizeof(why), "what the sandbox set was not taken over: %s",
			r == -EINVAL   ? "its copy is no configuration of git that can be read"
			: r == -EEXIST ? "there is a file config.lock"
			: r == -EMLINK ? "the file has another name (a hard link)"
				       : strerror(-r));
		r = told_add(told, f->path, why, NULL, NULL);
	}
	buf_done(&c.add);
	buf_done(&c.said);
	buf_done(&c.refused);
	return r;
}

int carry_over(struct carry *c, int copies, const char *hooks_dir, struct look_told *told)
{
	uint64_t patience = PATIENCE;
	char name[32];
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		r = carry_one(&c->files[i], copies, hooks_dir, &patience, told);
		snprintf(name, sizeof(name), "%zu", c->files[i].number);
		stuck_read(&c->stuck, copies, name);
	}
	return r < 0 ? r : stuck_tell(&c->stuck, told);
}

int carry_lost(char *const *paths, struct look_told *told)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_CONFIG);
	size_t n = 0;
	int r = 0;

	while (paths && paths[n])
		n++;
	if (n == 0)
		return 0;
	r = buf_add_str(&b, STR("the sandbox was killed: if its commands set something in "));
	if (r == 0)
		r = told_quote_some(&b, paths, n);
	if (r == 0)
		r = buf_add_str(&b, STR(", that is lost"));
	return r < 0 || !buf_cstr(&b) ? -ENOMEM : told_notice(told, paths[0], buf_cstr(&b));
}
