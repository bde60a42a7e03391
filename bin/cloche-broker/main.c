/* SPDX-License-Identifier: Apache-2.0 */
/* The broker of one sandboxed network. cloche-supervisor starts it with its descriptors in place.
 * It takes no arguments and opens no file whose name it was given. */
#include "base/fd.h"
#include "broker/broker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { FD_SUPERVISOR = 3, FD_NET, FD_CONF, FD_CERT };

int main(void)
{
	const struct broker_fds fds = {
		.supervisor = FD_SUPERVISOR, .net = FD_NET, .conf = FD_CONF, .cert = FD_CERT};
	struct cloche_err err = CLOCHE_ERR_INIT;
	int status;

	for (int fd = FD_SUPERVISOR; fd <= FD_CERT; fd++) {
		if (fcntl(fd, F_GETFD) < 0 || fd_set_cloexec(fd, true) < 0) {
			fputs("cloche-broker: started by cloche-supervisor only\n", stderr);
			return 125;
		}
	}
	/* End with the supervisor. A stopped process would not notice that the channel is closed.
	 */
	if (fd_sanitize_stdio() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 125;
	status = broker_run(&fds, &err);
	/* The supervisor and the client were told on their own channels. */
	if (err.code && secure_getenv("CLOCHE_LOG"))
		fprintf(stderr, "cloche: broker: %s\n", err.message);
	return status;
}
