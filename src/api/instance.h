/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is behind the handle of a long-lived sandbox, and what runs need of it. */

#include "client/client.h"
#include "ipc/rundir.h"
#include "manager/execs.h"
#include "manager/sandboxes.h"
#include <cloche/instance.h>
#include <jansson.h>

struct cloche_instance {
	int base; /* directory of all sandboxes, owned */
	char id[RUNDIR_ID_BYTES + 1];
	/* from the last refresh */
	enum sandbox_life life;
	json_t *record; /* an object; NULL: never refreshed */
	char *json;     /* text of it and of the commands */
	char *command;  /* the first one, for people */
};

/* A handle of the same sandbox, without what a refresh found; NULL on lack of memory. */
cloche_instance *instance_copy(const cloche_instance *instance);

/* Connects; an error says whether it has ended, crashed (then what is left is removed) or is about
 * to begin or end. */
_warn_unused_ int instance_attach(
	const cloche_instance *instance, struct client **ret, struct cloche_err *err);

/* Whether output goes through its supervisor (struct ctl_start's kept). */
bool instance_is_kept(const cloche_instance *instance);

/* Of a kept sandbox that came to nothing: ends it and removes all traces. All that can be done with
 * the client then is to free it. */
void instance_discard(struct client *client);

/* Ends and removes one in which nothing runs; E_BUSY: something does. */
_warn_unused_ int instance_remove_idle(const cloche_instance *instance, struct cloche_err *err);

/* Opens the directory of the sandbox: it may have ended, but not crashed. */
_warn_unused_ int instance_open_entry(
	const cloche_instance *instance, struct sandbox_entry *ret, struct cloche_err *err);

/* --- logs (instance_log.c) --- */

/* Begins to be told of changes: a descriptor of inotify to poll. 0 or a negative code. */
_warn_unused_ int log_watch(cloche_log *log, int *ret_fd, struct cloche_err *err);
/* The position from which a reader starts that said offset, or as many bytes from the end. */
_warn_unused_ int log_start(
	cloche_log *log, uint64_t offset, bool from_end, uint64_t *ret, struct cloche_err *err);

static inline void cloche_instance_freep(cloche_instance **instance)
{
	cloche_instance_free(*instance);
}
static inline void cloche_log_freep(cloche_log **log)
{
	cloche_log_free(*log);
}
static inline void sandbox_entry_donep(struct sandbox_entry *e)
{
	sandbox_entry_done(e);
}
