/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The handle of a long-lived sandbox, and what runs need from it. */

#include "client/client.h"
#include "ipc/rundir.h"
#include "manager/execs.h"
#include "manager/sandboxes.h"
#include <cloche/instance.h>
#include <jansson.h>

/* Labels that a manager gives to its sandboxes. */
#define INSTANCE_LABEL_RUN "cloche.run-id"
#define INSTANCE_LABEL_LIFETIME "cloche.lifetime" /* seconds */

struct cloche_instance {
	int base; /* directory of all sandboxes, owned */
	char id[RUNDIR_ID_BYTES + 1];
	/* from the last refresh */
	enum sandbox_life life;
	json_t *record; /* an object; NULL: never refreshed */
	char *json;     /* the record and the commands as text */
	char *command;  /* the first one, for display */
	cloche_instance_info info;
};

/* Return a new handle of the same sandbox, not yet refreshed, or NULL with errno. */
cloche_instance *instance_copy(const cloche_instance *instance);
/* The same, refreshed. */
_warn_unused_ int instance_copy_fresh(
	const cloche_instance *instance, cloche_instance **ret, struct cloche_err *err);

/* Connect to the supervisor. The error tells whether the sandbox has ended, has crashed (then what
 * it left is removed) or is about to begin or end. */
_warn_unused_ int instance_attach(
	const cloche_instance *instance, struct client **ret, struct cloche_err *err);

/* Open a channel to the broker (ipc/netconf.h). */
_warn_unused_ int instance_policy_channel(
	const cloche_instance *instance, struct chan *ret, struct cloche_err *err);

/* Return whether output goes through the supervisor (kept in struct ctl_start). */
bool instance_is_kept(const cloche_instance *instance);

/* End a kept sandbox that could not be completed, and remove all traces. The client can only be
 * freed afterwards. */
void instance_discard(struct client *client);

/* End and remove a sandbox in which nothing runs. E_BUSY if something does. */
_warn_unused_ int instance_remove_idle(const cloche_instance *instance, struct cloche_err *err);

/* A supervisor reports the end before it has cleaned up, and it takes a moment to remove what a
 * crash left. Until then the sandbox counts as running. Wait for that, and return whether the
 * sandbox is there and does not run. */
bool instance_wait_settled(const cloche_instance *instance, uint64_t at_most_usec);

/* Open the directory of a sandbox that runs or has ended. E_NOT_FOUND if it has crashed. */
_warn_unused_ int instance_open_entry(
	const cloche_instance *instance, struct sandbox_entry *ret, struct cloche_err *err);

/* Like cloche_instance_list(), but fn may wait, and may be NULL. ended (may be NULL) is called for
 * each sandbox that was ended because it is not needed any more. */
typedef void (*instance_ended_fn)(void *user, const char *id);
_warn_unused_ int instance_list(bool all, cloche_instance_fn fn, instance_ended_fn ended,
	void *user, struct cloche_err *err);

/* End and remove a running sandbox, after a refresh, if its manager has died, its lifetime is over
 * and nothing runs in it. Return false if it is needed, or could not be ended (which is noted). */
bool instance_end_orphan(const cloche_instance *instance);

/* --- logs (instance_log.c) --- */

/* Start watching for changes. Return an inotify descriptor to poll, borrowed, or a negative code.
 */
_warn_unused_ int log_watch(cloche_log *log, struct cloche_err *err);

DEFINE_CLEANUP(cloche_instance, cloche_instance_free)
DEFINE_CLEANUP(cloche_log, cloche_log_free)
