/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-CONSENT)
 *
 * The directory, its folder and the files are opened one below the other without following a link,
 * and checked by their descriptors. They must belong to the caller: a file that another user has
 * put into a shared directory is never obeyed. Root's files are accepted for root only, and a
 * user's files are refused under that user's sudo. The directories above do not matter: somebody
 * who renames one can only put other files of the caller in its place, and consent is for a path
 * and for exact bytes.
 *
 * A group may have write access if it is the caller's alone (named like the account, its primary
 * group, no other members). Many systems set up accounts like this, with umask 002. */
#include "config/found.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, ACCOUNT_MAX = 65536 };

/* The first that is there counts. */
static const struct {
	const char *place, *name;
} places[] = {{".cloche", "sandbox.yaml"}, {".airut", "sandbox.yaml"}, {".airut", "airut.yaml"}};

static int found_refuse(struct cloche_err *err, const char *path, const char *why)
{
	err_set(err, E_DENIED, "%s is not obeyed: %s", path, why);
	err_hint(err, "--config FILE obeys a file that you name, --no-config goes on without it");
	return -E_DENIED;
}

/* Whether the caller is the only member of the group. */
static bool is_own_group(gid_t gid)
{
	_cleanup_(freep) char *text = malloc(2 * (size_t)ACCOUNT_MAX);
	struct passwd account, *person = NULL;
	struct group entry, *group = NULL;

	if (!text || getpwuid_r(geteuid(), &account, text, ACCOUNT_MAX, &person) != 0 || !person ||
		getgrgid_r(gid, &entry, text + ACCOUNT_MAX, ACCOUNT_MAX, &group) != 0 || !group)
		return false;
	if (gid != person->pw_gid || strcmp(group->gr_name, person->pw_name) != 0)
		return false;
	for (char **member = group->gr_mem; *member; member++)
		if (strcmp(*member, person->pw_name) != 0)
			return false;
	return true;
}

/* With an access list, the group bits apply to everybody whom it names. */
static bool has_access_list(int fd)
{
	char link[64];

	/* This path works for O_PATH descriptors, too. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return getxattr(link, "system.posix_acl_access", NULL, 0) >= 0;
}

/* root_too: root may be the owner as well, since no other user can forge files in root's
 * directory. */
static int judge_owner(
	int fd, const struct stat *st, const char *path, bool root_too, struct cloche_err *err)
{
	char why[128];

	if (st->st_uid != geteuid() && !(root_too && st->st_uid == 0)) {
		snprintf(why, sizeof(why), "it belongs to uid %u, and you are uid %u",
			(unsigned)st->st_uid, (unsigned)geteuid());
		return found_refuse(err, path, why);
	}
	if (st->st_mode & S_IWOTH)
		return found_refuse(err, path, "everybody can write to it (chmod o-w)");
	if ((st->st_mode & S_IWGRP) && (has_access_list(fd) || !is_own_group(st->st_gid))) {
		snprintf(why, sizeof(why),
			"its group (gid %u), which is not yours alone, can write to it (chmod g-w)",
			(unsigned)st->st_gid);
		return found_refuse(err, path, why);
	}
	return 0;
}

/* Opens name below dirfd. Returns 1 if it is there. */
static int open_own(int dirfd, const char *name, const char *path, mode_t type, int *ret,
	struct cloche_err *err)
{
	_cleanup_fd_ int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP)
		return found_refuse(err, path, "it is a link");
	if (fd < 0 && (errno == ENXIO || errno == ENODEV))
		return found_refuse(err, path, "it is a socket or a device");
	/* If not even fstatat() is allowed, nothing can be found. */
	if (fd < 0 && errno == EACCES && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "look at %s", path);
	if ((st.st_mode & S_IFMT) != type)
		return found_refuse(err, path,
			type == S_IFREG ? "it is not a regular file" : "it is not a directory");
	r = judge_owner(fd, &st, path, false, err);
	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	return 1;
}

/* 1 if it is there. */
static int read_own(
	int dirfd, const char *place, const char *name, struct buf *ret, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%s/%s", place, name);
	r = open_own(dirfd, name, path, S_IFREG, &fd, err);
	if (r <= 0)
		return r;
	r = fd_read_to_end(fd, ret);
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "%s is larger than %d bytes", path, FILE_MAX);
	return r < 0 ? err_sys(err, -r, "read %s", path) : 1;
}

static int read_place(
	int dirfd, const char *place, const char *name, struct found *f, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	int r = open_own(dirfd, place, place, S_IFDIR, &fd, err);

	if (r > 0)
		r = read_own(fd, place, name, &f->config, err);
	if (r <= 0)
		return r;
	f->place = place;
	f->name = name;
	r = read_own(fd, place, FOUND_ALLOWLIST, &f->allowlist, err);
	f->has_allowlist = r > 0;
	return r < 0 ? r : 1;
}

static void make_hash(struct found *f)
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add_framed(&h, str_from(f->place));
	sha256_add_framed(&h, buf_str(&f->config));
	if (f->has_allowlist)
		sha256_add_framed(&h, buf_str(&f->allowlist));
	sha256_hex(&h, f->hash);
}

static int read_places(int dirfd, const char *dir, struct found *f, struct cloche_err *err)
{
	char real[PATH_MAX];
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places) && r == 0; i++)
		r = read_place(dirfd, places[i].place, places[i].name, f, err);
	if (r <= 0)
		return r;
	if (fstat(dirfd, &st) < 0)
		return err_sys(err, errno, "look at %s", dir);
	r = fd_path(dirfd, real);
	if (r < 0)
		return err_sys(err, -r, "find %s", dir);
	f->dir = strdup(real);
	if (!f->dir)
		return err_nomem(err);
	r = judge_owner(dirfd, &st, real, true, err);
	if (r < 0)
		return r;
	make_hash(f);
	return 1;
}

int found_open(int dirfd, const char *dir, struct found *ret, struct cloche_err *err)
{
	struct found f = {.fd = -1, .config = BUF_INIT(FILE_MAX), .allowlist = BUF_INIT(FILE_MAX)};
	int r = read_places(dirfd, dir, &f, err);

	if (r > 0) {
		f.fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
		if (f.fd < 0)
			r = err_sys(err, errno, "keep %s open", dir);
	}
	if (r > 0)
		*ret = f;
	else
		found_done(&f);
	return r;
}

void found_done(struct found *f)
{
	f->fd = fd_close(f->fd);
	free(f->dir);
	f->dir = NULL;
	buf_done_wiped(&f->config);
	buf_done_wiped(&f->allowlist);
}
