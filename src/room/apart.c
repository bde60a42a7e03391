/* SPDX-License-Identifier: Apache-2.0 */
#include "room/apart.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "ipc/statedir.h"
#include "jail/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Store the ids of the directory and of all above it. Return how many, or -errno. */
static int walk_up(int dir, struct apart_id *ids)
{
	_cleanup_fd_ int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int n = 0;

	for (; at >= 0 && n < APART_DEEPEST; n++) {
		int up;

		if (fstat(at, &st) < 0)
			return -errno;
		ids[n] = (struct apart_id){st.st_dev, st.st_ino};
		/* "/" is above itself. */
		if (n > 0 && ids[n - 1].dev == st.st_dev && ids[n - 1].ino == st.st_ino)
			return n;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(at);
		at = up;
	}
	return at < 0 ? -errno : -ELOOP;
}

static bool has_id(const struct apart_id *ids, size_t n, struct apart_id id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i].dev == id.dev && ids[i].ino == id.ino)
			return true;
	return false;
}

int apart_init(struct apart *a, int dir)
{
	int r = fd_path(dir, a->path);

	if (r == 0)
		r = walk_up(dir, a->ids);
	if (r < 0)
		return r;
	a->is_there = true;
	a->n = (size_t)r;
	return 0;
}

int apart_is(const struct apart *a, int source)
{
	struct apart_id ids[APART_DEEPEST];
	char real[PATH_MAX];
	struct stat st;
	int n = fd_path(source, real);

	if (n < 0 || fstat(source, &st) < 0)
		return n < 0 ? n : -errno;
	if (fs_is_within(a->path, real) ||
		has_id(a->ids, a->n, (struct apart_id){st.st_dev, st.st_ino}))
		return 0;
	if (!a->is_there)
		return 1;
	if (fs_is_within(real, a->path))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return 1;
	n = walk_up(source, ids);
	return n < 0 ? n : !has_id(ids, (size_t)n, a->ids[0]);
}

static bool apart_is_same(int one, int two)
{
	struct stat a, b;

	return fstat(one, &a) == 0 && fstat(two, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Takes a directory that may be the nearest parent of the one that is meant, or -1. */
static int apart_init_nearest(struct apart *a, int dir, bool is_there)
{
	_cleanup_fd_ int fd = dir;
	int r = fd < 0 ? 0 : apart_init(a, fd);

	a->is_there = is_there;
	return r;
}

int apart_own_init(struct apart_own *a, struct cloche_err *err)
{
	bool consents = false, settings = false;
	_cleanup_fd_ int control = rundir_open(err), usual = -1;
	int r = control, fd;

	a->usual.path[0] = a->consents.path[0] = a->settings.path[0] = '\0';
	if (r < 0)
		return r;
	r = apart_init(&a->control, control);
	/* The usual one controls the sandboxes that were made without the variable, and has files
	 * for all of them. */
	usual = rundir_open_usual(NULL);
	if (r == 0 && usual >= 0 && !apart_is_same(control, usual))
		r = apart_init(&a->usual, usual);
	if (r < 0)
		return err_sys(err, -r, "look at the directory of sandboxes");
	fd = statedir_open_consent(&consents);
	r = apart_init_nearest(&a->consents, fd, consents);
	if (r < 0)
		return err_sys(err, -r, "look at the state directory");
	fd = statedir_open_settings(&settings);
	r = apart_init_nearest(&a->settings, fd, settings);
	return r < 0 ? err_sys(err, -r, "look at the directory of your settings") : 0;
}

static int check(const struct apart *a, int source, const char *path, const char *what,
	const char *variables, struct cloche_err *err)
{
	int r = a->path[0] ? apart_is(a, source) : 1;

	if (r < 0)
		return err_sys(err, -r, "look at %s", path);
	if (r == 1)
		return 0;
	err_set(err, E_DENIED, "%s would show the directory in which %s", path, what);
	err_hint(err, "mount a directory further down, or name another place for that one: %s",
		variables);
	return -E_DENIED;
}

/* A process that reaches the control sockets, or writes to the files beside them, controls every
 * sandbox of the user, and through the supervisors the host. One that writes where consents are
 * kept could consent, in the user's name, to what a project asks for (INV-CONSENT), and one that
 * writes to the user's own settings needs no consent. */
int apart_check_source(const struct apart_own *a, int fd, const char *path, const char *home,
	bool ro, struct stat *ret, struct cloche_err *err)
{
	static const char controlled[] = "sandboxes are controlled",
			  variables[] = "XDG_RUNTIME_DIR or CLOCHE_RUNTIME_DIR";
	int r = source_check(fd, path, home, ret, err);

	if (r == 0)
		r = check(&a->control, fd, path, controlled, variables, err);
	if (r == 0)
		r = check(&a->usual, fd, path, controlled, variables, err);
	if (r == 0 && (a->consents.is_there || !ro))
		r = check(&a->consents, fd, path, "consents are kept (cloche trust)",
			"XDG_STATE_HOME or CLOCHE_STATE_DIR", err);
	if (r == 0 && (a->settings.is_there || !ro))
		r = check(&a->settings, fd, path, "your own settings of cloche are kept",
			"XDG_CONFIG_HOME", err);
	return r;
}
