/* SPDX-License-Identifier: Apache-2.0 */
#include "api/manager/manager.h"
#include "provider/provider.h"

#include <pthread.h>
#include <utlist.h>

#define MIB ((uint64_t)1 << 20)

static const char *provider_of(const cloche_manager *m)
{
	return m->defaults->provider && m->defaults->provider[0] ? m->defaults->provider : "auto";
}

/* With the lock held. */
static json_t *manager_status_describe(cloche_manager *m)
{
	unsigned running = manager_count_running(m);
	const struct waiting *w;
	json_int_t waiting = 0;

	DL_FOREACH (m->waiting, w)
		waiting++;
	return json_pack("{s:s, s:s, s:i, s:i, s:I, s:o, s:I, s:I, s:o, s:o}", "id", m->owner.id,
		"provider", provider_of(m), "activeSandboxes", (int)running, "activeRuns",
		(int)(running + m->entered), "waiting", waiting, "maxConcurrentRuns",
		m->max_runs > 0 ? json_integer((json_int_t)m->max_runs) : json_null(),
		"promisedMemoryMB", (json_int_t)(manager_sum_promises(m) / MIB),
		"cleanupIntervalMs", (json_int_t)m->interval_ms, "lastCleanup",
		status_time(m->collected_us), "lastError",
		m->error[0] ? json_utf8(str_from(m->error)) : json_null());
}

json_t *manager_status(cloche_manager *m)
{
	json_t *member;

	pthread_mutex_lock(&m->lock);
	member = manager_status_describe(m);
	pthread_mutex_unlock(&m->lock);
	return member;
}

bool cloche_manager_is_live(cloche_manager *m)
{
	bool live;

	pthread_mutex_lock(&m->lock);
	live = !m->closing && (!m->has_thread || pthread_kill(m->thread, 0) == 0);
	pthread_mutex_unlock(&m->lock);
	return live;
}

int cloche_manager_is_ready(cloche_manager *m, cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (status_has_supervisor(&why) && provider_choose(m->defaults->provider, &why))
		return 0;
	if (err)
		*err = why;
	return -why.code;
}
