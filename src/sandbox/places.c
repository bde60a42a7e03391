/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a workspace is at two places of a room, the one that it has on the host and
 * /workspace. What is the room's own must not be hidden by the first one; which places these are
 * depends on the root, so this is decided when the room is made. */
#include "fs/fs.h"
#include "sandbox/sandbox.h"

/* Whether path lies in, or with `above` holds, one of these directories. */
static bool is_in_or_above(const char *path, const char *const *dirs, size_t n, bool above)
{
	for (size_t i = 0; i < n; i++)
		if (above ? fs_is_within(dirs[i], path) : fs_is_within(path, dirs[i]))
			return true;
	return false;
}

const char *sandbox_second_path(const cloche_sandbox *sb, const struct room_mount *m)
{
	/* What every room has there, and what the root of another system has there. */
	static const char *const own[] = {
		"/dev", "/proc", "/run/cloche", "/sys", SANDBOX_WORKSPACE};
	static const char *const systems[] = {"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64",
		"/libx32", "/opt", "/root", "/run", "/sbin", "/tmp", "/usr", "/var"};
	const char *path = m->also, *home = strv_env_get(sb->env, "HOME");
	const char *images = strv_env_get(sb->image_env, "HOME");

	if (!path || is_in_or_above(path, own, ARRAY_SIZE(own), false) ||
		is_in_or_above(path, own, ARRAY_SIZE(own), true) ||
		is_in_or_above(path, systems, ARRAY_SIZE(systems), true) ||
		(home && fs_is_within(home, path)) || (images && fs_is_within(images, path)))
		return NULL;
	if (sb->root == ROOM_ROOT_HOST || fs_is_within(path, "/root") || fs_is_within(path, "/tmp"))
		return path;
	return is_in_or_above(path, systems, ARRAY_SIZE(systems), false) || !strchr(path + 1, '/')
		       ? NULL
		       : path;
}

char *sandbox_path_inside(const cloche_sandbox *sb, const char *path)
{
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const char *also = sandbox_second_path(sb, &sb->mounts[i]);
		const char *rest = also ? fs_below(path, also) : NULL;

		if (rest)
			return rest[0] ? fs_join(sb->mounts[i].target, rest)
				       : strdup(sb->mounts[i].target);
	}
	return strdup(path);
}
