/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: leave by the links of /proc: root, cwd, exe and descriptors of every process
 * Wall: pid and mount namespace: every process that can be named lives in the room */
#include "attempt.h"

#include <dirent.h>

int main(void)
{
	static const char *const links[] = {"root", "cwd", "root/..", "cwd/../../.."};
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc && (e = readdir(proc)))
		for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
			char path[8192];

			if (e->d_name[0] < '0' || e->d_name[0] > '9')
				break;
			snprintf(path, sizeof(path), "/proc/%s/%s%s", e->d_name, links[i],
				canary("CANARY_SECRET"));
			unreadable(path);
		}
	if (proc)
		closedir(proc);
	return verdict();
}
