/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_TASK_H
#define CLOCHE_TASK_H
/* A task of an agent: a driver (such as Claude Code) runs headless in a sandbox with a prompt. Its
 * events are streamed and stored in an execution context, and the outcome is classified.
 *
 * cloche_task_execute() blocks, or gives way in a job (cloche/job.h), whose cancelling ends the
 * agent at once; meanwhile cloche_task_stop() may be called from any thread and from a signal
 * handler. After it has returned, a task may be executed again with another prompt; until then, a
 * second cloche_task_execute() fails with CLOCHE_E_BUSY and changes nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "event.h"
#include "run.h"
#include "sandbox.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_task cloche_task;

enum cloche_outcome {
	CLOCHE_OUTCOME_SUCCESS,
	CLOCHE_OUTCOME_TIMEOUT,
	CLOCHE_OUTCOME_PROMPT_TOO_LONG,   /* start a new session, and describe what was before */
	CLOCHE_OUTCOME_SESSION_CORRUPTED, /* the same */
	CLOCHE_OUTCOME_CONTAINER_FAILED,  /* any other failure */
};

/* Create a task. The configuration is copied. driver NULL: "claude-code". context_dir is the
 * execution context (made if missing); context_id names a new context (NULL: generated). Links that
 * a sandbox may have left on the way to it end in CLOCHE_E_DENIED (cloche-cp(1) has the rules). A
 * new context is written, and a damaged one set aside, only when the task executes. The task adds
 * what the driver needs: the agent's program (found on the host, mounted read-only), its state
 * directory, its hosts, and its credential from the caller's environment as a masked secret, unless
 * sb has a secret of that name. Executing fails with CLOCHE_E_USAGE if sb mounts something at or
 * below the path of the program or of the state (/root/.claude). */
CLOCHE_API int cloche_task_new(const cloche_sandbox *sb, const char *driver,
	const char *context_dir, const char *context_id, cloche_task **ret, cloche_err *err);
CLOCHE_API void cloche_task_free(cloche_task *task);

/* --- a sandbox as the owner of tasks ---
 *
 * cloche_sandbox_create_task(), cloche_sandbox_shutdown() and cloche_sandbox_startup() may be
 * called for the same sb by any thread at any time, as long as no thread changes sb or frees it;
 * but not from a callback of a task, and not in a signal handler. Each task still belongs to one
 * thread. Tasks may be freed before or after sb.
 *
 * Start sb: remove what crashed sandboxes of this user have left, and check that the provider of
 * sb, or one of those that "auto" stands for, works now. If none does, return CLOCHE_E_UNSUPPORTED
 * or the error of that provider, with the reasons of each. A task, like any run, uses the first
 * provider that works, and warns if that is not the usual one. If sb is already started, nothing
 * changes. Waits for a shutdown in progress. */
CLOCHE_API int cloche_sandbox_startup(cloche_sandbox *sb, cloche_err *err);
/* Create a task (cloche_task_new()) for Claude Code with a copy of sb and, if they are not NULL or
 * 0: a stored image as its root (a name of cloche/image.h, such as that of
 * cloche_image_build_tag()), a file for the network log, and a time limit in milliseconds.
 * context_id and context_dir are as for cloche_task_new(). Nothing starts to run; the caller frees
 * *ret. CLOCHE_E_CANCELLED: sb is not started, or was shut down. */
CLOCHE_API int cloche_sandbox_create_task(const cloche_sandbox *sb, const char *context_id,
	const char *image, const char *context_dir, const char *network_log, uint64_t timeout_ms,
	cloche_task **ret, cloche_err *err);
/* Stop all executing tasks of cloche_sandbox_create_task(), like cloche_task_stop(), and return
 * when they have ended; for their threads, execution ends normally with the detail "cancelled".
 * Until the next startup, executing one fails with CLOCHE_E_CANCELLED. Tasks of cloche_task_new()
 * are not affected. CLOCHE_E_CANCELLED: this was called in a job (cloche/job.h) that was cancelled
 * before they had ended. CLOCHE_E_SYSTEM: it could not wait. All are asked to stop in any case. */
CLOCHE_API int cloche_sandbox_shutdown(cloche_sandbox *sb, cloche_err *err);

/* Set an option by its name (that of cloche-agent(1)); value is copied, and NULL removes the
 * setting.
 *
 *   model          the agent's model; default: that of the context, else the agent's own
 *   effort         how much the agent thinks, in the driver's words
 *   system-prompt  text for the agent beside its own instructions
 *   agent-binary   this program of the host is the agent, instead of one that is searched for
 *   max-turns      a number: the agent ends after so many turns
 *   resume         continue a session: an id, or "last" for the latest of the context
 *                  (CLOCHE_E_NOT_FOUND if it has none; if that is because the context is damaged,
 *                  the message says so)
 *
 * CLOCHE_E_USAGE: there is no such option, or value is not right for it. */
CLOCHE_API int cloche_task_set(
	cloche_task *task, const char *name, const char *value, cloche_err *err);

/* Call fn on the executing thread with each event of the agent, which is borrowed for the call. */
CLOCHE_API void cloche_task_on_event(cloche_task *task, cloche_event_fn fn, void *user);

/* Call fn with progress for display, one line at a time: what the agent says, which tool it
 * uses. */
CLOCHE_API void cloche_task_on_progress(cloche_task *task, cloche_warning_fn fn, void *user);
CLOCHE_API void cloche_task_on_warning(cloche_task *task, cloche_warning_fn fn, void *user);

/* Run the agent with the prompt (length bytes) to its end. Return 0 if it ran.
 * cloche_task_result_of() says how it ended. */
CLOCHE_API int cloche_task_execute(
	cloche_task *task, const void *prompt, size_t length, cloche_err *err);

/* Like cloche_run_stop(): return true if the task was executing. The partial result is kept. */
CLOCHE_API bool cloche_task_stop(cloche_task *task);

/* How a task ended. Strings are borrowed until the next execute or free; NULL: there is none. */
typedef struct cloche_task_result {
	size_t size; /* of this struct in the library: later versions append members */
	enum cloche_outcome outcome;
	/* "success", "timeout", "prompt_too_long", "session_corrupted", "container_failed" */
	const char *outcome_name;
	int exit_status;    /* of `cloche agent`: 0, 124, 3, 4, 1, in the same order */
	const char *detail; /* "cancelled", "out_of_memory" */
	bool is_error;      /* as in the reply of the context */
	const char *session_id;
	const char *response;      /* the agent's answer, if the outcome is success */
	const char *error_summary; /* else */
	/* json has only a part of the agent's output: it keeps the first MiB of each stream. Events
	 * are read from all of it. */
	bool stdout_truncated, stderr_truncated;
	uint64_t turns, duration_ms;
	double cost_usd;
	cloche_event_usage usage; /* tokens, from the last result */
	const char *json;         /* the whole result as one document (cloche-agent(1)) */
	const cloche_result *run; /* of the underlying run; NULL before the first execute */
} cloche_task_result;

/* Return how the last execution ended. Never NULL; borrowed until the task is freed. */
CLOCHE_API const cloche_task_result *cloche_task_result_of(const cloche_task *task);

/* What a task leaves. Nothing here changes, so any thread may read it, also while the task
 * executes. Strings are borrowed until the task is freed. */
typedef struct cloche_task_paths {
	size_t size; /* of this struct in the library: later versions append members */
	const char *context_dir, *context_id;
	/* The agent's events (events.jsonl, for cloche_event_stream_feed_file()), and the plain
	 * network log (for cloche_network_log_open()). There is no such file before the first
	 * execution, and no network log without a network. */
	const char *event_log, *network_log;
} cloche_task_paths;
CLOCHE_API const cloche_task_paths *cloche_task_paths_of(const cloche_task *task);

#ifdef __cplusplus
}
#endif
#endif
