/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: measure others' memory accesses by performance counters
 * Wall: seccomp: perf_event_open is refused */
#include "attempt.h"

#include <linux/perf_event.h>

int main(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof(attr)};

	REFUSED(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
	REFUSED(syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.exclude_kernel = 1;
	REFUSED(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
	return verdict();
}
