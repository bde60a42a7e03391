/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "cloche-init room" is process 1 of a room that a program has made
 * (docs/design/provider-protocol.md). That program has neither dropped its rights nor given it a
 * socket: it connects to the supervisor at the path where the socket is mounted, closes everything
 * else, and drops its rights for good, as the native provider does before it executes init. Only
 * then does it read messages. */
#include "base/fd.h"
#include "init/init.h"
#include "init/program.h"
#include "jail/caps.h"
#include "jail/narrow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool enter_read_argument(const char *text, struct narrow *n)
{
	if (strcmp(text, "staying") == 0) {
		n->staying = true;
		return true;
	}
	return narrow_take_word(n, text);
}

static int connect_out(struct cloche_err *err)
{
	const struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = ROOMCTL_CONTROL_PATH};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	/* It stays open if something fails: then we end. */
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_sys(err, errno, "connect to %s", ROOMCTL_CONTROL_PATH);
	r = fd_make_first(fd);
	if (r == 0)
		r = fd_close_from(4, NULL, 0);
	return r < 0 ? err_sys(err, -r, "arrange the descriptors") : 0;
}

int enter_main(char *const *argv)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct narrow narrow = {0};
	int r = 0, said;

	for (; *argv; argv++)
		if (!enter_read_argument(*argv, &narrow))
			return 2;
	said = fcntl(2, F_DUPFD_CLOEXEC, 3);
	r = narrow_limits(&narrow, &err);
	if (r == 0)
		r = caps_join_keyring(&err);
	if (r == 0 && (setsid() < 0 && errno != EPERM))
		r = err_sys(&err, errno, "leave the terminal's session");
	if (r == 0 && chdir("/") < 0)
		r = err_sys(&err, errno, "enter the root");
	umask(022);
	/* Until the connection is made, errors go to stderr, where the container's manager may see
	 * them. */
	if (r == 0 && (r = connect_out(&err)) == 0)
		said = -1;
	if (r == 0)
		r = narrow_process(&narrow, &err);
	if (r < 0) {
		if (said >= 0)
			dprintf(said, "cloche-init: %s\n", err.message);
		return 1;
	}
	return init_program();
}
