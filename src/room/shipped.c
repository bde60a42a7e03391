/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * dpkg records the MD5 sum of each configuration file that a package brought (the field Conffiles
 * of its status file). So does ucf, with which packages install files that they generate for this
 * machine. A file that still has that sum has the same contents as on every machine with that
 * package, so it contains no secret of this one, whoever may read it. Files that were changed, or
 * that no package brought, are not shown. Links only say where something lies.
 *
 * The copy is made once for each state of the package database and of /etc itself, in a directory
 * of cloche's own that no room can reach. Its name identifies the state. It is made under another
 * name and renamed, so it is always complete. A process that uses a copy holds a shared lock on its
 * directory; a process that makes a new copy removes those that it can lock exclusively. */
#include "room/shipped.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/md5.h"
#include "base/sha256.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DPKG_STATUS "var/lib/dpkg/status"
#define UCF_HASHES "var/lib/ucf/hashfile"
#define SHIPPED_PREFIX ".etc-"

enum {
	DATABASE_MAX = 64 << 20,
	FILE_MAX_BYTES = 1 << 20,
	ALL_MAX_BYTES = 16 << 20,
	ENTRIES_MAX = 16384,
	DEPTH_MAX = 12,
	STATE_HEX = 24, /* of a name: for /etc and the databases */
	NAME_HEX = STATE_HEX + 8,
};

struct copying {
	int root, to;
	const char *const *without;
	size_t bytes, entries; /* so far */
};

/* Return whether one more entry is within the limits. */
static bool shipped_count(struct copying *c, size_t bytes)
{
	c->bytes += bytes;
	return ++c->entries <= ENTRIES_MAX && c->bytes <= ALL_MAX_BYTES;
}

/* Make the directories above path, in the copy. */
static int shipped_make_parents(const struct copying *c, const char *path)
{
	char part[PATH_MAX];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (mkdirat(c->to, part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int shipped_write(
	struct copying *c, const char *path, struct str text, const struct stat *st)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	mode_t mode = st->st_mode & 0111 ? 0755 : 0644;
	_cleanup_fd_ int fd = -1;
	int r;

	if (!shipped_count(c, text.n))
		return -E2BIG;
	r = shipped_make_parents(c, path);
	if (r < 0)
		return r;
	fd = openat(c->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	r = text.n ? fd_write_all(fd, text.p, text.n) : 0;
	/* Python matches compiled files to their source by its time. */
	if (r == 0 && (fchmod(fd, mode) < 0 || futimens(fd, times) < 0))
		r = -errno;
	return r;
}

/* sum NULL: with any contents. A file that cannot be read, or is not a regular file, is left out.
 */
static int shipped_copy_file(struct copying *c, const char *path, const struct str *sum)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	_cleanup_fd_ int fd = openat(c->root, path, flags);
	char hex[MD5_HEX_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
		fd_read_to_end(fd, &text) < 0)
		return 0;
	if (sum) {
		md5_hex(buf_str(&text), hex);
		if (!str_eq(*sum, str_from(hex)))
			return 0;
	}
	return shipped_write(c, path, buf_str(&text), &st);
}

/* Store a path in /etc without its first slash in ret. Return false if it leads elsewhere. */
static bool shipped_is_path(struct str path, char ret[PATH_MAX])
{
	if (!str_starts(path, STR("/etc/")) || path.n >= PATH_MAX || memchr(path.p, '\0', path.n))
		return false;
	snprintf(ret, PATH_MAX, "%.*s", STR_FMT(str_from_index(path, 1)));
	return !strstr(ret, "/../") && !str_ends(path, STR("/.."));
}

static int shipped_copy_listed(struct copying *c, struct str path, struct str sum)
{
	char name[PATH_MAX];

	return shipped_is_path(path, name) ? shipped_copy_file(c, name, &sum) : 0;
}

/* deb822(5): "Conffiles:" and lines of " PATH SUM", maybe with " obsolete" and the like. */
static int shipped_copy_conffiles(struct copying *c, struct str status)
{
	bool inside = false;
	int r = 0;

	while (status.n && r == 0) {
		struct str line = str_next_line(&status), path, sum;

		if (!str_starts(line, STR(" "))) {
			inside = str_starts(line, STR("Conffiles:"));
			continue;
		}
		line = str_from_index(line, 1);
		path = str_next(&line, ' ');
		sum = str_next(&line, ' ');
		if (inside)
			r = shipped_copy_listed(c, path, sum);
	}
	return r;
}

/* ucf(1): lines of "SUM  PATH". */
static int shipped_copy_ucf(struct copying *c, struct str hashes)
{
	int r = 0;

	while (hashes.n && r == 0) {
		struct str line = str_next_line(&hashes);
		struct str sum = str_next(&line, ' ');

		r = shipped_copy_listed(c, str_trim(line), sum);
	}
	return r;
}

static int shipped_visit(struct copying *c, const char *path, int depth,
	int (*fn)(struct copying *c, const char *path, mode_t mode, int depth))
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(c->root, path);
	struct dirent *e;
	char name[PATH_MAX];
	struct stat st;
	int r = 0;

	while (dir && r == 0 && (e = fs_list_next(dir))) {
		int n = snprintf(name, sizeof(name), "%s/%s", path, e->d_name);

		if (n < PATH_MAX && fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			r = fn(c, name, st.st_mode, depth);
	}
	return r;
}

static int shipped_copy_any(struct copying *c, const char *path, mode_t mode, int depth)
{
	if (S_ISDIR(mode) && (mode & S_IROTH) && (mode & S_IXOTH) && depth > 0)
		return shipped_visit(c, path, depth - 1, shipped_copy_any);
	return S_ISREG(mode) ? shipped_copy_file(c, path, NULL) : 0;
}

static bool shipped_is_without(const struct copying *c, const char *path)
{
	for (const char *const *one = c->without; *one; one++)
		if (strcmp(path, *one) == 0)
			return true;
	return false;
}

static int shipped_copy_link(struct copying *c, const char *path)
{
	char to[PATH_MAX], from_link[PATH_MAX + 3], target[PATH_MAX];
	ssize_t n = readlinkat(c->root, path, to, sizeof(to) - 1);
	struct stat st;
	int r;

	if (n <= 0)
		return 0;
	to[n] = '\0';
	snprintf(from_link, sizeof(from_link), "%s%s", *to == '/' ? "" : "../", to);
	if (!fs_resolve(path, from_link, target))
		return 0;
	if (strncmp(target, "usr/", 4) != 0 &&
		(fstatat(c->to, target, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode)))
		return 0;
	if (!shipped_count(c, 0))
		return -E2BIG;
	r = shipped_make_parents(c, path);
	if (r == 0 && symlinkat(to, c->to, path) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

static int shipped_copy_links(struct copying *c, const char *path, mode_t mode, int depth)
{
	if (shipped_is_without(c, path))
		return 0;
	if (S_ISDIR(mode) && (mode & S_IROTH) && (mode & S_IXOTH) && depth > 0)
		return shipped_visit(c, path, depth - 1, shipped_copy_links);
	return S_ISLNK(mode) ? shipped_copy_link(c, path) : 0;
}

static int shipped_make_own(struct copying *c, const struct shipped_own *own)
{
	const struct stat ordinary = {.st_mode = S_IFREG | 0644};
	int r = 0;

	for (; own->path && r == 0; own++)
		if (own->text.p)
			r = shipped_write(c, own->path, own->text, &ordinary);
		else if (mkdirat(c->to, own->path, 0755) < 0 && errno != EEXIST)
			r = -errno;
	return r;
}

/* Make something to mount on at a path that the host has. */
static int shipped_make_place(struct copying *c, const char *path)
{
	struct stat st;
	int r;

	if (fstatat(c->root, path, &st, 0) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return shipped_write(c, path, STR_NULL, &st);
	r = shipped_make_parents(c, path);
	if (r == 0 && mkdirat(c->to, path, 0755) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

int shipped_copy(int root, int to, const struct shipped_own *own, const char *const *named,
	const char *const *without)
{
	struct copying c = {.root = root, .to = to, .without = without};
	_cleanup_(buf_donep) struct buf status = BUF_INIT(DATABASE_MAX);
	_cleanup_(buf_donep) struct buf hashes = BUF_INIT(DATABASE_MAX);
	struct stat st;
	int r;

	if (fd_read_file(root, DPKG_STATUS, &status, NULL) < 0)
		return -ENOENT;
	if (mkdirat(to, "etc", 0755) < 0 && errno != EEXIST)
		return -errno;
	r = shipped_make_own(&c, own);
	for (; *without && r == 0; without++)
		r = shipped_make_place(&c, *without);
	if (r == 0)
		r = shipped_copy_conffiles(&c, buf_str(&status));
	if (r == 0 && fd_read_file(root, UCF_HASHES, &hashes, NULL) == 0)
		r = shipped_copy_ucf(&c, buf_str(&hashes));
	for (; *named && r == 0; named++)
		if (fstatat(root, *named, &st, 0) == 0)
			r = shipped_copy_any(&c, *named, st.st_mode, DEPTH_MAX);
	return r == 0 ? shipped_visit(&c, "etc", DEPTH_MAX, shipped_copy_links) : r;
}

static void shipped_hash_paths(struct sha256 *h, const char *const *paths)
{
	for (; *paths; paths++)
		sha256_add_framed(h, str_from(*paths));
	sha256_add_framed(h, STR_NULL);
}

/* Make the name of the copy for the current state of /etc and the databases, and then for our own
 * files and what is copied, which another version of cloche may have otherwise. */
static void shipped_name(int root, const struct shipped_own *own, const char *const *named,
	const char *const *without, char ret[sizeof(SHIPPED_PREFIX) + NAME_HEX])
{
	static const char *const watched[] = {DPKG_STATUS, UCF_HASHES, "etc"};
	char state_hex[SHA256_HEX_MAX], own_hex[SHA256_HEX_MAX];
	struct sha256 h;

	sha256_init(&h);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
		struct stat st = {0};
		uint64_t state[4] = {0};

		if (fstatat(root, watched[i], &st, 0) == 0) {
			state[0] = st.st_ino;
			state[1] = (uint64_t)st.st_size;
			state[2] = (uint64_t)st.st_mtim.tv_sec;
			state[3] = (uint64_t)st.st_mtim.tv_nsec;
		}
		sha256_add_framed(&h, str_make(state, sizeof(state)));
	}
	sha256_hex(&h, state_hex);
	sha256_init(&h);
	shipped_hash_paths(&h, named);
	shipped_hash_paths(&h, without);
	for (; own->path; own++) {
		sha256_add_framed(&h, str_from(own->path));
		sha256_add_framed(&h, own->text);
	}
	sha256_hex(&h, own_hex);
	snprintf(ret, sizeof(SHIPPED_PREFIX) + NAME_HEX, SHIPPED_PREFIX "%.*s%.*s", STATE_HEX,
		state_hex, NAME_HEX - STATE_HEX, own_hex);
}

/* Open a copy and hold it; return -ENOENT if it does not exist or is being removed. */
static int shipped_hold(int base, const char *name)
{
	_cleanup_fd_ int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return -ENOENT;
	return TAKE_FD(fd);
}

/* Remove the copies of earlier states that no process holds, and partial copies that a crash left.
 * One of the same state belongs to another version of cloche: if each removed the other's, every
 * start of either would copy. */
static void shipped_remove_others(int base, const char *name)
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(base, ".");
	struct dirent *e;

	while (dir && (e = fs_list_next(dir))) {
		_cleanup_fd_ int fd = -1;

		if (!str_starts(str_from(e->d_name), STR(SHIPPED_PREFIX)) ||
			strncmp(e->d_name, name, strlen(SHIPPED_PREFIX) + STATE_HEX) == 0)
			continue;
		fd = openat(base, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			fs_remove_tree(base, e->d_name);
	}
}

static int shipped_make(int base, int root, const char *name, const struct shipped_own *own,
	const char *const *named, const char *const *without)
{
	char half[64];
	_cleanup_fd_ int fd = -1;
	int r;

	snprintf(half, sizeof(half), SHIPPED_PREFIX "%d", getpid());
	fs_remove_tree(base, half);
	if (mkdirat(base, half, 0755) < 0)
		return -errno;
	fd = shipped_hold(base, half);
	r = fd < 0 ? fd : shipped_copy(root, fd, own, named, without);
	if (r == 0 && renameat(base, half, base, name) < 0)
		r = -errno;
	if (r == 0) {
		shipped_remove_others(base, name);
		return TAKE_FD(fd);
	}
	fs_remove_tree(base, half);
	/* Another process was faster. */
	return r == -EEXIST || r == -ENOTEMPTY ? shipped_hold(base, name) : r;
}

int shipped_open(int base, const struct shipped_own *own, const char *const *named,
	const char *const *without)
{
	_cleanup_fd_ int root = -1;
	char name[sizeof(SHIPPED_PREFIX) + NAME_HEX];
	mode_t mask;
	int r;

	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || faccessat(root, DPKG_STATUS, R_OK, 0) < 0)
		return -errno;
	shipped_name(root, own, named, without, name);
	r = shipped_hold(base, name);
	if (r >= 0)
		return r;
	mask = umask(022);
	r = shipped_make(base, root, name, own, named, without);
	umask(mask);
	return r;
}
