/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The person's kubectl, at one place. */

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include <sys/types.h>

enum { KUBECTL_OUT_MAX = 4 * 1024 * 1024, KUBECTL_SAID_MAX = 4096 };

struct kubectl {
	char *path;
	char *context, *space; /* NULL: what kubectl takes by itself */
};

void kubectl_done(struct kubectl *k);
static inline void kubectl_donep(struct kubectl *k)
{
	kubectl_done(k);
}

/* Find kubectl, and what a place (NULL: none) means: CONTEXT or CONTEXT/NAMESPACE. A context may
 * have slashes in its own name. */
_warn_unused_ int kubectl_init(struct kubectl *k, const char *place, struct cloche_err *err);
/* The same in two steps. What is behind the last slash of a place is taken for the namespace,
 * unless a context is called so as a whole: kubectl is asked for that by kubectl_confirm(), and
 * returns 1 if k has changed because of it. Until then nothing is said to a cluster. */
_warn_unused_ int kubectl_guess(struct kubectl *k, const char *place, struct cloche_err *err);
_warn_unused_ int kubectl_confirm(struct kubectl *k, const char *place, struct cloche_err *err);
/* Find out which context and namespace kubectl takes by itself. */
_warn_unused_ int kubectl_settle(struct kubectl *k, struct cloche_err *err);

/* One run of it. */
struct kubectl_run {
	const char *verb;
	pid_t pid;
	int pidfd, to, from, errors;
	struct str input; /* what is not written yet, borrowed */
	struct buf out, said;
	bool ended;
	int status; /* its exit status, when it has ended; -1: it has none */
};
#define KUBECTL_RUN_NONE                                                                           \
	((struct kubectl_run){.pidfd = -1, .to = -1, .from = -1, .errors = -1, .ended = true})

/* Start it with these words (NULL-terminated). It gets its input by kubectl_turn() only. */
_warn_unused_ int kubectl_begin(const struct kubectl *k, const char *const *words, struct str input,
	struct kubectl_run *ret, struct cloche_err *err);
/* Wait until one of n runs has said something or has ended. Return 0, or -ETIMEDOUT. */
int kubectl_turn(struct kubectl_run *const *runs, size_t n, uint64_t until_usec);
/* End it, and free what it has. */
void kubectl_end(struct kubectl_run *run);
static inline void kubectl_endp(struct kubectl_run *run)
{
	kubectl_end(run);
}
/* Set err to what a run has said that has failed or took too long. */
int kubectl_fail(const struct kubectl *k, const struct kubectl_run *run, struct cloche_err *err);

/* Wait for its end. *ret: the JSON value that it has said, a new reference; NULL if there is none.
 */
_warn_unused_ int kubectl_finish_json(const struct kubectl *k, struct kubectl_run *run,
	int patience_sec, json_t **ret, struct cloche_err *err);

/* Run it to its end; ret gets its output, and may be NULL. */
_warn_unused_ int kubectl_call(const struct kubectl *k, const char *const *words, struct str input,
	int patience_sec, struct buf *ret, struct cloche_err *err);
/* The same, for one JSON value. *ret: a new reference; NULL if it said nothing. */
_warn_unused_ int kubectl_ask(const struct kubectl *k, const char *const *words, struct str input,
	int patience_sec, json_t **ret, struct cloche_err *err);

/* Answer with "far" and become kubectl with these words. Return only on lack of memory. */
int kubectl_become(const struct kubectl *k, const char *const *words, struct cloche_err *err);
