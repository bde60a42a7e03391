/* SPDX-License-Identifier: Apache-2.0 */
#include "files/replace.h"
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void replace_name(char ret[REPLACE_NAME_MAX])
{
	snprintf(ret, REPLACE_NAME_MAX, ".cloche-%016llx.tmp", (unsigned long long)rand_u64());
}

int replace_begin(struct replace *r, int dir, mode_t mode)
{
	*r = (struct replace){.dir = dir, .fd = -1};
	replace_name(r->name);
	r->fd = openat(dir, r->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	return r->fd < 0 ? -errno : 0;
}

int replace_begin_new(struct replace *r, int dir, mode_t mode, bool named)
{
	*r = (struct replace){.dir = dir, .fd = -1};
	if (!named)
		r->fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
	return r->fd < 0 ? replace_begin(r, dir, mode) : 0;
}

int replace_rename(int dir, const char *temporary, const char *name, bool over)
{
	int r;

	if (over)
		r = renameat(dir, temporary, dir, name) < 0 ? -errno : 0;
	else
		r = fs_rename_new(dir, temporary, name);
	if (r < 0)
		unlinkat(dir, temporary, 0);
	return r;
}

/* A link takes no name that is taken: it is made under another one, for a moment. */
static int replace_link_over(const struct replace *r, const char *name)
{
	char temporary[REPLACE_NAME_MAX];

	replace_name(temporary);
	if (linkat(r->fd, "", r->dir, temporary, AT_EMPTY_PATH) < 0)
		return -errno;
	return replace_rename(r->dir, temporary, name, true);
}

int replace_commit(struct replace *r, const char *name, bool over)
{
	int ret = 0;

	if (r->name[0])
		ret = replace_rename(r->dir, r->name, name, over);
	else if (over)
		ret = replace_link_over(r, name);
	else if (linkat(r->fd, "", r->dir, name, AT_EMPTY_PATH) < 0)
		ret = -errno;
	r->fd = fd_close(r->fd);
	return ret;
}

void replace_abort(struct replace *r)
{
	if (r->fd < 0)
		return;
	if (r->name[0])
		unlinkat(r->dir, r->name, 0);
	r->fd = fd_close(r->fd);
}

bool replace_needs_name(int dir)
{
	_cleanup_(replace_abortp) struct replace r = REPLACE_NULL;
	char name[REPLACE_NAME_MAX];

	replace_name(name);
	if (replace_begin_new(&r, dir, 0600, false) < 0 || r.name[0] ||
		replace_commit(&r, name, false) < 0)
		return true;
	unlinkat(dir, name, 0);
	return false;
}
