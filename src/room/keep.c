/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The parent of the room opens, judges and locks the directory. The room is only given a mount of
 * it that it cannot reach by any path. Only the parent has the lock, so it is released when the
 * parent dies, as the room does then. What an earlier room wrote into upper/ is hostile and is read
 * by overlayfs alone; the marker, lower/ and work/ were never within a room's reach.
 *
 * A tree cannot be its own layer, and a room must not write to what overlayfs keeps for itself. So
 * the directory may neither contain nor lie in the root or anything that is mounted writable. This
 * is judged by the identities of the directories on the way up to "/", so that other names for the
 * same place do not matter, and by paths, for single files. */
#include "room/keep.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"
#include "jail/source.h"
#include "room/apart.h"
#include "room/layers.h"
#include "room/setid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MARKER_MAX = 16384 };
#define PATIENCE_USEC (2 * USEC_PER_SEC)

static const char heading[] = "cloche changes 1\n";

/* Find the directory, but not through a link, or the place where it would be made. */
static int find_dir(
	const char *named, const char *home, struct hostpath *ret, struct cloche_err *err)
{
	int r = hostpath_find(named, home, "keep changes in", ret, err);

	return r == 0 ? source_judge_path(ret, named, home, "keep changes", err) : r;
}

static int keep_open_dir(const struct hostpath *at, const char *path, struct cloche_err *err)
{
	const char *name = at->name[0] ? at->name : ".";
	_cleanup_fd_ int fd =
		openat(at->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0)
		return TAKE_FD(fd);
	if (fstatat(at->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return err_set(err, E_DENIED,
			"%s is a symbolic link: changes are kept in a directory itself", path);
	return err_sys(err, errno, "keep changes in %s", path);
}

static int keep_make_dir(
	const struct hostpath *at, const char *path, bool *ret_made, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	*ret_made = at->name[0] && mkdirat(at->dir, at->name, 0700) == 0;
	if (at->name[0] && !*ret_made && errno != EEXIST)
		return err_sys(err, errno, "make %s for changes", path);
	fd = keep_open_dir(at, path, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "look at %s", path);
	if (st.st_uid != geteuid())
		return err_set(err, E_DENIED, "%s belongs to uid %u, not to you", path, st.st_uid);
	return TAKE_FD(fd);
}

static int is_empty(int dir)
{
	_cleanup_(fs_list_closep) DIR *d = fs_list(dir, ".");

	return d ? fs_list_next(d) == NULL : -ENOMEM;
}

/* Make the text of the marker for a directory with that root. */
static int marker_text(const char *root_dir, struct buf *ret)
{
	int r = buf_add(ret, heading, sizeof(heading) - 1);

	if (r == 0)
		r = buf_add_str(ret, STR("root "));
	if (r == 0)
		r = root_dir ? escape_log(ret, str_from(root_dir), PATH_MAX)
			     : buf_add_str(ret, STR("host"));
	return r < 0 ? r : buf_add_char(ret, '\n');
}

/* Open the marker; make it if the directory is empty. */
static int open_marker(int dir, const char *path, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(dir, KEEP_MARKER, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT) {
		r = is_empty(dir);
		if (r < 0)
			return err_sys(err, -r, "read %s", path);
		if (r == 0) {
			r = err_set(err, E_EXISTS,
				"%s is not empty, and holds no changes of an earlier run", path);
			err_hint(err, "name a directory that is empty or does not exist");
			return r;
		}
		fd = openat(dir, KEEP_MARKER, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open %s/" KEEP_MARKER, path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, E_DENIED, "%s/" KEEP_MARKER " is not ours", path);
	return TAKE_FD(fd);
}

/* The supervisor of a run that has just returned may still hold the lock for a moment, to clean up.
 * Return 0, or -errno. */
static int lock_patiently(int fd)
{
	const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
	uint64_t until = clock_mono_usec() + PATIENCE_USEC;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_mono_usec() >= until)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Return the marker, locked. */
static int lock_marker(int dir, const char *path, struct cloche_err *err)
{
	for (;;) {
		_cleanup_fd_ int fd = open_marker(dir, path, err);
		struct stat st;
		int r;

		if (fd < 0)
			return fd;
		r = lock_patiently(fd);
		if (r == -EWOULDBLOCK) {
			r = err_set(err, E_BUSY, "another sandbox is changing %s", path);
			err_hint(err, "wait for its end, or name another directory");
			return r;
		}
		if (r < 0 || fstat(fd, &st) < 0)
			return err_sys(err, r < 0 ? -r : errno, "lock %s", path);
		/* The previous owner may have removed the marker (keep_close). */
		if (st.st_nlink > 0)
			return TAKE_FD(fd);
	}
}

/* A marker without text is a new one. */
static int check_marker(int fd, const char *path, const char *root_dir, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf want = BUF_INIT(MARKER_MAX), is = BUF_INIT(MARKER_MAX);
	int r = marker_text(root_dir, &want);

	if (r < 0 || fd_read_to_end(fd, &is) < 0)
		return err_set(err, E_CORRUPT, "%s/" KEEP_MARKER " cannot be read", path);
	if (str_eq(buf_str(&is), buf_str(&want)))
		return 0;
	if (buf_len(&is) == 0) {
		r = fd_write_all(fd, buf_data(&want), buf_len(&want));
		return r < 0 ? err_sys(err, -r, "write %s/" KEEP_MARKER, path) : 0;
	}
	if (!str_starts(buf_str(&is), STR("cloche changes ")))
		return err_set(err, E_CORRUPT, "%s/" KEEP_MARKER " is damaged", path);
	r = err_set(err, E_CONFIG, "the changes in %s were made to another root", path);
	err_hint(err, "use the same --root as before, or another directory");
	return r;
}

static int enter_dir(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Make a directory that a room's overlay left accessible: without any permissions, even its owner
 * could not remove it. There may be links if another room could write to the directory. */
static void open_up(int work, const char *name)
{
	_cleanup_fd_ int overlay = enter_dir(work, name), inner = -1;

	if (overlay < 0)
		return;
	inner = openat(overlay, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (inner >= 0)
		(void)!fd_chmod(inner, 0700);
}

/* Clean up after a room of this supervisor or of one that was killed: then work/ exists. If a
 * set-uid program of the root was changed through a memory mapping, it still has its bits. Only its
 * owner can reach it here, but he may hand it on, and another room may copy it. */
static void clear_up(int dir)
{
	_cleanup_fd_ int work = enter_dir(dir, "work"), upper = enter_dir(dir, "upper");
	const char *const *host = layers_host_dirs();
	size_t i;

	if (work >= 0) {
		if (upper >= 0)
			(void)setid_clear(upper);
		open_up(work, "root");
		for (i = 0; host[i]; i++)
			open_up(work, host[i] + 1);
	}
	(void)fs_remove_tree(dir, "work");
}

/* Find out whether nothing has been kept yet. upper/ must not be a link, as files will be made in
 * it. */
static int check_upper(struct keep *k, struct cloche_err *err)
{
	struct stat st;

	k->fresh = fstatat(k->dir, "upper", &st, AT_SYMLINK_NOFOLLOW) < 0;
	if (k->fresh || S_ISDIR(st.st_mode))
		return 0;
	return err_set(err, E_CORRUPT, "%s/upper is no directory", k->named);
}

static int lock_and_check(struct keep *k, const char *root_dir, struct cloche_err *err)
{
	int r = k->lock = lock_marker(k->dir, k->named, err);

	if (r >= 0)
		r = check_marker(k->lock, k->named, root_dir, err);
	if (r >= 0 && fchmod(k->dir, 0700) < 0)
		r = err_sys(err, errno, "make %s private", k->named);
	if (r >= 0)
		r = check_upper(k, err);
	if (r >= 0)
		clear_up(k->dir);
	return r;
}

int keep_open(const char *path, const char *root_dir, const char *home, struct keep *ret,
	struct cloche_err *err)
{
	struct keep k = KEEP_INIT;
	int r;

	k.named = fs_absolute(path); /* without a slash at the end, which would follow a link */
	if (!k.named)
		return err_sys(err, errno, "keep changes in %s", path);
	r = find_dir(k.named, home, &k.at, err);
	if (r == 0)
		r = k.dir = keep_make_dir(&k.at, k.named, &k.made, err);
	if (r >= 0)
		r = lock_and_check(&k, root_dir, err);
	if (r < 0) {
		keep_close(&k);
		return r;
	}
	*ret = k;
	return 0;
}

void keep_close(struct keep *k)
{
	if (k->lock >= 0) {
		clear_up(k->dir);
		if (faccessat(k->dir, "upper", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			(void)unlinkat(k->dir, KEEP_MARKER, 0);
	}
	k->dir = fd_close(k->dir);
	k->lock = fd_close(k->lock);
	/* Only if it is empty. */
	if (k->made)
		(void)unlinkat(k->at.dir, k->at.name, AT_REMOVEDIR);
	hostpath_done(&k->at);
	free(k->named);
	k->named = NULL;
}

int keep_check_apart(const struct keep *k, int fd, const char *source, struct cloche_err *err)
{
	struct apart a;
	int r = apart_init(&a, k->dir);

	if (r == 0)
		r = apart_is(&a, fd);
	if (r < 0)
		return err_sys(err, -r, "compare %s with %s", k->named, source);
	if (r == 1)
		return 0;
	err_set(err, E_DENIED,
		"%s cannot keep changes: it and %s, which the sandbox is given, "
		"lie in one another",
		k->named, source);
	err_hint(err, "name a directory outside the workspace and everything that is mounted");
	return -E_DENIED;
}

/* --- a later look --- */

/* Return the path that escape_log() wrote. */
static char *keep_unescape(struct str s)
{
	char *out = str_dup(s), *to = out;

	while (out && s.n) {
		int c = parse_percent(s);

		*to++ = c < 0 ? s.p[0] : (char)c;
		s = str_from_index(s, c < 0 ? 1 : 3);
	}
	if (out)
		*to = '\0';
	return out;
}

static int read_root(int dir, const char *path, char **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MARKER_MAX);
	_cleanup_fd_ int fd =
		openat(dir, KEEP_MARKER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct str rest;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, E_NOT_FOUND, "%s holds no changes", path);
	if (fd < 0)
		return err_sys(err, errno, "open %s/" KEEP_MARKER, path);
	if (fd_read_to_end(fd, &text) < 0)
		return err_set(err, E_CORRUPT, "%s/" KEEP_MARKER " cannot be read", path);
	rest = buf_str(&text);
	if (!str_starts(rest, str_from(heading)))
		return err_set(err, E_CORRUPT, "%s/" KEEP_MARKER " is damaged", path);
	rest = str_from_index(rest, sizeof(heading) - 1);
	rest = str_next_line(&rest);
	if (!str_starts(rest, STR("root ")))
		return err_set(err, E_CORRUPT, "%s/" KEEP_MARKER " is damaged", path);
	*ret = keep_unescape(str_from_index(rest, 5));
	return *ret ? 0 : err_nomem(err);
}

int keep_view_open(const char *path, struct keep_view *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *named = fs_absolute(path), *root = NULL, *home = fs_home();
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_fd_ int dir = -1, upper = -1, lower = -1;
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	bool host;
	int r;

	if (!named)
		return err_sys(err, errno, "open %s", path);
	r = find_dir(named, home, &at, err);
	if (r < 0)
		return r;
	dir = openat(at.dir, at.name[0] ? at.name : ".", flags);
	if (dir < 0)
		return errno == ENOENT
			       ? err_set(err, E_NOT_FOUND, "there is no directory %s", named)
			       : err_sys(err, errno, "open %s", named);
	r = read_root(dir, named, &root, err);
	if (r < 0)
		return r;
	host = strcmp(root, "host") == 0;
	if (!host && root[0] != '/') {
		err_set(err, E_UNSUPPORTED, "the changes in %s were made to an image", named);
		err_hint(err, "compare while a sandbox uses them: cloche diff ID");
		return -E_UNSUPPORTED;
	}
	upper = openat(dir, "upper", flags);
	lower = host ? openat(dir, "lower", flags) : open(root, flags);
	if (upper < 0 && errno == ENOENT)
		return err_set(err, E_NOT_FOUND, "%s holds no changes", named);
	if (upper < 0 || lower < 0)
		return err_sys(err, errno, "open what lies below the changes in %s", named);
	ret->upper = TAKE_FD(upper);
	ret->lower = TAKE_FD(lower);
	return 0;
}

void keep_view_close(struct keep_view *v)
{
	v->upper = fd_close(v->upper);
	v->lower = fd_close(v->lower);
}
