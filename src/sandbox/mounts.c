/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NAMED-ONCE): a source is opened when it is named, and its descriptor is
 * what counts from then on, until it is mounted. Between now and then somebody who may write around
 * it, such as a room that runs, can put anything in its place. */
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/source.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

/* Open what the user grants: a path is resolved here, and never again (INV-NAMED-ONCE). *ret_real
 * (heap) is where it lies. An error names the path and its purpose. */
static int sandbox_open(
	const char *path, const char *what, int *ret, char **ret_real, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	char real[PATH_MAX];
	int r = fd < 0 ? -errno : fd_path(fd, real);

	if (r < 0)
		return err_sys(err, -r, "%s %s", what, path);
	*ret_real = strdup(real);
	if (!*ret_real)
		return err_nomem(err);
	*ret = TAKE_FD(fd);
	return 0;
}

/* Later nobody knows what the user named, so
 * whether a link led from there into credentials (INV-INSIDE-PATHS) is judged here. */
int sandbox_open_judged(
	const char *path, const char *what, int *ret, char **ret_real, struct cloche_err *err)
{
	_cleanup_(freep) char *real = NULL, *named = fs_absolute(path), *home = fs_home();
	_cleanup_fd_ int fd = -1;
	int r = sandbox_open(path, what, &fd, &real, err);

	if (r == 0 && !named)
		r = err_sys(err, errno, "%s %s", what, path);
	if (r == 0 && strcmp(named, real) != 0)
		r = source_judge_named(named, real, home, err);
	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	*ret_real = TAKE_PTR(real);
	return 0;
}

int sandbox_put_mount(
	cloche_sandbox *sb, int fd, const struct room_mount *m, struct cloche_err *err)
{
	struct room_mount *grown = reallocarray(sb->mounts, sb->mounts_n + 1, sizeof(*grown));
	struct room_mount copy = *m;

	copy.fd = fd;
	copy.source = strdup(m->source);
	copy.target = strdup(m->target);
	copy.also = m->also ? strdup(m->also) : NULL;
	if (grown)
		sb->mounts = grown;
	if (grown && copy.source && copy.target && (copy.also || !m->also)) {
		sb->mounts[sb->mounts_n++] = copy;
		return 0;
	}
	fd_close(fd);
	free(copy.source);
	free(copy.target);
	free(copy.also);
	return err_nomem(err);
}

int sandbox_add_mount(
	cloche_sandbox *sb, int fd, const struct room_mount *m, struct cloche_err *err)
{
	int r;

	if (fd >= 0)
		return sandbox_put_mount(sb, fd, m, err);
	r = err_sys(err, -fd, "mount %s", m->source);
	if (fd == -ENOENT)
		err_hint(err, "what is mounted is a path of this machine, and has to be there");
	return r;
}

int sandbox_add_guard(cloche_sandbox *sb, size_t mount, const char *path, const struct stat *st,
	bool ro, struct cloche_err *err)
{
	_cleanup_(freep) char *source = fs_join(sb->mounts[mount].source, path);
	_cleanup_(freep) char *target = fs_join(sb->mounts[mount].target, path);

	if (!source || !target)
		return err_nomem(err);
	return sandbox_put_mount(sb, -1,
		&(struct room_mount){.source = source,
			.target = target,
			.guard = (uint32_t)mount + 1,
			.device = st->st_dev,
			.inode = st->st_ino,
			.ro = ro},
		err);
}

int cloche_sandbox_add_mount(cloche_sandbox *sb, const char *source, const char *destination,
	bool read_only, cloche_err *err)
{
	_cleanup_(freep) char *named = fs_absolute(source), *same = fs_lexical(source);
	int fd;

	if (!named || !same)
		return err_sys(err, errno, "mount %s", source);
	if (!destination)
		destination = same;
	if (destination[0] != '/' || strcmp(destination, "/") == 0)
		return err_set(err, E_USAGE,
			"mount %s: the destination \"%s\" has to be an absolute path below /",
			source, destination);
	fd = open(source, O_PATH | O_CLOEXEC);
	/* Keep the path as named, not the real one: whether links on it lead to what must not be
	 * shown is judged later. */
	return sandbox_add_mount(sb, fd < 0 ? -errno : fd,
		&(struct room_mount){
			.source = named, .target = (char *)(uintptr_t)destination, .ro = read_only},
		err);
}

int sandbox_check_opened(const cloche_sandbox *sb, struct cloche_err *err)
{
	const char *other = sb->root == ROOM_ROOT_DIR && sb->root_fd < 0 ? sb->root_dir : NULL;

	for (size_t i = 0; !other && i < sb->mounts_n; i++)
		if (!sb->mounts[i].guard && sb->mounts[i].fd < 0)
			other = sb->mounts[i].source;
	if (!other)
		return 0;
	err_set(err, E_DENIED, "%s is not what the sandbox was made with: it was replaced or moved",
		other);
	err_hint(err, "make a new sandbox with what is there now");
	return -E_DENIED;
}

/* Move the last mount to the front: mounts that the user names must lie over it. */
static void last_mount_to_front(cloche_sandbox *sb)
{
	struct room_mount m = sb->mounts[sb->mounts_n - 1];

	memmove(sb->mounts + 1, sb->mounts, (sb->mounts_n - 1) * sizeof(m));
	sb->mounts[0] = m;
	for (size_t i = 1; i < sb->mounts_n; i++)
		sb->mounts[i].guard += sb->mounts[i].guard > 0;
}

int sandbox_put_workspace(
	cloche_sandbox *sb, int fd, char *source, bool hidden, struct cloche_err *err)
{
	int r = 0;

	/* If a workspace was set before, it is the first mount. */
	if (sb->workspace) {
		fd_close(sb->mounts[0].fd);
		sb->mounts[0].fd = fd;
		r = set_string(&sb->mounts[0].source, source, err);
	} else {
		r = sandbox_add_mount(sb, fd,
			&(struct room_mount){
				.source = source, .target = (char[]){SANDBOX_WORKSPACE}},
			err);
		if (r == 0)
			last_mount_to_front(sb);
	}
	if (r == 0)
		r = set_string(&sb->mounts[0].also, hidden ? NULL : source, err);
	if (r == 0)
		r = set_string(&sb->workspace, source, err);
	if (r == 0)
		sandbox_tell_setting(sb, &(cloche_setting){.key = "workspace", .value = source});
	return r;
}

int sandbox_set_workspace(cloche_sandbox *sb, const char *dir, cloche_err *err)
{
	bool hidden = str_ends(str_from(dir), STR(":" SANDBOX_WORKSPACE));
	_cleanup_(freep) char *real = NULL, *named = NULL;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	named = strndup(dir, strlen(dir) - (hidden ? strlen(":" SANDBOX_WORKSPACE) : 0));
	r = named ? sandbox_open_judged(named, "workspace", &fd, &real, err) : err_nomem(err);
	if (r < 0)
		return r;
	if (strcmp(real, "/") == 0)
		return err_set(err, E_USAGE, "the workspace cannot be /: choose a directory");
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		return err_set(err, E_USAGE, "workspace %s: it is not a directory", named);
	return sandbox_put_workspace(sb, TAKE_FD(fd), real, hidden, err);
}
