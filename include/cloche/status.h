/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_STATUS_H
#define CLOCHE_STATUS_H
/* The status of all sandboxes of the calling user on this machine, including those of other
 * processes. There is no daemon to ask. May be called by any number of threads at a time. For the
 * sandboxes themselves see cloche_instance_list() and cloche_instance_stats(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_provider_status {
	const char *name;
	bool automatic; /* "auto" uses it if those before it do not work */
	bool available;
	const char *reason; /* why it is not available; "" if it is */
	/* What to do about that. If it is available: what could not be tried, and how to find out.
	 * "" if there is nothing to say. */
	const char *advice;
	const char *version; /* of the software that makes the rooms; "" if unknown */
} cloche_provider_status;
typedef void (*cloche_provider_fn)(const cloche_provider_status *provider, void *user);

/* Ask each provider whether it could make a room now, and call fn with the answer (borrowed for the
 * call): first cloche's own, in the order in which "auto" tries them, then those of
 * cloche_provider_register() and the programs in $CLOCHE_PROVIDER_PATH, up to 24. Nothing is left
 * behind: that is why podman, for a user other than root, is available as soon as it is installed.
 * Each installed container engine takes about a tenth of a second. */
CLOCHE_API void cloche_provider_each(cloche_provider_fn fn, void *user);

/* A place on another machine, or wherever a provider's program leads. */
typedef struct cloche_place_status {
	size_t size;          /* of this struct in the library: later versions append members */
	const char *place;    /* as --place names it */
	const char *provider; /* that makes rooms there; "" if none is named for it */
	bool answers;
	const char *reason; /* why it counts as not answering; "" if it answers */
	const char *advice; /* what to do about that; "" if there is nothing to say */
	uint64_t silent_us; /* how long nothing answered; 0 if something did, if only to refuse */
} cloche_place_status;

/* A snapshot of all of this, with the resource usage of the running sandboxes. It belongs to one
 * thread; everything in it is borrowed until it is freed. */
typedef struct cloche_status {
	size_t size; /* of this struct in the library: later versions append members */
	/* In the order of cloche_provider_each(); NULL after the last. */
	const cloche_provider_status *const *providers;
	/* Totals of all running sandboxes. cpu_percent: 100 is one CPU. */
	size_t sandboxes;
	double cpu_percent;
	uint64_t memory_bytes, commands_running;
	/* When the remains of a crashed sandbox were last removed (microseconds since 1970; 0:
	 * never), and when something last could not be removed, and why. Commands that list
	 * sandboxes remove remains, and each sandbox when it starts. What could not be removed is
	 * tried again each time. */
	uint64_t cleanup_us, cleanup_error_us;
	const char *cleanup_error; /* "" if there was none */
	const char *json;          /* one document, with AgentGate's names where it has them
				    * (cloche-status(1)) */
	/* Those that were asked, without repetitions; NULL after the last. */
	const cloche_place_status *const *places;
} cloche_status;

typedef struct cloche_manager cloche_manager;

/* Read the status. This measures the running sandboxes twice, 0.2 seconds apart, to find their CPU
 * usage. The caller frees *ret.
 *
 * manager: add a member "manager" to the document (cloche/manager.h says what is in it); NULL:
 * none.
 *
 * sandboxes (n of them, borrowed for the call): ask the place of each (their options "place" and
 * "provider"; one without a place is left out) whether its provider reaches it, and add the answers
 * to the status and to its document. All are asked at once. One that has said nothing for five
 * seconds is told as not answering, and does not hold up the others. Nothing is brought to a place,
 * and no room is made there: cloche_doctor() examines one. provider ssh keeps its connection for a
 * minute. At most 64 different places: CLOCHE_E_LIMIT. */
CLOCHE_API int cloche_status_read(cloche_manager *manager, const cloche_sandbox *const *sandboxes,
	size_t n, cloche_status **ret, cloche_err *err);
/* Free the status. NULL is allowed. */
CLOCHE_API void cloche_status_free(cloche_status *status);

#ifdef __cplusplus
}
#endif
#endif
