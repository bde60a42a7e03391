/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a walk (fswalk.h) that removes each entry when it is met, and each directory
 * when it is left. As long as nothing has failed, what was met is gone, so a directory that has to
 * be opened again is read from its beginning. What is mounted in the tree is none of it: nothing is
 * removed there, and the directory below the mount cannot be removed. */
#include "fs/fs.h"
#include "fs/fswalk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* So often, removal begins anew because a directory was moved meanwhile. */
enum { REMOVE_TRIES = 8 };

struct remover {
	const struct fs_removal *how;
	int failed; /* the first failure */
	bool clean; /* there was none */
};

static int remove_failed(struct remover *r, const struct fswalk_entry *e, int errnum)
{
	struct buf *where = r->how->where;

	r->failed = r->clean ? -errnum : r->failed;
	r->clean = false;
	if (r->how->force)
		return 0;
	if (where && buf_add_str(where, str_from(e->path)) < 0)
		buf_clear(where);
	return -errnum;
}

static int remove_entry(void *user, const struct fswalk_entry *e)
{
	struct remover *r = user;
	int ended = r->how->beat ? r->how->beat(r->how->user) : 0;

	if (ended < 0)
		return ended;
	if (e->type == DT_DIR)
		return FSWALK_INTO;
	if (unlinkat(e->dir, e->name, 0) == 0 || errno == ENOENT)
		return 0;
	/* It became a directory. */
	return errno == EISDIR ? FSWALK_INTO : remove_failed(r, e, errno);
}

static int remove_left(void *user, const struct fswalk_entry *e)
{
	if (unlinkat(e->dir, e->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return remove_failed(user, e, errno);
}

/* One that cannot be opened may be empty, or be a directory no more. */
static int remove_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	if (errnum == ENOENT || unlinkat(e->dir, e->name, AT_REMOVEDIR) == 0 || errno == ENOENT ||
		unlinkat(e->dir, e->name, 0) == 0)
		return 0;
	if (errnum == ESTALE)
		return -ESTALE;
	return remove_failed(user, e, errnum == EXDEV ? EBUSY : errnum);
}

int fs_remove(int dirfd, const char *name, const struct fs_removal *how)
{
	struct remover r = {.how = how};
	const struct fswalk_how walk = {.need = how->force ? 0700 : 0,
		.stay = FSWALK_ON_MOUNT,
		.consumed = &r.clean,
		.user = &r,
		.entry = remove_entry,
		.left = remove_left,
		.missed = remove_missed};
	int result, tries = 0;

	if (how->where)
		buf_clear(how->where);
	if (unlinkat(dirfd, name, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -errno;
	do {
		r.clean = true;
		result = fswalk(dirfd, name, &walk);
	} while (result == -ESTALE && ++tries < REMOVE_TRIES);
	if (result == 0 && !r.clean)
		return r.failed;
	/* One that is closed to us may be empty. */
	if ((result == 0 || result == -EACCES) && unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (result == 0)
		result = -errno;
	return result == -ENOENT ? 0 : result;
}

int fs_remove_tree(int dirfd, const char *name)
{
	const struct fs_removal how = {.force = true};
	int r = fs_remove(dirfd, name, &how);

	return r == -ENOENT ? 0 : r;
}
