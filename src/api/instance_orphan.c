/* SPDX-License-Identifier: Apache-2.0 */
#include "api/manager.h"
#include "base/clock.h"
#include "manager/cleanup.h"

#include <stdlib.h>

static bool is_over(const cloche_instance *instance)
{
	const char *lifetime = cloche_instance_label(instance, MANAGER_LABEL_LIFETIME);
	uint64_t now = clock_real_usec(), created = cloche_instance_created(instance);
	uint64_t age = now > created ? now - created : 0;

	return lifetime && created > 0 && age / USEC_PER_SEC >= strtoull(lifetime, NULL, 10);
}

bool instance_end_orphan(const cloche_instance *instance)
{
	const char *manager = cloche_instance_label(instance, OWNER_LABEL);
	struct cloche_err err = CLOCHE_ERR_INIT;
	char text[CLEANUP_ERROR_MAX];
	int r;

	if (!manager || !is_over(instance) || owner_is_live(instance->base, manager))
		return false;
	r = instance_remove_idle(instance, &err);
	snprintf(text, sizeof(text), "%s: %.400s", instance->id, err.message);
	/* Busy: it is in use. Not found: another process was faster. */
	if (r != -E_BUSY && r != -E_NOT_FOUND)
		cleanup_note(instance->base, r < 0 ? text : NULL);
	return r == 0;
}
