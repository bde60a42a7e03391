/* SPDX-License-Identifier: Apache-2.0 */
/* What a command gets of the host's: pipes, and a terminal where its init may open none. */
#include "base/fd.h"
#include "ipc/pty.h"
#include "supervisor/supervisor.h"

#include <linux/magic.h>
#include <sys/vfs.h>

void lend_pipes(const struct room *room, const struct exec_spec *spec, const int fds[3])
{
	for (unsigned i = 0; i < 3; i++) {
		struct statfs fs;

		if (fds[i] >= 0 && fstatfs(fds[i], &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
			room_lend(room, fds[i], spec->uid, spec->gid);
	}
}

int lend_terminal(const struct room *room, const struct exec_spec *spec, int fds[3])
{
	if (!spec->tty || !room->provider->lends_terminals)
		return 0;
	for (int i = 0; i < 3; i++)
		fds[i] = fd_close(fds[i]);
	return pty_make(spec->rows, spec->cols, &fds[0], &fds[1]);
}
