/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: where a repository has its hooks, the room gets a directory of its own: a
 * link to each hook, and some hooks of ours, which run theirs in the end (githook.sh). Their
 * directory itself is mounted elsewhere. Both are read-only, and the host's directory stays as it
 * is. Hooks that may be tracked are not covered: a commit has to have the project's own files. Then
 * the copy of the configuration names a directory of ours in place of theirs (gitcopy.c). */
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"
#include "room/mount.h"
#include "room/parts.h"
#include "room/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPT ".cloche-hook"
#define THEIRS ".cloche-own" /* as githook.sh has it */

enum { HOOKS_MAX = 256 };

static const char *const ours[] = {"applypatch-msg", "post-checkout", "post-index-change",
	"pre-rebase", "reference-transaction"};

extern const char githook_sh[];

/* And those that git may run in a working tree, if they are theirs. */
static const char *const others[] = {"commit-msg", "post-applypatch", "post-commit", "post-merge",
	"post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
	"pre-push", "prepare-commit-msg"};

static bool githooks_is_ours(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strcmp(ours[i], name) == 0)
			return true;
	return false;
}

static int githooks_write(int view, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(view, SCRIPT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	int r = fd < 0 ? -errno : fd_write_all(fd, "#!/bin/sh\n", 10);

	if (r == 0)
		r = fd_write_all(fd, githook_sh, strlen(githook_sh));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ours); i++)
		r = symlinkat(SCRIPT, view, ours[i]) < 0 ? -errno : 0;
	return r < 0 ? err_sys(err, -r, "write the hooks of the room") : 0;
}

/* Link to each of their hooks. Return 0, or -errno if they cannot be shown that way. */
static int githooks_link(int view, int theirs, const char *own)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(theirs, ".");
	char to[PATH_MAX];
	const struct dirent *e;
	int n = 0;

	if (!list)
		return -errno;
	if (symlinkat(own, view, THEIRS) < 0)
		return -errno;
	while ((e = fs_list_next(list))) {
		snprintf(to, sizeof(to), "%s/%s", own, e->d_name);
		if (githooks_is_ours(e->d_name))
			continue;
		if (n++ == HOOKS_MAX || symlinkat(to, view, e->d_name) < 0)
			return n > HOOKS_MAX ? -E2BIG : -errno;
	}
	return 0;
}

/* Make and open a directory of the room's own. Return -1 if a link of the root leads elsewhere:
 * what is there may be the host's (INV-HOST-UNCHANGED). */
static int githooks_open(const struct target_root *root, const char *path)
{
	_cleanup_fd_ int fd = target_open(root, path, true, NULL);

	return fd >= 0 && target_is_scratch(root, fd) ? TAKE_FD(fd) : -1;
}

int githooks_cover(const struct target_root *root, const struct room_mount *m, size_t number,
	struct cloche_err *err)
{
	_cleanup_fd_ int at = target_find(root, m->target, NULL), theirs = -1, view = -1, tree = -1;
	char own[64], shown[64];
	struct stat st;
	int r;

	/* Somebody else who writes there may have moved it, with the guard on it. */
	if (at < 0 || fstat(at, &st) < 0 || st.st_dev != m->device || st.st_ino != m->inode)
		return 0;
	snprintf(own, sizeof(own), ROOM_GIT_HOOKS "/%zu/own", number);
	snprintf(shown, sizeof(shown), ROOM_GIT_VIEW, number);
	theirs = githooks_open(root, own);
	view = githooks_open(root, shown);
	/* Then they are shown as they are. */
	if (theirs < 0 || view < 0 || githooks_link(view, at, own) < 0)
		return 0;
	r = githooks_write(view, err);
	if (r == 0)
		r = tree = mount_clone(at, "", MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
	if (r >= 0)
		r = mount_attach(tree, theirs, "", own, err);
	tree = fd_close(tree);
	if (r == 0)
		r = tree = mount_clone(view, "", MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
	return r < 0 ? r : mount_attach(tree, at, "", m->target, err);
}

int githooks_view(
	const struct target_root *root, size_t number, const char *own, struct cloche_err *err)
{
	_cleanup_fd_ int view = -1;
	char path[64];
	int r;

	snprintf(path, sizeof(path), ROOM_GIT_VIEW, number);
	view = githooks_open(root, path);
	if (view < 0 || symlinkat(own, view, THEIRS) < 0)
		return err_set(err, E_SYSTEM, "make %s in the room", path);
	r = githooks_write(view, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++)
		if (symlinkat(SCRIPT, view, others[i]) < 0)
			r = err_sys(err, errno, "make %s/%s in the room", path, others[i]);
	return r;
}
