/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the manager. */

#include "api/instance/instance.h"
#include "manager/owner.h"
#include "sandbox/sandbox.h"
#include <cloche/manager.h>
#include <cloche/status.h>
#include <pthread.h>

enum { MANAGER_RUN_ID_MAX = 128 };

/* A sandbox that was made and not destroyed. */
struct managed {
	struct managed *prev, *next;
	char id[RUNDIR_ID_BYTES + 1];
	char name[CTL_MAX_NAME + 1];         /* "": none */
	char run_id[MANAGER_RUN_ID_MAX + 1]; /* the same */
	uint64_t memory;                     /* its limit */
	uint64_t created_us;                 /* since 1970 */
	bool over;                           /* nothing of it runs any more */
	bool doomed;                         /* destroying it has failed, and is tried again */
	int end; /* of sandbox_watch(); -1: nobody has waited for its end yet */
};

/* A caller that waits for admission, first come first served. The descriptors are -1 until it has
 * to wait, and what the first in the queue watches until it is the first. */
struct waiting {
	struct waiting *prev, *next;
	int wake;        /* an eventfd: the queue or the list of sandboxes has changed */
	int ends;        /* an epoll descriptor: running sandboxes end */
	int promises;    /* of owner_watch() */
	int orphans[16]; /* of sandbox_watch() */
	size_t orphans_n;
	bool blind; /* it waits for something that nobody can watch */
};

struct cloche_manager {
	int base;
	struct owner owner;
	cloche_sandbox *defaults;
	cloche_warning_fn fn;
	void *user;

	pthread_mutex_t lock;   /* for all that follows */
	pthread_cond_t changed; /* for the manager's own thread */
	struct managed *sandboxes;
	struct waiting *waiting;
	unsigned entered; /* runs not in the list: being made, or cloche_manager_enter() */
	uint64_t entered_memory;
	unsigned max_runs;
	uint64_t lifetime_ms, interval_ms;
	uint64_t collected_at; /* clock_mono_usec() */
	uint64_t collected_us; /* since 1970; 0: never */
	char error[1200];      /* the last one; "": none */
	bool has_thread, closing;
	pthread_t thread;
	int thread_fd; /* an eventfd: the thread has ended; -1: there is none */
	pid_t pid;     /* of the process that opened it */
	cloche_manager *next_at_exit;
	bool at_exit;
};

/* Report a warning to the user. The arguments are those of printf. */
void manager_tell(cloche_manager *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Try again to destroy what cloche_manager_destroy() could not destroy. */
_warn_unused_ int manager_destroy_doomed(cloche_manager *m, struct cloche_err *err);

/* --- manager_admit.c --- */

/* Without the lock: publish how much memory is promised to all that runs. It must not be more than
 * before. */
void manager_settle_promises(cloche_manager *m);
/* Return what a sandbox may take of this machine's memory. */
uint64_t manager_memory(const cloche_sandbox *sb);
/* With the lock held: return the sum of those promises. */
uint64_t manager_sum_promises(const cloche_manager *m);
/* With the lock held: tell whoever waits that something has changed. */
void manager_changed(cloche_manager *m);
/* With the lock held: check each sandbox and return how many run. */
unsigned manager_count_running(cloche_manager *m);
/* Free what a member of the list holds, and it. */
void managed_free(struct managed *s);

/* --- manager_collect.c --- */

/* With the lock held: start the thread if one is needed. */
_warn_unused_ int manager_start_thread(cloche_manager *m, struct cloche_err *err);
/* Set whether the manager cleans up when the process exits. */
_warn_unused_ int manager_set_at_exit(cloche_manager *m, bool wanted, struct cloche_err *err);

/* --- manager_status.c --- */

/* Return what a status says of a manager, or NULL. */
json_t *manager_status(cloche_manager *m);

/* --- places.c: whether other places answer --- */

struct places;
/* Ask the places of these sandboxes, each once, at the same time. Fail only for lack of memory, if
 * there are too many, or if the job was cancelled. */
_warn_unused_ int places_ask(const cloche_sandbox *const *sandboxes, size_t n, struct places **ret,
	struct cloche_err *err);
/* Return what they said: borrowed, NULL after the last. */
const cloche_place_status *const *places_list(const struct places *p);
json_t *places_describe(const struct places *p);
void places_free(struct places *p);

/* --- status.c: the status of everything --- */

/* Return whether cloche's supervisor is there, without which no provider works. */
bool status_has_supervisor(struct cloche_err *err);
/* Return a time in UTC in the format of RFC 3339, or JSON null if it is 0. */
json_t *status_time(uint64_t us);
/* Return the name of the container or pod that was made for that sandbox, or null. */
json_t *status_container(const char *provider, const char *id);
