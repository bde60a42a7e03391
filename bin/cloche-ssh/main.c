/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a connection of SSH whose commands are judged: "room" is the server that the room's
 * ssh speaks with, "origin" the client of the real host. Each is a process for one connection,
 * which cloche-supervisor starts for the gateway or the broker with both descriptors in place
 * (ipc/sshleg.h). */
#include "base/fd.h"
#include "leg.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	bool room = argc == 2 && strcmp(argv[1], "room") == 0;

	if ((!room && (argc != 2 || strcmp(argv[1], "origin") != 0)) ||
		fcntl(SSHLEG_FD_PEER, F_GETFD) < 0 || fcntl(SSHLEG_FD_PLAIN, F_GETFD) < 0) {
		fputs("cloche-ssh: started by cloche-supervisor only\n", stderr);
		return 125;
	}
	/* End with the supervisor, whatever this process waits for. */
	if (fd_sanitize_stdio() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		sigaction(SIGPIPE, &ignore, NULL) < 0 || ssh_init() != SSH_OK)
		return 125;
	return room ? room_main() : origin_main();
}
