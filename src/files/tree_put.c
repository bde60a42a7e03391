/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-INSIDE-PATHS): every entry's directory is reached from ours by names,
 * through directories only; a name ".." or a link in the way is an error. Everything except
 * directories is made under a temporary name and renamed, so nothing that exists is ever written
 * into, and a link planted under the final name is replaced, not followed.
 *
 * A directory made here is closed to others until everything is in it; then it gets its mode and
 * time. In archives, a directory's entries come after it, sometimes much later, so all directories
 * are remembered up to a limit. At the limit, those that do not contain the current entry are
 * finished early. A directory that existed before keeps its attributes.
 *
 * A hard link is made only to a file that was made here too: another name of a file that existed
 * before could be a way to write to what a room may only read. */
#include "base/fd.h"
#include "base/strset.h"
#include "files/beneath.h"
#include "files/mode.h"
#include "files/replace.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HOLE = 4096,
	MAX_PENDING = 65536,
	MAX_PENDING_BYTES = 16 * 1024 * 1024,
	MAX_MADE = 1000 * 1000
};

struct attributes {
	uint32_t mode;
	uint64_t uid, gid;
	struct timespec mtime;
};

struct pending {
	char *path;
	struct attributes a;
};

/* The key of a file that was made here. */
struct made_key {
	uint64_t device, inode;
};

struct tree_put {
	struct tree_put_options o;
	struct tar_reader *reader;
	struct files_moved moved;
	struct pending *pending; /* directories that wait for their attributes, parents first */
	size_t pending_n, pending_cap, pending_bytes;
	struct buf path; /* of the current entry, cleaned: "a/b/c" */
	struct buf other;
	int parent; /* directory of the current entry */
	struct buf parent_path;
	char name[BENEATH_NAME_MAX + 1];
	struct replace file; /* the current entry, if it is a file */
	struct attributes file_a;
	uint64_t file_at, file_size;
	bool seen;          /* the one entry of o.single has come */
	struct strset made; /* at most MAX_MADE; those beyond get no further names */
};

static int putter_fail(const struct tree_put *t, struct files_error *e, int r)
{
	const char *why = NULL;

	if (r == -EXDEV)
		why = "it would lead out of the directory";
	else if (r == -ELOOP)
		why = "a symbolic link is in the way";
	return files_fail(e, -r, buf_str(&t->path), why);
}

static struct str split_last(struct str path, char name[BENEATH_NAME_MAX + 1])
{
	size_t at = path.n;

	while (at > 0 && path.p[at - 1] != '/')
		at--;
	if (path.n > at)
		memcpy(name, path.p + at, path.n - at);
	name[path.n - at] = '\0';
	return str_prefix(path, at ? at - 1 : 0);
}

/* Set the owner first: this clears set-id bits. It may fail for lack of permission. */
static int set_attributes(const struct tree_put *t, int fd, const struct attributes *a, mode_t mask)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, a->mtime};
	int r;

	if (t->o.owners && a->uid < UINT32_MAX && a->gid < UINT32_MAX &&
		fchown(fd, (uid_t)a->uid, (gid_t)a->gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	/* A file system without modes keeps its own. */
	r = files_set_mode(fd, a->mode & mask & ~t->o.closed);
	if (r < 0 && r != -EPERM)
		return r;
	return futimens(fd, times) < 0 && errno != EPERM ? -errno : 0;
}

/* Set the attributes of a complete directory. If it was removed meanwhile, that is no error. */
static int settle(struct tree_put *t, const struct pending *p)
{
	_cleanup_fd_ int dir = beneath_directory(t->o.dir, str_from(p->path), false);
	_cleanup_fd_ int fd = -1;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return set_attributes(t, fd, &p->a, 01777);
}

static bool is_below(struct str path, struct str directory)
{
	return directory.n == 0 || str_eq(path, directory) ||
	       (str_starts(path, directory) && path.p[directory.n] == '/');
}

/* Settle all directories that do not contain path (null: all), children before their parents. */
static int settle_all(struct tree_put *t, struct str path)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = t->pending_n; i > 0 && r == 0; i--) {
		struct pending *p = &t->pending[i - 1];
		struct str own = str_from(p->path);

		if (path.p && is_below(path, own))
			continue;
		r = settle(t, p);
		t->pending_bytes -= own.n;
		free(p->path);
		p->path = NULL;
	}
	for (size_t i = 0; i < t->pending_n; i++)
		if (t->pending[i].path)
			t->pending[kept++] = t->pending[i];
	t->pending_n = kept;
	return r;
}

static int remember(struct tree_put *t, const struct attributes *a)
{
	struct pending *more;
	char *path;
	int r;

	if (t->pending_n >= MAX_PENDING || t->pending_bytes >= MAX_PENDING_BYTES) {
		r = settle_all(t, buf_str(&t->path));
		if (r < 0)
			return r;
	}
	more = array_room(t->pending, t->pending_n, &t->pending_cap, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->pending = more;
	path = str_dup(buf_str(&t->path));
	if (!path)
		return -ENOMEM;
	t->pending[t->pending_n++] = (struct pending){path, *a};
	t->pending_bytes += buf_len(&t->path);
	return 0;
}

/* Open the directory of the current entry. */
static int enter_parent(struct tree_put *t)
{
	struct str parent = split_last(buf_str(&t->path), t->name), last = buf_str(&t->parent_path);
	int dir, r;

	if (t->parent >= 0 && str_eq(parent, last))
		return 0;
	/* The next entry is usually in the same directory or below it. */
	if (t->parent >= 0 && is_below(parent, last))
		dir = beneath_directory(t->parent, str_from_index(parent, last.n), true);
	else
		dir = beneath_directory(t->o.dir, parent, true);
	fd_close(t->parent);
	t->parent = dir;
	buf_clear(&t->parent_path);
	r = buf_add_str(&t->parent_path, parent);
	return dir < 0 ? dir : r;
}

static int make_directory(struct tree_put *t, const struct attributes *a)
{
	struct stat st;

	if (!t->name[0]) {
		bool is_new = t->o.dir_is_new;

		t->o.dir_is_new = false;
		return is_new ? remember(t, a) : 0;
	}
	if (mkdirat(t->parent, t->name, 0700) == 0)
		return remember(t, a);
	if (errno != EEXIST)
		return -errno;
	if (fstatat(t->parent, t->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : S_ISLNK(st.st_mode) ? -ELOOP : -ENOTDIR;
}

static struct made_key key_of(const struct stat *st)
{
	return (struct made_key){.device = st->st_dev, .inode = st->st_ino};
}

static int note_made(struct tree_put *t, const struct stat *st)
{
	struct made_key key = key_of(st);

	if (strset_count(&t->made) >= MAX_MADE)
		return 0;
	return strset_add(&t->made, str_make(&key, sizeof(key)));
}

static int make_symlink(struct tree_put *t, const struct tar_entry *entry)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = entry->mtime_sec, .tv_nsec = entry->mtime_nsec}};
	char temporary[REPLACE_NAME_MAX];
	_cleanup_(freep) char *target = str_dup(entry->link);
	struct stat st;
	int r = 0;

	if (!target)
		return -ENOMEM;
	replace_name(temporary);
	if (symlinkat(target, t->parent, temporary) < 0)
		return -errno;
	/* Ignore failures, as not every file system supports these. */
	(void)!utimensat(t->parent, temporary, times, AT_SYMLINK_NOFOLLOW);
	if (t->o.owners && entry->uid < UINT32_MAX && entry->gid < UINT32_MAX)
		(void)!fchownat(t->parent, temporary, (uid_t)entry->uid, (gid_t)entry->gid,
			AT_SYMLINK_NOFOLLOW);
	if (fstatat(t->parent, temporary, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		r = note_made(t, &st);
	if (r < 0) {
		unlinkat(t->parent, temporary, 0);
		return r;
	}
	return replace_rename(t->parent, temporary, t->name, true);
}

/* Make another name for a file that was made here. No link is followed, neither on the way nor at
 * the end; and the file that gets the name is the one that was looked at. */
static int make_hardlink(struct tree_put *t, const struct tar_entry *entry, struct files_error *e)
{
	char temporary[REPLACE_NAME_MAX], name[BENEATH_NAME_MAX + 1], file[64];
	_cleanup_fd_ int dir = -1, fd = -1;
	struct made_key key;
	struct stat st;
	int r = beneath_clean(entry->link, &t->other);

	if (r < 0)
		return r;
	dir = beneath_directory(t->o.dir, split_last(buf_str(&t->other), name), false);
	if (dir < 0)
		return dir;
	fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	key = key_of(&st);
	if (!strset_has(&t->made, str_make(&key, sizeof(key))))
		return files_fail(e, EPERM, entry->path,
			"it would be another name of a file that is not known to be of this copy");
	replace_name(temporary);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, file, t->parent, temporary, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	r = replace_rename(t->parent, temporary, t->name, true);
	/* rename() does nothing if both names already belong to the same file. */
	if (r == 0)
		unlinkat(t->parent, temporary, 0);
	return r;
}

static int make_fifo(struct tree_put *t, const struct tar_entry *entry)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{.tv_sec = entry->mtime_sec, .tv_nsec = entry->mtime_nsec}};
	char temporary[REPLACE_NAME_MAX];

	replace_name(temporary);
	if (mkfifoat(t->parent, temporary, entry->mode & 0777 & ~t->o.closed) < 0)
		return -errno;
	(void)!utimensat(t->parent, temporary, times, AT_SYMLINK_NOFOLLOW);
	return replace_rename(t->parent, temporary, t->name, true);
}

static int begin_file(struct tree_put *t, const struct tar_entry *entry, const struct attributes *a)
{
	t->file_a = *a;
	t->file_at = 0;
	t->file_size = entry->size;
	return replace_begin(&t->file, t->parent, 0600);
}

static int make(struct tree_put *t, const struct tar_entry *entry, struct files_error *e)
{
	const struct attributes a = {.mode = entry->mode,
		.uid = entry->uid,
		.gid = entry->gid,
		.mtime = {.tv_sec = entry->mtime_sec, .tv_nsec = entry->mtime_nsec}};

	if (!t->name[0] && entry->type != TAR_DIRECTORY)
		return files_fail(e, EINVAL, entry->path, "only a directory can be \".\"");
	switch (entry->type) {
	case TAR_FILE:
		return begin_file(t, entry, &a);
	case TAR_DIRECTORY:
		return make_directory(t, &a);
	case TAR_SYMLINK:
		return make_symlink(t, entry);
	case TAR_HARDLINK:
		return make_hardlink(t, entry, e);
	case TAR_FIFO:
		return make_fifo(t, entry);
	case TAR_CHAR_DEVICE:
	case TAR_BLOCK_DEVICE:
	default:
		return files_fail(e, EPERM, entry->path, "devices are not made");
	}
}

static int check_single(struct tree_put *t, const struct tar_entry *entry, struct files_error *e)
{
	if (t->seen || entry->type == TAR_DIRECTORY || entry->type == TAR_HARDLINK)
		return files_fail(e, EBADMSG, entry->path, "one file was expected");
	t->seen = true;
	return beneath_clean(str_from(t->o.single), &t->path);
}

static int on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct tree_put *t = user;
	int r;

	if (e)
		*e = (struct files_error){0};
	if (t->o.single)
		r = check_single(t, entry, e);
	else
		r = beneath_clean(entry->path, &t->path);
	if (r == -EXDEV || r == -ENAMETOOLONG)
		return files_fail(e, -r, entry->path,
			r == -EXDEV ? "it would lead out of the directory" : NULL);
	if (r == 0)
		r = enter_parent(t);
	if (r == 0)
		r = make(t, entry, e);
	if (r == 0)
		t->moved.entries++;
	return r == 0 || (e && e->sys_errno) ? r : putter_fail(t, e, r);
}

static bool is_zero(const char *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static int on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct tree_put *t = user;

	t->moved.bytes += n;
	/* A piece of only zeroes becomes a hole. */
	if (n >= HOLE && is_zero(p, n)) {
		t->file_at += n;
		return 0;
	}
	while (n > 0) {
		ssize_t some = pwrite(t->file.fd, p, n, (off_t)t->file_at);

		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return putter_fail(t, e, -errno);
		t->file_at += (uint64_t)some;
		p += some;
		n -= (size_t)some;
	}
	return 0;
}

static int on_entry_end(void *user, struct files_error *e)
{
	struct tree_put *t = user;
	struct stat st;
	int r = 0;

	if (t->file.fd < 0)
		return 0;
	if (t->file_size && ftruncate(t->file.fd, (off_t)t->file_size) < 0)
		r = -errno;
	if (r == 0)
		r = fstat(t->file.fd, &st) < 0 ? -errno : note_made(t, &st);
	if (r == 0)
		r = set_attributes(t, t->file.fd, &t->file_a, 0777);
	if (r == 0)
		r = replace_commit(&t->file, t->name, true);
	return r < 0 ? putter_fail(t, e, r) : 0;
}

struct tree_put *tree_put_new(const struct tree_put_options *o)
{
	static const struct tar_reader_ops ops = {
		.entry = on_entry, .data = on_data, .entry_end = on_entry_end};
	struct tree_put *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->o = *o;
	t->parent = -1;
	t->file = REPLACE_NULL;
	t->path = t->other = t->parent_path = BUF_INIT(TAR_MAX_NAME);
	t->reader = tar_reader_new(&ops, t);
	return t->reader ? t : tree_put_free(t);
}

struct tree_put *tree_put_free(struct tree_put *t)
{
	if (!t)
		return NULL;
	strset_done(&t->made);
	replace_abort(&t->file);
	fd_close(t->parent);
	tar_reader_free(t->reader);
	buf_done(&t->path);
	buf_done(&t->other);
	buf_done(&t->parent_path);
	for (size_t i = 0; i < t->pending_n; i++)
		free(t->pending[i].path);
	free(t->pending);
	free(t);
	return NULL;
}

int tree_put_feed(struct tree_put *t, const char *p, size_t n, struct files_error *e)
{
	return tar_reader_feed(t->reader, p, n, e);
}

int tree_put_finish(struct tree_put *t, struct files_error *e)
{
	int r = tar_reader_finish(t->reader, e);

	if (r < 0)
		return r;
	if (t->o.single && !t->seen)
		return files_fail(e, EBADMSG, STR_NULL, "nothing came");
	r = settle_all(t, STR_NULL);
	return r < 0 ? putter_fail(t, e, r) : 0;
}

const struct files_moved *tree_put_moved(const struct tree_put *t)
{
	return &t->moved;
}
