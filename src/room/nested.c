/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/fs.h"
#include "room/rootfs.h"
#include "room/setid.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOUND = 1 };

/* overlayfs can copy files whose user and group are both mapped in the room. */
static int note_own(void *user, int dirfd, const char *name, const struct stat *st)
{
	if (!(st->st_mode & SETID_BITS) || st->st_uid != geteuid() || st->st_gid != getegid())
		return 0;
	snprintf(user, NAME_MAX + 1, "%s", name);
	return FOUND;
}

static int check_tree(int tree, bool is_dir, const char *source, struct cloche_err *err)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int r;

	if (is_dir)
		r = setid_each_file(tree, false, note_own, name);
	else if (fstat(tree, &st) < 0)
		r = -errno;
	else
		r = note_own(name, -1, source, &st);
	if (r < 0)
		return err_sys(err, -r, "look for set-uid programs in %s", source);
	if (r == 0)
		return 0;
	err_set(err, E_DENIED,
		"%s holds a set-uid program of yours, %s: with --nested it could be left where the "
		"sandbox may write, with other contents",
		source, name);
	err_hint(err,
		"take that bit away (find %s -perm /6000 lists all), or mount nothing for "
		"writing (--no-workspace)",
		source);
	return -E_DENIED;
}

/* Return whether this is a directory of the host, whose programs do not belong to an ordinary user.
 * A search would take seconds. */
static bool is_of_host(const char *source)
{
	const char *const *dirs = layers_host_dirs();
	size_t i;

	for (i = 0; dirs[i]; i++)
		if (fs_is_within(source, dirs[i]))
			return !strstr(source, "..");
	return false;
}

int rootfs_check_programs(const struct rootfs *r, struct cloche_err *err)
{
	const struct room_spec *s = r->spec;
	int e = 0;

	if (!s->nested || r->ids.range || !rootfs_writes_as_owner(r))
		return 0;
	if (r->dir)
		e = check_tree(r->dir_tree, true, r->dir, err);
	for (size_t i = 0; i < s->mounts_n && e == 0; i++)
		if (r->sources[i].tree >= 0 && s->mounts[i].ro && !is_of_host(s->mounts[i].source))
			e = check_tree(
				r->sources[i].tree, r->sources[i].is_dir, s->mounts[i].source, err);
	return e;
}
