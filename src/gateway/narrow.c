/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NARROW): three stages, called by program.c in this order. After the last
 * one the process can read, write, accept and close; it cannot make a socket, connect one, open a
 * file, start a process or run new code. Those calls end it; others that it does not need fail. */
#include "gateway/narrow.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "ipc/helper.h"
#include "jail/narrow.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

int gateway_narrow_descriptors(struct cloche_err *err)
{
	const int keep[] = {HELPER_FD_SUPERVISOR, HELPER_FD_PEER};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	int r;

	secret_harden_process();
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_sys(err, errno, "ignore SIGPIPE");
	r = fd_sanitize_stdio();
	if (r >= 0)
		r = fd_only_write(STDERR_FILENO);
	if (r >= 0)
		r = fd_close_from(3, keep, ARRAY_SIZE(keep));
	return r < 0 ? err_sys(err, -r, "tidy the inherited descriptors") : 0;
}

int gateway_narrow_limits(unsigned need, struct cloche_err *err)
{
	const struct rlimit none = {0, 0};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(err, errno, "read the limit of open files");
	files.rlim_cur = MIN((rlim_t)need, files.rlim_max);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(err, errno, "set the limit of open files");
	if (setrlimit(RLIMIT_NPROC, &none) < 0)
		return err_sys(err, errno, "forbid new processes");
	return 0;
}

int gateway_narrow_calls(struct cloche_err *err)
{
	return narrow_program(SECCOMP_GATEWAY, err);
}
