/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_STATUS_H
#define CLOCHE_STATUS_H
/* How things stand for the sandboxes of the calling user on this machine, whoever made them: there
 * is no daemon that would have to be asked. Any thread, any number at a time. The sandboxes
 * themselves: cloche_instance_list() and cloche_instance_stats(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_provider_status {
	const char *name;
	bool automatic; /* "auto" takes it, if those before it do not work */
	bool available;
	const char *reason; /* why it is not; "": it is */
	const char *advice; /* what to do about that, or "" */
} cloche_provider_status;
typedef void (*cloche_provider_fn)(const cloche_provider_status *provider, void *user);

/* Asks each provider whether it could make a room now, and calls fn with the answer (borrowed for
 * the call), in the order in which "auto" takes them. Leaves nothing behind. An engine that is
 * installed takes a tenth of a second. */
CLOCHE_API void cloche_provider_each(cloche_provider_fn fn, void *user);

/* When what a crashed sandbox left was last removed, by whoever did it: commands that list
 * sandboxes, and each sandbox when it starts. What could not be removed is tried again each time.
 */
typedef struct cloche_cleanup_status {
	uint64_t at_us;    /* microseconds since 1970; 0: never */
	uint64_t error_us; /* when something could not be removed for the last time; 0: never */
	char error[512];
} cloche_cleanup_status;
CLOCHE_API int cloche_cleanup_read(cloche_cleanup_status *ret, cloche_err *err);

/* All of it at one time, with what the sandboxes that run use. It belongs to one thread; what it
 * hands out is borrowed until it is freed. */
typedef struct cloche_status cloche_status;

/* Looks twice at the sandboxes that run, 0.2 seconds apart, to see how much of a CPU they use. */
CLOCHE_API int cloche_status_read(cloche_status **ret, cloche_err *err);
/* Frees it; NULL is fine. */
CLOCHE_API void cloche_status_free(cloche_status *status);

/* In the order in which "auto" takes them; i from 0, NULL at the end. */
CLOCHE_API const cloche_provider_status *cloche_status_provider(
	const cloche_status *status, size_t i);
CLOCHE_API const cloche_cleanup_status *cloche_status_cleanup(const cloche_status *status);

/* Of all sandboxes that run. cpu_percent: of one CPU. */
typedef struct cloche_status_totals {
	size_t sandboxes;
	double cpu_percent;
	uint64_t memory_bytes, commands_running;
} cloche_status_totals;
CLOCHE_API cloche_status_totals cloche_status_totals_now(const cloche_status *status);

/* One JSON document with AgentGate's names, if that has one (cloche-status(1)). */
CLOCHE_API const char *cloche_status_json(const cloche_status *status);

#ifdef __cplusplus
}
#endif
#endif
