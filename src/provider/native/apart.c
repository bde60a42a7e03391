/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/native/apart.h"
#include "base/fd.h"
#include "base/fs.h"
#include "base/str.h"
#include "provider/native/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A process that reaches the control sockets, or writes to the files beside them, controls every
 * sandbox of the user, and through the supervisors the host. */
int apart_check_control(int control, int source, const char *path, struct cloche_err *err)
{
	int e = control < 0 ? 1 : keep_is_apart(control, source);

	if (e < 0)
		return err_sys(err, -e, "look at %s", path);
	if (e == 1)
		return 0;
	err_set(err, E_DENIED, "%s would show the directory in which sandboxes are controlled",
		path);
	err_hint(err, "mount a directory further down, or name another place for that one: "
		      "XDG_RUNTIME_DIR or CLOCHE_RUNTIME_DIR");
	return -E_DENIED;
}

static int find_path(int fd, char ret[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

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

int apart_init(struct apart *a, int dir, bool is_there, struct cloche_err *err)
{
	int r = 0;

	a->path[0] = '\0';
	a->is_there = is_there;
	if (dir < 0)
		return 0;
	r = find_path(dir, a->path);
	if (r == 0)
		r = walk_up(dir, a->ids);
	if (r < 0)
		return err_sys(err, -r, "look at the state directory");
	a->n = (size_t)r;
	return 0;
}

/* Return whether the source is the directory or lies in it. If that cannot be found out, the answer
 * is true. */
static bool lies_in(const struct apart *a, int source, const char *real, bool is_dir)
{
	struct apart_id ids[APART_DEEPEST];
	int n;

	if (fs_is_within(real, a->path))
		return true;
	if (!is_dir)
		return false;
	n = walk_up(source, ids);
	return n < 0 || has_id(ids, (size_t)n, a->ids[0]);
}

/* A process that writes there could consent, in the user's name, to what a project asks for
 * (INV-CONSENT). */
int apart_check(
	const struct apart *a, int source, const char *path, bool ro, struct cloche_err *err)
{
	char real[PATH_MAX];
	struct stat st;
	bool shows;
	int r;

	if (!a->path[0] || (ro && !a->is_there))
		return 0;
	r = find_path(source, real);
	if (r < 0 || fstat(source, &st) < 0)
		return err_sys(err, r < 0 ? -r : errno, "look at %s", path);
	shows = fs_is_within(a->path, real) ||
		has_id(a->ids, a->n, (struct apart_id){st.st_dev, st.st_ino});
	if (!shows && a->is_there)
		shows = lies_in(a, source, real, S_ISDIR(st.st_mode));
	if (!shows)
		return 0;
	err_set(err, E_DENIED,
		"%s would show the directory in which consents are kept (cloche trust)", path);
	err_hint(err, "mount a directory further down, or name another place for that one: "
		      "XDG_STATE_HOME or CLOCHE_STATE_DIR");
	return -E_DENIED;
}
