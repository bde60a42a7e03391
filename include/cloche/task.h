/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_TASK_H
#define CLOCHE_TASK_H
/* An agent's task: a driver (Claude Code first) runs headless in a sandbox with a prompt, its
 * events are streamed and kept in an execution context, and the ending is classified.
 *
 * cloche_task_execute() blocks; cloche_task_stop() may be called from any thread (and from a signal
 * handler) while it does. A task may be executed again after it returned, for another prompt. */

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
	CLOCHE_OUTCOME_PROMPT_TOO_LONG,   /* start a new session and say what was before */
	CLOCHE_OUTCOME_SESSION_CORRUPTED, /* the same */
	CLOCHE_OUTCOME_CONTAINER_FAILED,  /* any other failure */
};

/* Copies the configuration. driver NULL: "claude-code". context_dir: the execution context (made
 * if missing); context_id names a new one (NULL: generated). Adds what the driver needs: the
 * agent's program (found on the host, mounted read-only), its state directory, its hosts, and its
 * credential as a masked secret from the caller's environment unless sb has one of that name.
 * Executing fails with CLOCHE_E_USAGE if sb mounts something at, or below, the place of the
 * program or of the state (/root/.claude). */
CLOCHE_API int cloche_task_new(const cloche_sandbox *sb, const char *driver,
	const char *context_dir, const char *context_id, cloche_task **ret, cloche_err *err);
CLOCHE_API void cloche_task_free(cloche_task *task);

/* --- a sandbox as the owner of tasks ---
 *
 * cloche_sandbox_create_task(), cloche_sandbox_shutdown() and cloche_sandbox_startup() may be
 * called for the same sb by any thread at any time, as long as nobody sets something of sb or frees
 * it; not by a callback of a task, and not in a signal handler. Each task belongs to one thread
 * again. Tasks may be freed before or after sb.
 *
 * Starts it: removes what crashed sandboxes of this user have left, and asks whether a provider
 * that sb names, or one of those that "auto" stands for, works now. CLOCHE_E_UNSUPPORTED, or what
 * that provider says, with the reasons of each: none does. A task takes, as any run does, the first
 * that works, and warns if that is not the usual one. What is started already stays so; waits for
 * a shutdown that is under way. */
CLOCHE_API int cloche_sandbox_startup(cloche_sandbox *sb, cloche_err *err);
/* A new task (cloche_task_new()) of Claude Code with a copy of sb and, if they are not NULL or
 * 0: an image that is stored as its root (a name of cloche/image.h, such as what
 * cloche_image_build_tag() gives), a file for the network log, a time limit in milliseconds.
 * context_id and context_dir as there. Nothing begins to run; the caller frees *ret.
 * CLOCHE_E_CANCELLED: sb is not started, or was shut down. */
CLOCHE_API int cloche_sandbox_create_task(const cloche_sandbox *sb, const char *context_id,
	const char *image, const char *context_dir, const char *network_log, uint64_t timeout_ms,
	cloche_task **ret, cloche_err *err);
/* Stops all tasks of cloche_sandbox_create_task() that execute, as cloche_task_stop() does, and
 * returns when they have ended; their threads see an ordinary end with the detail "cancelled".
 * From then on executing one fails with CLOCHE_E_CANCELLED, until the next startup. Tasks of
 * cloche_task_new() are none of its. Cannot fail: returns 0. */
CLOCHE_API int cloche_sandbox_shutdown(cloche_sandbox *sb, cloche_err *err);

/* All copied; NULL takes the setting back. */
CLOCHE_API int cloche_task_set_model(cloche_task *task, const char *model, cloche_err *err);
CLOCHE_API int cloche_task_set_effort(cloche_task *task, const char *effort, cloche_err *err);
CLOCHE_API int cloche_task_set_system_prompt(cloche_task *task, const char *text, cloche_err *err);
/* The agent's program on the host instead of the one that is found. */
CLOCHE_API int cloche_task_set_agent_binary(cloche_task *task, const char *path, cloche_err *err);
CLOCHE_API void cloche_task_set_max_turns(cloche_task *task, unsigned turns);
/* A session to continue: its id, or "last" for the context's latest. */
CLOCHE_API int cloche_task_set_resume(cloche_task *task, const char *session, cloche_err *err);

/* Called on the executing thread with each event as one line of JSON (terminated, without newline)
 * and its type ("system", "assistant", "user", "result", or what the agent said). */
typedef void (*cloche_event_fn)(const char *type, const char *json, void *user);
CLOCHE_API void cloche_task_on_event(cloche_task *task, cloche_event_fn fn, void *user);

/* The same with the event's types. It is borrowed for the call. */
CLOCHE_API void cloche_task_on_typed_event(cloche_task *task, cloche_event_typed_fn fn, void *user);

/* Called with one line of progress for a person: what the agent says, which tool it uses. */
CLOCHE_API void cloche_task_on_progress(cloche_task *task, cloche_warning_fn fn, void *user);
CLOCHE_API void cloche_task_on_warning(cloche_task *task, cloche_warning_fn fn, void *user);

/* Runs the agent with the prompt (length bytes) to its end. Returns 0 if it ran; how it ended is
 * in the accessors below, valid until the next execute or free. */
CLOCHE_API int cloche_task_execute(
	cloche_task *task, const void *prompt, size_t length, cloche_err *err);

/* As cloche_run_stop(). The partial result is kept. */
CLOCHE_API bool cloche_task_stop(cloche_task *task);

CLOCHE_API enum cloche_outcome cloche_task_outcome(const cloche_task *task);
/* "success", "timeout", "prompt_too_long", "session_corrupted", "container_failed". */
CLOCHE_API const char *cloche_outcome_name(enum cloche_outcome outcome);
/* 0, 124, 3, 4, 1. */
CLOCHE_API int cloche_outcome_exit_status(enum cloche_outcome outcome);
/* "cancelled", "out_of_memory", or NULL. */
CLOCHE_API const char *cloche_task_detail(const cloche_task *task);
/* NULL if there is none. Borrowed. */
CLOCHE_API const char *cloche_task_session_id(const cloche_task *task);
CLOCHE_API const char *cloche_task_response(const cloche_task *task);
CLOCHE_API const char *cloche_task_error_summary(const cloche_task *task);
/* Whether the result's document has less of the agent's output than there was: it keeps the first
 * MiB of each stream. Events come from all of it. */
CLOCHE_API bool cloche_task_stdout_truncated(const cloche_task *task);
CLOCHE_API bool cloche_task_stderr_truncated(const cloche_task *task);
CLOCHE_API const char *cloche_task_context_dir(const cloche_task *task);
CLOCHE_API const char *cloche_task_context_id(const cloche_task *task);
/* These three may be called by any thread, also while the task executes.
 *
 * Loads the context as it is now, for reading; the caller frees *ret, which stays as it is. */
CLOCHE_API int cloche_task_session(const cloche_task *task, cloche_session **ret, cloche_err *err);
/* Paths of the agent's events (events.jsonl, for cloche_event_stream_feed_file()) and of the
 * network log in its plain form (for cloche_network_log_open()); NULL if there is no such file,
 * as before the first execution or if there was no network. Borrowed until the task is freed. */
CLOCHE_API const char *cloche_task_event_log(const cloche_task *task);
CLOCHE_API const char *cloche_task_network_log(const cloche_task *task);
CLOCHE_API double cloche_task_cost_usd(const cloche_task *task);
CLOCHE_API uint64_t cloche_task_turns(const cloche_task *task);
CLOCHE_API uint64_t cloche_task_duration_ms(const cloche_task *task);
/* The tokens of the last execution, as its last result has them; borrowed until the next call,
 * execute or free. CLOCHE_E_NO_MEMORY. */
CLOCHE_API int cloche_task_token_usage(cloche_task *task, cloche_event_usage *ret, cloche_err *err);
/* The whole result as one JSON document (cloche-agent(1)); borrowed. */
CLOCHE_API const char *cloche_task_result_json(const cloche_task *task);
/* The run beneath: its accessors give exit code, usage, network counts. Borrowed; NULL before the
 * first execute. */
CLOCHE_API const cloche_run *cloche_task_run(const cloche_task *task);

#ifdef __cplusplus
}
#endif
#endif
