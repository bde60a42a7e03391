/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NARROW): the broker gives up what it does not need in two stages, both
 * before the first byte of the gateway is read. First, while the configuration is in memory and
 * before files are loaded: no dumps, no core, no new privileges. Last, when nothing has to be
 * opened any more: a list of system calls. It keeps sockets, because dialling is its work; it has
 * no open(), no exec(), no fork(), no ptrace(), no executable memory. What is not listed fails with
 * EPERM. If a recording answers everything there is no dialling: no socket, no connect(). */
#include "broker/narrow.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "jail/narrow.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

int broker_narrow_first(struct cloche_err *err)
{
	int r;

	secret_harden_process();
	r = fd_only_write(STDERR_FILENO);
	if (r < 0)
		return err_sys(err, -r, "give up reading from standard error");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "set no_new_privs");
	return 0;
}

int broker_narrow_last(struct cloche_err *err)
{
	return narrow_program(SECCOMP_BROKER, err);
}

int broker_narrow_offline(struct cloche_err *err)
{
	return narrow_program(SECCOMP_BROKER_OFFLINE, err);
}
