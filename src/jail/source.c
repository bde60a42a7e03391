/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The path was opened once, and everything is judged on that descriptor: the kind of the file, and
 * (through /proc) where it really lies. A place that holds credentials can be mounted only by its
 * own name, so that it never gets in with a wider mount ($HOME, /) or through a link that an
 * attacker planted in a shared directory. */
#include "jail/source.h"
#include "base/fd.h"
#include "base/str.h"
#include "fs/fs.h"
#include "jail/sys.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const home_credentials[] = {
#define CREDENTIAL_HOME(path) path,
#define CREDENTIAL_HOST(path)
#include "jail/credentials.def"
};

/* The second name of each that lies in /run: /var/run is a link to it. */
static const struct {
	const char *path, *in_var;
} host_credentials[] = {
#define CREDENTIAL_HOME(path)
#define CREDENTIAL_HOST(path) {path, "/var" path},
#include "jail/credentials.def"
};

/* asked: the path that the user wrote; real: where it lies; place: the real path of a place with
 * credentials; alias: the same place as a user may write it. */
static int judge(const char *asked, const char *real, const char *place, const char *alias,
	struct cloche_err *err)
{
	struct stat st;
	int r;

	if (fs_is_within(real, place)) {
		if (fs_is_within(asked, place) || fs_is_within(asked, alias))
			return 0;
		r = err_set(
			err, E_DENIED, "%s leads into %s, which holds credentials", asked, place);
		err_hint(err, "name %s itself, if that is meant", real);
		return r;
	}
	/* It is harmless to contain a place that does not exist. */
	if (!fs_is_within(place, real) || lstat(place, &st) < 0)
		return 0;
	r = err_set(err, E_DENIED, "%s contains %s, which holds credentials", asked, place);
	err_hint(err, "name a directory further down, such as the project's own");
	return r;
}

/* name: a place in the home. */
static _noinline_ int judge_in_home(const char *asked, const char *real, const char *home,
	const char *real_home, const char *name, struct cloche_err *err)
{
	char place[PATH_MAX * 2], alias[PATH_MAX * 2];

	snprintf(alias, sizeof(alias), "%s/%s", home, name);
	snprintf(place, sizeof(place), "%s/%s", real_home, name);
	return judge(asked, real, place, alias, err);
}

static int judge_all(const char *asked, const char *real, const char *home, struct cloche_err *err)
{
	char real_home[PATH_MAX];
	const char *below;
	bool around;
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(host_credentials) && r == 0; i++) {
		const char *path = host_credentials[i].path;
		bool in_run = str_starts(str_from(path), STR("/run/"));

		r = judge(asked, real, path, in_run ? host_credentials[i].in_var : path, err);
	}
	/* A home of "/" would make everything a credential. */
	if (r < 0 || !home || home[0] != '/' || home[1] == '\0')
		return r;
	/* `real` has no links in it, so the home it is compared with must not either. */
	if (!realpath(home, real_home))
		snprintf(real_home, sizeof(real_home), "%s", home);
	below = fs_below(real, real_home);
	around = fs_is_within(real_home, real);
	for (i = 0; i < ARRAY_SIZE(home_credentials) && r == 0 && (below || around); i++) {
		const char *name = home_credentials[i];

		if (!around && !fs_is_within(below, name) && !fs_is_within(name, below))
			continue;
		r = judge_in_home(asked, real, home, real_home, name, err);
	}
	return r;
}

static const char *kind_name(mode_t mode)
{
	if (S_ISLNK(mode))
		return "symbolic link";
	return S_ISSOCK(mode) ? "socket" : S_ISFIFO(mode) ? "fifo" : "device";
}

int source_check(
	int fd, const char *path, const char *home, struct stat *ret, struct cloche_err *err)
{
	char real[PATH_MAX];
	int r;

	if (fd < 0)
		return err_sys(err, -fd, "mount %s", path);
	if (fstat(fd, ret) < 0)
		return err_sys(err, errno, "mount %s", path);
	if (ret->st_nlink == 0)
		return err_set(err, E_DENIED, "mount %s: it was removed or replaced", path);
	r = fd_path(fd, real);
	if (r < 0)
		return err_sys(err, -r, "mount %s", path);
	if (!S_ISDIR(ret->st_mode) && !S_ISREG(ret->st_mode) &&
		!(S_ISSOCK(ret->st_mode) && strcmp(path, real) == 0))
		return err_set(err, E_DENIED, "mount %s: it is a %s, not a file or directory", path,
			kind_name(ret->st_mode));
	return judge_all(path, real, home, err);
}

int source_judge_found(const char *path, const char *home, struct cloche_err *err)
{
	/* The empty name matches no place. */
	return judge_all("", path, home, err);
}

int source_judge_named(
	const char *named, const char *real, const char *home, struct cloche_err *err)
{
	return judge_all(named, real, home, err);
}

int source_judge_path(const struct hostpath *at, const char *path, const char *home,
	const char *verb, struct cloche_err *err)
{
	_cleanup_(freep) char *asked = fs_absolute(path), *real = hostpath_real(at);
	int r;

	if (!asked || !real)
		return err_sys(err, errno, "%s %s", verb, path);
	r = judge_all(asked, real, home, err);
	return r < 0 ? err_wrap(err, r, "%s", verb) : 0;
}
