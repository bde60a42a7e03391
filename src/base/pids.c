/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pids.h"

#include <stdlib.h>

enum { LIMIT = 4 << 20 }; /* PID_MAX_LIMIT of the kernel */

void pids_done(struct pids *p)
{
	free(p->all);
	free(p->seen);
	*p = (struct pids){0};
}

bool pids_has(const struct pids *p, pid_t pid)
{
	return p->seen && pid > 0 && pid <= LIMIT && p->seen[pid / 8] & 1 << pid % 8;
}

/* Pages of `seen` in which no bit is set take no memory. */
bool pids_add(struct pids *p, pid_t pid)
{
	pid_t *all;

	if (pid <= 0 || pid > LIMIT)
		return false;
	if (!p->seen)
		p->seen = calloc(LIMIT / 8 + 1, 1);
	if (!p->seen)
		return false;
	all = array_room(p->all, p->n, &p->room, sizeof(*all));
	if (!all)
		return false;
	p->all = all;
	p->all[p->n++] = pid;
	p->seen[pid / 8] = (unsigned char)(p->seen[pid / 8] | 1 << pid % 8);
	return true;
}
