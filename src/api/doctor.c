/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "jail/probe.h"
#include <cloche/doctor.h>

int cloche_doctor(void (*fn)(const cloche_check *check, void *user), void *user, cloche_err *err)
{
	struct probe_result results[PROBE_END_];
	size_t n = probe_all(results, ARRAY_SIZE(results));
	int broken = 0;

	for (size_t i = 0; i < n; i++) {
		const struct probe_result *p = &results[i];
		enum cloche_check_state state = p->works      ? CLOCHE_CHECK_OK
						: p->required ? CLOCHE_CHECK_MISSING
							      : CLOCHE_CHECK_DEGRADED;
		cloche_check check = {.name = p->name,
			.state = state,
			.detail = p->detail,
			.advice = p->works ? "" : p->remedy};

		if (state == CLOCHE_CHECK_MISSING)
			broken = 1;
		fn(&check, user);
	}
	return broken;
}
