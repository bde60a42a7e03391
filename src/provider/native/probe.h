/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds out what this machine offers, feature by feature, by trying it in a child process that
 * leaves nothing behind. For `cloche doctor` and for the provider's own messages. */

#include <stdbool.h>
#include <stddef.h>

enum { PROBE_TEXT_MAX = 256 };

struct probe_result {
	const char *name; /* "user namespace" */
	bool works;
	bool required;               /* no room is possible without it */
	char detail[PROBE_TEXT_MAX]; /* version or kind if it works, else the exact blocker */
	char remedy[PROBE_TEXT_MAX]; /* what to do, or what happens without it; "" if it works */
};

/* Run every probe in a fixed order; return how many entries of ret (max) were filled. Takes a few
 * milliseconds. Any thread. */
size_t probe_all(struct probe_result *ret, size_t max);

enum probe_feature {
	PROBE_USERNS,
	PROBE_NAMESPACES,
	PROBE_PROC,
	PROBE_OVERLAY,
	PROBE_IDMAP,
	PROBE_CAPTURE,
	PROBE_SECCOMP,
	PROBE_LANDLOCK,
	PROBE_CGROUP,
	PROBE_END_,
};

/* Run one probe. Any thread. */
void probe_one(enum probe_feature f, struct probe_result *ret);
