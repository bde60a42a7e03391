/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: reach init's descriptors (the control socket), root, memory and environment through
 *    /proc/1
 * Wall: not dumpable: init belongs to root of the host in /proc */
#include "attempt.h"

#include <dirent.h>

static void closed_directory(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			printf("%s/%s\n", path, e->d_name);
			escaped(path);
		}
	if (d)
		closedir(d);
}

int main(void)
{
	char path[64], target[64];
	int fd;

	/* Their numbers may be seen, nothing else of them. */
	closed_directory("/proc/1/map_files");
	closed_directory("/proc/1/root/");
	closed_directory("/proc/1/cwd/");
	for (fd = 0; fd < 16; fd++) {
		snprintf(path, sizeof(path), "/proc/1/fd/%d", fd);
		refused(path, open(path, O_RDWR));
		refused(path, readlink(path, target, sizeof(target)));
		snprintf(path, sizeof(path), "/proc/1/fdinfo/%d", fd);
		unreadable(path);
	}
	unreadable("/proc/1/environ");
	unreadable("/proc/1/maps");
	unreadable("/proc/1/syscall");
	unreadable("/proc/1/stack");
	REFUSED(open("/proc/1/mem", O_RDWR));
	REFUSED(open("/proc/1/exe", O_RDONLY));
	REFUSED(open("/proc/1/ns/mnt", O_RDONLY));
	REFUSED(open("/proc/1/ns/net", O_RDONLY));
	/* What may be set there (oom_score_adj upwards) harms the room alone. */
	unwritable("/proc/1/attr/current");
	unwritable("/proc/1/setgroups");
	unwritable("/proc/1/projid_map");
	return verdict();
}
