/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: find the sockets of cloche itself from inside and send descriptors and junk to them
 * Wall: mount and network namespace: no name leads there; init's descriptor cannot be had */
#include "attempt.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

static void attempt(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) < sizeof(a.sun_path)) {
		memcpy(a.sun_path, path, strlen(path));
		refused(path, connect(fd, (struct sockaddr *)&a, sizeof(a)));
	}
	close(fd);
}

static void walk(const char *dir, int depth)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.200s/%.250s", dir, e->d_name);
		if (e->d_type == DT_SOCK)
			escaped(path);
		if (e->d_type == DT_DIR && depth < 4)
			walk(path, depth + 1);
	}
	if (d)
		closedir(d);
}

int main(void)
{
	char path[600];

	walk("/run", 0);
	walk("/tmp", 0);
	walk("/var", 0);
	snprintf(path, sizeof(path), "%.500s/control.sock", canary("CANARY_RUNTIME"));
	attempt(path);
	attempt("/run/cloche/control.sock");
	for (int fd = 0; fd < 8; fd++) {
		snprintf(path, sizeof(path), "/proc/1/fd/%d", fd);
		attempt(path);
	}
	return verdict();
}
