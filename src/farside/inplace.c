/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: where no namespaces can be made (docker's default container, a restricted
 * pod), the room is the container that it stands in, with the walls of provider landlock.
 * What cloche keeps for the room lies in the room's directory, which no such room can read. */
#include "base/buf.h"
#include "base/fd.h"
#include "farside/hold.h"
#include "fs/fs.h"
#include "init/program.h"
#include "provider/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int inplace_choose(struct hold *h, struct cloche_err *err)
{
	struct cloche_err first = CLOCHE_ERR_INIT, second = CLOCHE_ERR_INIT;
	struct provider_about about = {0};
	char dir[PATH_MAX];

	if (native_provider.probe(&native_provider, &about, &first) == 0)
		return 0;
	if (h->only_rooms)
		return err_set(err, E_UNSUPPORTED,
			"no room with namespaces can be made there (%.300s), and the service makes "
			"no other",
			first.message);
	if (landlock_provider.probe(&landlock_provider, &about, &second) < 0) {
		err_set(err, E_UNSUPPORTED,
			"no room can be made there: namespaces are refused (%.200s), and the "
			"container cannot be the room itself (%.200s)",
			first.message, second.message);
		err_hint(err, "%s", second.hint);
		return -E_UNSUPPORTED;
	}
	if (fd_path(h->dir, dir) < 0)
		return err_sys(err, errno, "find the room's directory");
	if (plain_shows(dir)) {
		err_set(err, E_UNSUPPORTED, "%s lies where every room of that container may read",
			dir);
		err_hint(err, "set HOME to another directory there");
		return -E_UNSUPPORTED;
	}
	h->in_place = true;
	return 0;
}

/* Have what a provider keeps for a room lie in the room's directory, apart from the mounts. */
static int inplace_keep_here(struct hold *h, struct cloche_err *err)
{
	_cleanup_fd_ int run = -1;
	char path[PATH_MAX];

	if (mkdirat(h->dir, "run", 0700) < 0)
		return err_sys(err, errno, "make a directory for the room");
	run = openat(h->dir, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run < 0 || mkdirat(run, h->spec.id, 0700) < 0 || fd_path(run, path) < 0 ||
		setenv("CLOCHE_RUNTIME_DIR", path, 1) < 0)
		return err_sys(err, errno, "make a directory for the room");
	return 0;
}

/* git uses no repository in a directory of somebody else's, as one of the container's that has
 * become a mount may be. Allow it in the configuration of the room's home. */
static int inplace_allow_git(const struct hold *h, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(64 * 1024);
	char path[PATH_MAX];
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < h->spec.mounts_n && r == 0; i++) {
		const struct room_mount *m = &h->spec.mounts[i];

		if (fstat(m->fd, &st) == 0 && st.st_uid != geteuid() &&
			!strpbrk(m->target, "\"\\\n"))
			r = buf_printf(&text, "[safe]\n\tdirectory = \"%s\"\n", m->target);
	}
	if (r < 0)
		return err_nomem(err);
	snprintf(path, sizeof(path), "run/%s/home/.gitconfig", h->spec.id);
	return buf_str(&text).n ? fs_write_atomic(h->dir, path, buf_str(&text), 0644, false, err)
				: 0;
}

int inplace_room(struct hold *h, struct cloche_err *err)
{
	int r = inplace_keep_here(h, err);

	if (r == 0)
		r = landlock_provider.create(&landlock_provider, &h->spec, &h->room, err);
	return r == 0 ? inplace_allow_git(h, err) : r;
}
