/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: connect to a unix socket of the host by its path, by links to it, by /proc/net/unix
 * Wall: mount namespace: the path does not exist here; network namespace: the list is the room's
 *    own */
#include "attempt.h"

#include <sys/socket.h>
#include <sys/un.h>

static void attempt(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, strlen(path));
	refused(path, connect(fd, (struct sockaddr *)&a, sizeof(a)));
	close(fd);
}

int main(void)
{
	char line[1024], path[600];
	FILE *list = fopen("/proc/net/unix", "re");

	attempt(canary("CANARY_SOCKET"));
	(void)!symlink(canary("CANARY_SOCKET"), "/workspace/socket");
	attempt("/workspace/socket");
	snprintf(path, sizeof(path), "/proc/1/root%.500s", canary("CANARY_SOCKET"));
	attempt(path);
	attempt("/run/docker.sock");
	attempt("/run/dbus/system_bus_socket");
	attempt("/run/cloche/control.sock");
	while (list && fgets(line, sizeof(line), list)) {
		char *at = strchr(line, '/');

		if (at) {
			at[strcspn(at, "\n")] = '\0';
			attempt(at);
		}
	}
	return verdict();
}
