/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/fs.h"
#include "base/fd.h"
#include "base/rand.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

bool fs_is_opaque(int dir)
{
	char value[8];

	return fgetxattr(dir, FS_OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

bool fs_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int fs_open_beneath(int dir, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC |
					      (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY)),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   (dir == AT_FDCWD ? 0 : RESOLVE_BENEATH)};
	long fd;

	if (dir == AT_FDCWD && path[0] != '/')
		return -EINVAL;
	do
		fd = syscall(SYS_openat2, dir, path[0] ? path : ".", &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : (int)fd;
}

int fs_open_again(int fd)
{
	enum { TRIES = 1000 };
	char path[PATH_MAX];
	struct stat want, st;

	if (fstat(fd, &want) < 0)
		return -errno;
	/* Whoever renames the directories around it at that moment makes us miss it. */
	for (int i = 0; i < TRIES; i++) {
		int r = fd_path(fd, path),
		    again = r < 0 ? r : fs_open_beneath(AT_FDCWD, path, O_PATH);

		if (again >= 0 && fstat(again, &st) == 0 && st.st_dev == want.st_dev &&
			st.st_ino == want.st_ino)
			return again;
		fd_close(again);
		if (r < 0 ||
			(again < 0 && again != -ENOENT && again != -ENOTDIR && again != -ELOOP))
			return again;
		if (fstat(fd, &want) < 0 || want.st_nlink == 0)
			return -ENOENT;
	}
	return -ESTALE;
}

int fs_write_atomic(int dirfd, const char *path, struct str data, unsigned mode, bool durable,
	struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	_cleanup_(freep) char *tmp = NULL;
	int r;

	if (asprintf(&tmp, "%s.%08x.tmp", path, (unsigned)rand_u64()) < 0) {
		tmp = NULL;
		return err_nomem(err);
	}
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return err_sys(err, errno, "create %s", tmp);
	r = fd_write_all(fd, data.p, data.n);
	if (r == 0 && durable && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, path) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dirfd, tmp, 0);
		return err_sys(err, -r, "write %s", path);
	}
	return 0;
}

int fs_mkdirs(const char *path, unsigned mode, struct cloche_err *err)
{
	_cleanup_(freep) char *copy = strdup(path);

	if (!copy)
		return err_nomem(err);
	for (char *at = copy + 1; *copy; at++) {
		char c = *at;

		if (c != '/' && c != '\0')
			continue;
		*at = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return err_sys(err, errno, "create directory %s", copy);
		*at = c;
		if (c == '\0')
			break;
	}
	return 0;
}

int fs_check_private(int fd, const char *path, struct cloche_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %s", path);
	if (st.st_uid != geteuid())
		return err_set(err, E_DENIED, "%s belongs to uid %u, not to us", path, st.st_uid);
	if (st.st_mode & 0022)
		return err_set(err, E_DENIED, "%s is writable by others (mode %04o)", path,
			st.st_mode & 07777);
	return 0;
}

int fs_open_private_dir(const char *path, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		r = fs_mkdirs(path, 0700, err);
		if (r < 0)
			return r;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	r = fs_check_private(fd, path, err);
	return r < 0 ? r : TAKE_FD(fd);
}

DIR *fs_list(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list)
		fd_close(fd);
	return list;
}

struct dirent *fs_list_next(DIR *list)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(list);
	} while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
	return e;
}

int fs_strip_rights(int dirfd, const char *name)
{
	_cleanup_fd_ int fd = name[0] ? openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
				      : fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	char path[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	/* Capabilities that an ordinary user can set are worth nothing outside his namespaces. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (geteuid() == 0 && removexattr(path, FS_CAPABILITIES) < 0 && errno != ENODATA &&
		errno != EOPNOTSUPP)
		return -errno;
	return st.st_mode & (S_ISUID | S_ISGID) ? fd_chmod(fd, st.st_mode & 01777) : 0;
}

int fs_rename_new(int dirfd, const char *from, const char *to)
{
	struct stat st;

	if (syscall(SYS_renameat2, dirfd, from, dirfd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dirfd, from, dirfd, to, 0) == 0)
		return unlinkat(dirfd, from, 0) < 0 ? -errno : 0;
	if (fstatat(dirfd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	if (errno != ENOENT)
		return -errno;
	return renameat(dirfd, from, dirfd, to) < 0 ? -errno : 0;
}

unsigned fs_umask(void)
{
	_cleanup_fd_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[256]; /* it is the second line, after our name */
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	unsigned mask;
	char *at;

	text[MAX(n, 0)] = '\0';
	at = strstr(text, "\nUmask:");
	return at && sscanf(at, " Umask: %o", &mask) == 1 ? mask & 0777 : 077;
}

const char *fs_below(const char *path, const char *dir)
{
	if ((path[0] == '/') != (dir[0] == '/'))
		return NULL;
	for (;;) {
		size_t n;

		path += strspn(path, "/");
		dir += strspn(dir, "/");
		n = strcspn(dir, "/");
		if (n == 0)
			return path;
		if (strcspn(path, "/") != n || memcmp(path, dir, n) != 0)
			return NULL;
		path += n;
		dir += n;
	}
}

bool fs_is_within_any(const char *path, char *const *dirs)
{
	for (; dirs && *dirs; dirs++)
		if (fs_is_within(path, *dirs))
			return true;
	return false;
}

char *fs_join(const char *a, const char *b)
{
	char *joined;
	size_t n = strlen(a);

	if (b[0] == '/')
		return strdup(b);
	if (asprintf(&joined, "%s%s%s", a, n && a[n - 1] == '/' ? "" : "/", b) < 0)
		return NULL;
	return joined;
}

int fs_join_in(char *ret, size_t size, const char *in, const char *name)
{
	int n = snprintf(ret, size, "%s%s%s", in, in[0] && name[0] ? "/" : "", name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Clean the absolute path of "." and doubled slashes, and of ".." if up is set. Return false if one
 * of those leads above "/". */
static bool clean_path(char *path, bool up)
{
	char *to = path;
	bool inside = true;

	/* In place: the write position never overtakes the read position. */
	for (struct str rest = str_from(path); rest.n;) {
		struct str part = str_prefix(rest, str_chr(rest, '/'));

		rest = str_from_index(rest, part.n + 1);
		if (part.n == 0 || str_eq(part, STR(".")))
			continue;
		if (up && str_eq(part, STR(".."))) {
			inside &= to > path;
			while (to > path && *--to != '/')
				;
			continue;
		}
		*to++ = '/';
		memmove(to, part.p, part.n);
		to += part.n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
	return inside;
}

static char *make_absolute(const char *path, bool up)
{
	_cleanup_(freep) char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
	char *whole;

	if (path[0] != '/' && !cwd)
		return NULL;
	whole = fs_join(cwd ? cwd : "/", path);
	if (whole)
		(void)clean_path(whole, up);
	return whole;
}

char *fs_absolute(const char *path)
{
	return make_absolute(path, false);
}

char *fs_lexical(const char *path)
{
	return make_absolute(path, true);
}

bool fs_resolve(const char *dir, const char *path, char ret[PATH_MAX])
{
	char whole[2 * PATH_MAX];
	size_t n;

	if (snprintf(whole, sizeof(whole), "/%s/%s", path[0] == '/' ? "" : dir, path) >=
			(int)sizeof(whole) ||
		!clean_path(whole, true))
		return false;
	n = strlen(whole);
	if (n > PATH_MAX)
		return false;
	memcpy(ret, whole + 1, n);
	return true;
}

int fs_notify(int dir, uint32_t changes)
{
	_cleanup_fd_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (fd < 0 || inotify_add_watch(fd, path, changes | IN_ONLYDIR) < 0)
		return -errno;
	return TAKE_FD(fd);
}

void fs_notify_clear(int watch)
{
	char events[4096];

	while (read(watch, events, sizeof(events)) > 0)
		;
}

enum { HOME_ACCOUNT_MAX = 16384 };

char *fs_home(void)
{
	const char *home = secure_getenv("HOME");
	struct passwd entry, *found = NULL;
	_cleanup_(freep) char *text = NULL; /* its pages are touched only if they are needed */

	if (home && home[0] == '/' && home[1] != '\0')
		return strdup(home);
	text = malloc(HOME_ACCOUNT_MAX);
	if (!text || getpwuid_r(getuid(), &entry, text, HOME_ACCOUNT_MAX, &found) != 0 || !found ||
		found->pw_dir[0] != '/' || found->pw_dir[1] == '\0')
		return NULL;
	return strdup(found->pw_dir);
}

int fs_config_path(const char *name, char **ret)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME");
	_cleanup_(freep) char *home = NULL, *folder = NULL;

	*ret = NULL;
	if (!config || config[0] != '/') {
		home = fs_home();
		if (!home)
			return 0;
		folder = fs_join(home, ".config");
	} else {
		folder = strdup(config);
	}
	if (!folder)
		return -ENOMEM;
	if (asprintf(ret, "%s/cloche/%s", folder, name) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}
