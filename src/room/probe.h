/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds out what this machine offers, feature by feature, by trying it in a child process that
 * leaves nothing behind. For `cloche doctor` and for the provider's own messages. */

#include "provider/provider.h"

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

/* Run one probe: some of them take a millisecond. Any thread. */
void probe_one(enum probe_feature f, struct provider_check *ret);
