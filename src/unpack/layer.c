/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each entry goes into the tree of the layer, by a descriptor of its
 * directory, which is opened beneath the tree whatever links the layer has made (openat2). Existing
 * files are never opened for writing: an entry first removes what it replaces.
 *
 * Whiteouts (OCI image format, "Layers") are converted to overlayfs' form: a device 0:0 hides a
 * name, and the attribute user.overlay.opaque hides everything below a directory. Attributes of
 * that kind in a layer are left out, since overlayfs would obey them.
 *
 * Without root's rights, owners cannot be set. They are written down, and directories stay writable
 * for the unpacking user, so that the tree can be removed again. */
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"
#include "unpack/unpack.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"

enum { DIR_TIMES_MAX = 1 << 20 };

/* Times of directories are set last, because every entry made in a directory changes its time. */
struct dir_time {
	char *path; /* heap */
	struct timespec when;
};

struct layer {
	struct stream stream;
	int tree, owners;
	bool root; /* owners can be set */
	struct unpack_counts counts;
	struct dir_time *times; /* heap */
	size_t times_n, times_room;
};

/* The place of an entry. */
struct place {
	int dir;          /* owned */
	const char *name; /* in it; borrowed; "": the tree itself */
	const char *path; /* the whole path */
};

static void place_donep(struct place *p)
{
	fd_close(p->dir);
}

static int open_beneath(int dir, const char *path, uint64_t resolve)
{
	return sys_openat2(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC, resolve);
}

/* Return the depth of a directory in the tree, at most UNPACK_DEPTH_MAX + 1. */
static unsigned depth_of(int tree, int dir)
{
	_cleanup_fd_ int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat top, st;
	unsigned depth = 0;

	if (fstat(tree, &top) < 0)
		return UNPACK_DEPTH_MAX + 1;
	while (depth <= UNPACK_DEPTH_MAX && fstat(at, &st) == 0 &&
		(st.st_ino != top.st_ino || st.st_dev != top.st_dev)) {
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		fd_close(at);
		at = up;
		depth++;
	}
	return depth;
}

/* Open a directory of the tree, resolving links inside the tree. Return -1 with errno. */
static int open_dir(const struct layer *l, const char *path)
{
	int fd = open_beneath(l->tree, *path ? path : ".",
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);

	if (fd >= 0 || errno != ELOOP)
		return fd;
	fd = open_beneath(l->tree, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
	/* Through links a tree could become deeper than any path, which is no image. */
	if (fd >= 0 && depth_of(l->tree, fd) > UNPACK_DEPTH_MAX) {
		fd_close(fd);
		errno = ENAMETOOLONG;
		return -1;
	}
	return fd;
}

/* Hide what is below a directory. Return -1 with errno. */
static int mark_opaque(int dir, const char *name)
{
	_cleanup_fd_ int fd =
		openat(dir, *name ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -1 : fsetxattr(fd, FS_OPAQUE, "y", 1, 0);
}

/* What to do about directories of a path that are not there. */
enum need {
	NEED_NOTHING,
	NEED_MISSING, /* make them, as a layer may leave them out */
	NEED_HIDDEN,  /* make also those that the layer has hidden before */
};

/* Make a directory that hides what is below if the layer has hidden the name before. Return -1 with
 * errno. */
static int make_dir(int parent, const char *name, enum need need)
{
	struct stat st;
	bool hidden = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fs_is_whiteout(&st);

	if (hidden && need != NEED_HIDDEN) {
		errno = ENOTDIR;
		return -1;
	}
	if (hidden && unlinkat(parent, name, 0) < 0)
		return -1;
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -1;
	return hidden ? mark_opaque(parent, name) : 0;
}

/* Open a directory as open_dir() does, or make it. */
static int need_dir(const struct layer *l, const char *path, enum need need)
{
	int fd = open_dir(l, path);
	_cleanup_(freep) char *up = NULL;
	_cleanup_fd_ int parent = -1;
	const char *name;
	char *slash;

	if (fd >= 0 || need == NEED_NOTHING || (errno != ENOENT && errno != ENOTDIR))
		return fd;
	up = strdup(path);
	if (!up)
		return -1;
	slash = strrchr(up, '/');
	name = slash ? slash + 1 : up;
	if (slash)
		*slash = '\0';
	parent = need_dir(l, slash ? up : "", need);
	if (parent < 0 || make_dir(parent, name, need) < 0)
		return -1;
	return open_dir(l, path);
}

static int no_attributes(struct cloche_err *err)
{
	err_set(err, E_UNSUPPORTED,
		"the file system of the images keeps no attributes (user.overlay.opaque)");
	err_hint(err, "set CLOCHE_STATE_DIR to a directory on ext4, xfs or btrfs");
	return -E_UNSUPPORTED;
}

/* Return 1 if a name of the path is no directory in the layer, and need is NEED_MISSING. */
static int find_place(const struct layer *l, char *path, enum need need, struct place *ret,
	struct cloche_err *err)
{
	char *slash = strrchr(path, '/');

	*ret = (struct place){.dir = -1, .name = slash ? slash + 1 : path, .path = path};
	if (slash)
		*slash = '\0';
	ret->dir = need_dir(l, slash ? path : "", need);
	if (slash)
		*slash = '/';
	if (ret->dir >= 0)
		return 0;
	if (errno == ENOTDIR && need == NEED_MISSING)
		return 1;
	if (errno == EOPNOTSUPP)
		return no_attributes(err);
	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(err, E_NO_SPACE, "%.200s: %s", path, err_errno_text(errno));
	return err_set(err, E_CORRUPT, "%.200s: its directory cannot be opened in the layer: %s",
		path, err_errno_text(errno));
}

/* Set the error of a system call about an entry. */
static int layer_failed(const char *path, const char *what, struct cloche_err *err)
{
	int e = errno;

	if (e == ENOSPC || e == EDQUOT)
		return err_set(err, E_NO_SPACE, "%s %.200s: %s", what, path, err_errno_text(e));
	return err_sys(err, e, "%s %.200s", what, path);
}

static int set_opaque(int dir, const char *name, const char *path, struct cloche_err *err)
{
	if (mark_opaque(dir, name) == 0)
		return 0;
	return errno == EOPNOTSUPP ? no_attributes(err)
				   : layer_failed(path, "hide what is below", err);
}

/* Handle a ".wh." entry. */
static int take_whiteout(const struct place *p, struct cloche_err *err)
{
	const char *hidden = p->name + sizeof(WHITEOUT) - 1;
	struct stat st;

	if (strcmp(p->name, OPAQUE) == 0)
		return set_opaque(p->dir, "", p->path, err);
	/* Ignore other special names of aufs. */
	if (strncmp(hidden, WHITEOUT, sizeof(WHITEOUT) - 1) == 0)
		return 0;
	if (*hidden == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
		return err_set(err, E_CORRUPT, "%.200s: it hides nothing that has a name", p->path);
	if (fstatat(p->dir, hidden, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISDIR(st.st_mode) ? set_opaque(p->dir, hidden, p->path, err) : 0;
	if (mknodat(p->dir, hidden, S_IFCHR, makedev(0, 0)) < 0)
		return layer_failed(p->path, "make the whiteout", err);
	return 0;
}

/* Remove what an entry replaces; *ret_was_hidden if that was a whiteout. A directory is kept if the
 * new entry is one too. */
static int make_room_for(
	const struct place *p, bool for_dir, bool *ret_was_hidden, struct cloche_err *err)
{
	struct stat st;
	int r;

	*ret_was_hidden = false;
	if (!*p->name || fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (for_dir && S_ISDIR(st.st_mode))
		return 0;
	*ret_was_hidden = fs_is_whiteout(&st);
	r = fs_remove_tree(p->dir, p->name);
	return r < 0 ? err_sys(err, -r, "replace %.200s", p->path) : 0;
}

static int write_data(
	struct layer *l, int fd, const struct place *p, int64_t size, struct cloche_err *err)
{
	for (;;) {
		const void *data;
		size_t n;
		int64_t offset;
		int r = archive_read_data_block(l->stream.tar, &data, &n, &offset);

		if (r == ARCHIVE_EOF)
			break;
		if (r < ARCHIVE_WARN)
			return stream_error(&l->stream, p->path, err);
		while (n > 0) {
			ssize_t done = pwrite(fd, data, n, offset);

			if (done < 0 && errno == EINTR)
				continue;
			if (done < 0)
				return layer_failed(p->path, "write", err);
			data = (const char *)data + done;
			n -= (size_t)done;
			offset += done;
			l->counts.bytes += (uint64_t)done;
		}
	}
	return ftruncate(fd, size) < 0 ? layer_failed(p->path, "write", err) : 0;
}

static int make_file(
	struct layer *l, struct archive_entry *entry, const struct place *p, struct cloche_err *err)
{
	int64_t size = archive_entry_size(entry);
	_cleanup_fd_ int fd = -1;

	if (size < 0 || (uint64_t)size > l->stream.max)
		return err_set(err, E_LIMIT, "%.200s: it is too large", p->path);
	fd = openat(p->dir, p->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? layer_failed(p->path, "create", err) : write_data(l, fd, p, size, err);
}

static int make_hard_link(const struct layer *l, struct archive_entry *entry, const struct place *p,
	struct cloche_err *err)
{
	const char *named = archive_entry_hardlink(entry);
	_cleanup_(place_donep) struct place from = {.dir = -1};
	char path[PATH_MAX];
	struct stat st;
	bool was_hidden;
	int r = unpack_path(named, path, err);

	if (r == 0 && strcmp(path, p->path) == 0)
		return 0;
	if (r == 0)
		r = find_place(l, path, NEED_NOTHING, &from, err);
	if (r == 0 &&
		(fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW) < 0 || fs_is_whiteout(&st)))
		r = err_set(err, E_CORRUPT, "no such file in the layer: %.200s", path);
	if (r == 0)
		r = make_room_for(p, false, &was_hidden, err);
	if (r == 0 && linkat(from.dir, from.name, p->dir, p->name, 0) < 0)
		r = layer_failed(p->path, "link", err);
	return r < 0 ? err_wrap(err, r, "hard link %.200s", p->path) : 0;
}

/* Set the attributes that a room could use. */
static int set_attributes(const struct layer *l, struct archive_entry *entry, const struct place *p,
	struct cloche_err *err)
{
	_cleanup_fd_ int at = -1;
	char path[64];
	const char *name;
	const void *value;
	size_t n;

	for (archive_entry_xattr_reset(entry);
		archive_entry_xattr_next(entry, &name, &value, &n) == ARCHIVE_OK;) {
		bool of_user =
			strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0;
		bool capability = l->root && strcmp(name, "security.capability") == 0;

		if (!of_user && !capability)
			continue;
		if (at < 0)
			at = openat(
				p->dir, *p->name ? p->name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		/* The image can be used without attributes that the file system or the kernel
		 * refuses. */
		if (setxattr(path, name, value, n, 0) < 0 && errno == ENOSPC)
			return layer_failed(p->path, "set the attributes of", err);
	}
	return 0;
}

/* Add the ids, mode and path of an entry to the list of owners. */
static int note_owner(
	struct layer *l, struct archive_entry *entry, const struct place *p, struct cloche_err *err)
{
	char line[PATH_MAX + 64];
	int n, r;

	if (archive_entry_uid(entry) == 0 && archive_entry_gid(entry) == 0)
		return 0;
	l->counts.owners++;
	n = snprintf(line, sizeof(line), "%lld:%lld %04o %s", (long long)archive_entry_uid(entry),
		(long long)archive_entry_gid(entry), (unsigned)archive_entry_perm(entry), p->path);
	line[MIN((size_t)n, sizeof(line) - 1)] = '\0';
	r = fd_write_all(l->owners, line, strlen(line) + 1);
	return r < 0 ? err_sys(err, -r, "write the list of owners") : 0;
}

/* Return the entry's time, or the start of 1970 if it has none. */
static struct timespec time_of(struct archive_entry *entry)
{
	return (struct timespec){.tv_sec = archive_entry_mtime(entry),
		.tv_nsec = archive_entry_mtime_nsec(entry) % 1000000000};
}

static int keep_time(
	struct layer *l, const struct place *p, struct timespec when, struct cloche_err *err)
{
	struct dir_time *grown;

	if (l->times_n == DIR_TIMES_MAX)
		return 0;
	grown = array_room(l->times, l->times_n, &l->times_room, sizeof(*grown));
	if (!grown)
		return err_nomem(err);
	l->times = grown;
	l->times[l->times_n] = (struct dir_time){strdup(p->path), when};
	return l->times[l->times_n].path ? (l->times_n++, 0) : err_nomem(err);
}

/* Set owner, mode, attributes and time, in an order in which no step undoes another. */
static int set_meta(
	struct layer *l, struct archive_entry *entry, const struct place *p, struct cloche_err *err)
{
	const char *name = *p->name ? p->name : ".";
	bool link = archive_entry_filetype(entry) == AE_IFLNK;
	bool dir = archive_entry_filetype(entry) == AE_IFDIR;
	mode_t mode = archive_entry_perm(entry) & 07777;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(entry)};
	int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
	int r;

	if (uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
		return err_set(err, E_CORRUPT, "%.200s: its owner is no number of a user", p->path);
	if (l->root) {
		if (fchownat(p->dir, name, (uid_t)uid, (gid_t)gid, AT_SYMLINK_NOFOLLOW) < 0)
			return layer_failed(p->path, "give to its owner", err);
	} else {
		r = note_owner(l, entry, p, err);
		if (r < 0)
			return r;
		mode |= dir ? 0700 : 0;
	}
	if (!link && fchmodat(p->dir, name, mode, 0) < 0)
		return layer_failed(p->path, "set the mode of", err);
	r = set_attributes(l, entry, p, err);
	if (r == 0 && dir)
		return keep_time(l, p, times[1], err);
	if (r == 0)
		(void)utimensat(p->dir, name, times, AT_SYMLINK_NOFOLLOW);
	return r;
}

/* Skip devices below /dev, as a room has its own. Refuse others, which no image needs. */
static int take_device(struct layer *l, const struct place *p, struct cloche_err *err)
{
	if (strncmp(p->path, "dev/", 4) != 0)
		return err_set(err, E_DENIED,
			"%.200s: it is a device, which an image may have below /dev alone",
			p->path);
	l->counts.skipped++;
	return 0;
}

static int make_entry(
	struct layer *l, struct archive_entry *entry, const struct place *p, struct cloche_err *err)
{
	unsigned type = archive_entry_filetype(entry);
	bool was_hidden = false;
	const char *target;
	int r;

	if (!*p->name && type != AE_IFDIR)
		return err_set(err, E_CORRUPT, "the top of the layer is no directory");
	r = make_room_for(p, type == AE_IFDIR, &was_hidden, err);
	if (r < 0)
		return r;
	switch (type) {
	case AE_IFREG:
		r = make_file(l, entry, p, err);
		break;
	case AE_IFDIR:
		if (*p->name && mkdirat(p->dir, p->name, 0700) < 0 && errno != EEXIST)
			return layer_failed(p->path, "create", err);
		r = was_hidden ? set_opaque(p->dir, p->name, p->path, err) : 0;
		break;
	case AE_IFLNK:
		target = archive_entry_symlink(entry);
		if (!target || !*target)
			return err_set(err, E_CORRUPT, "%.200s: a link to nothing", p->path);
		r = symlinkat(target, p->dir, p->name) < 0 ? layer_failed(p->path, "create", err)
							   : 0;
		break;
	case AE_IFIFO:
		r = mknodat(p->dir, p->name, S_IFIFO | 0600, 0) < 0
			    ? layer_failed(p->path, "create", err)
			    : 0;
		break;
	default:
		return err_set(err, E_CORRUPT, "%.200s: an entry of no known type", p->path);
	}
	return r < 0 ? r : set_meta(l, entry, p, err);
}

static bool is_whiteout_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, WHITEOUT, sizeof(WHITEOUT) - 1) == 0;
}

static int layer_take_entry(
	void *user, struct archive_entry *entry, char *path, struct cloche_err *err)
{
	struct layer *l = user;
	unsigned type = archive_entry_filetype(entry);
	bool whiteout = is_whiteout_name(path);
	_cleanup_(place_donep) struct place p = {.dir = -1};
	int r = find_place(l, path, whiteout ? NEED_MISSING : NEED_HIDDEN, &p, err);

	if (r < 0)
		return r;
	/* Below what is hidden as a whole, or no directory, there is nothing more to hide. */
	if (whiteout)
		return r > 0 ? 0 : take_whiteout(&p, err);
	if (archive_entry_hardlink(entry))
		return make_hard_link(l, entry, &p, err);
	if (type == AE_IFCHR || type == AE_IFBLK)
		return take_device(l, &p, err);
	if (type == AE_IFSOCK) {
		l->counts.skipped++;
		return 0;
	}
	return make_entry(l, entry, &p, err);
}

/* If a directory was replaced meanwhile, its time does not matter. */
static void set_dir_times(struct layer *l)
{
	while (l->times_n > 0) {
		struct dir_time *t = &l->times[--l->times_n];
		struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, t->when};
		_cleanup_fd_ int fd = open_dir(l, t->path);

		if (fd >= 0)
			(void)utimensat(fd, "", times, AT_EMPTY_PATH);
		free(t->path);
	}
	free(l->times);
}

int unpack_layer(int fd, int tree, int owners, uint64_t max, char digest[SHA256_HEX_MAX],
	struct unpack_counts *ret, struct cloche_err *err)
{
	struct layer l = {.tree = tree, .owners = owners, .root = geteuid() == 0};
	int r = stream_each(&l.stream, fd, max, layer_take_entry, &l, err);

	set_dir_times(&l);
	if (r == 0)
		sha256_hex(&l.stream.digest, digest);
	stream_close(&l.stream);
	*ret = l.counts;
	ret->entries = l.stream.entries;
	return r;
}
