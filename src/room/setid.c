/* SPDX-License-Identifier: Apache-2.0 */
#include "room/setid.h"
#include "fs/fs.h"
#include "fs/fswalk.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct setid_walk {
	setid_fn fn;
	void *user;
};

static int setid_entry(void *user, const struct fswalk_entry *e)
{
	const struct setid_walk *w = user;
	struct stat st;

	if (e->type == DT_DIR)
		return FSWALK_INTO;
	if (e->type != DT_REG)
		return 0;
	if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return FSWALK_INTO;
	return S_ISREG(st.st_mode) ? w->fn(w->user, e->dir, e->name, &st) : 0;
}

int setid_each_file(int dir, bool opening, setid_fn fn, void *user)
{
	struct setid_walk w = {fn, user};
	const struct fswalk_how how = {
		.need = opening ? 0500 : 0, .restore = true, .user = &w, .entry = setid_entry};

	return fswalk(dir, "", &how);
}

static int setid_clear_one(void *user, int dirfd, const char *name, const struct stat *st)
{
	/* Only root can have given a file capabilities that are worth something. */
	return geteuid() == 0 || st->st_mode & SETID_BITS ? fs_strip_rights(dirfd, name) : 0;
}

int setid_clear(int dir)
{
	return setid_each_file(dir, true, setid_clear_one, NULL);
}
