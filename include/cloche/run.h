/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_RUN_H
#define CLOCHE_RUN_H
/* Runs: a run is one command, either in a sandbox of its own that is made and torn down with it, or
 * in a long-lived sandbox (cloche/instance.h). Every way in which the command can end, including a
 * timeout, is a result. An error means that the sandbox itself failed.
 *
 * cloche_run_execute() blocks. Meanwhile cloche_run_stop(), cloche_run_signal() and
 * cloche_run_leave() may be called from any thread and from signal handlers. Everything else
 * belongs to one thread; different runs may be used by different threads at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_run cloche_run;
typedef struct cloche_instance cloche_instance;

/* Create a run in a sandbox of its own. Copies the configuration and the command (argv ends with
 * NULL). */
CLOCHE_API int cloche_run_new(
	const cloche_sandbox *sb, const char *const *argv, cloche_run **ret, cloche_err *err);
/* Create a run in an existing sandbox. The handle is needed during the call only. */
CLOCHE_API int cloche_run_new_in(const cloche_instance *instance, const char *const *argv,
	cloche_run **ret, cloche_err *err);
/* Join a command that another run has started. cloche_run_execute() then passes on the command's
 * output from its log, and input to the command if its input is still open (a terminal, or
 * cloche_run_set_keep_input()), until it ends. If it has ended already, the run gives its output
 * and result. number 0: the latest running command, or else the latest. */
CLOCHE_API int cloche_run_new_joining(
	const cloche_instance *instance, uint32_t number, cloche_run **ret, cloche_err *err);
/* Free the run. A command in a long-lived sandbox keeps running; a sandbox of the run's own
 * ends. */
CLOCHE_API void cloche_run_free(cloche_run *run);

/* Settings for this command only; what is not set is taken from the sandbox. User and group are
 * numbers of the room (default: the sandbox's own user, or its image's). HOME, USER and LOGNAME are
 * the user's unless they are set. The command is ended timeout_ms after its start. */
CLOCHE_API int cloche_run_set_env(
	cloche_run *run, const char *name, const char *value, cloche_err *err);
CLOCHE_API int cloche_run_set_workdir(cloche_run *run, const char *dir, cloche_err *err);
CLOCHE_API void cloche_run_set_user(cloche_run *run, uint32_t uid, uint32_t gid);
CLOCHE_API void cloche_run_set_timeout(cloche_run *run, uint64_t timeout_ms);

/* If true, cloche_run_execute() returns as soon as the command has started, and its output goes to
 * its log only. A sandbox of its own then ends with the command, but its record and log stay
 * (cloche_instance_open()). */
CLOCHE_API void cloche_run_set_detached(cloche_run *run, bool detached);
/* If true, the input of a detached command without a terminal stays open for runs that join it,
 * instead of being empty. */
CLOCHE_API void cloche_run_set_keep_input(cloche_run *run, bool keep);
/* For a joined command: where in its log the output starts. from_end: offset is the number of bytes
 * before the end. Default: the beginning of what is kept. */
CLOCHE_API void cloche_run_set_log_offset(cloche_run *run, uint64_t offset, bool from_end);
/* Two keys that, typed one after the other on the terminal, leave the command running:
 * cloche_run_execute() returns 0 and cloche_run_left() is true. "" turns this off (the default). */
CLOCHE_API int cloche_run_set_detach_keys(cloche_run *run, const char *keys, cloche_err *err);

/* Set the command's standard input: a descriptor (borrowed until execute returns, and read as the
 * command asks for more), or bytes (copied). Default: empty. */
CLOCHE_API void cloche_run_set_stdin_fd(cloche_run *run, int fd);
CLOCHE_API int cloche_run_set_stdin_data(
	cloche_run *run, const void *data, size_t length, cloche_err *err);

/* Give the command a terminal. The caller's terminal on fd (borrowed) is in raw mode while the
 * command runs. */
CLOCHE_API void cloche_run_set_tty(cloche_run *run, int fd);

/* Call fn on the executing thread for each piece of output as it arrives; is_stderr tells the
 * stream. Without fn the output is kept for cloche_run_stdout() and cloche_run_stderr(): the first
 * 16 MiB of each stream, or as much as cloche_sandbox_set_output_limit() says, at most 256 MiB. */
typedef void (*cloche_output_fn)(bool is_stderr, const void *data, size_t length, void *user);
CLOCHE_API void cloche_run_on_output(cloche_run *run, cloche_output_fn fn, void *user);

CLOCHE_API void cloche_run_on_warning(cloche_run *run, cloche_warning_fn fn, void *user);

/* Run the command to its end. Return 0 if it ran (the accessors say how it ended). Call this
 * once. */
CLOCHE_API int cloche_run_execute(cloche_run *run, cloche_err *err);

/* End a running command: send TERM to everything in the sandbox (in a long-lived sandbox: to the
 * command's process group), and KILL after five seconds. A second call kills at once. Return true
 * if something was running. */
CLOCHE_API bool cloche_run_stop(cloche_run *run);

/* Make execute return soon, and leave a command in a long-lived sandbox running (cloche_run_left()
 * is then true). Return true if something was running. */
CLOCHE_API bool cloche_run_leave(cloche_run *run);

/* Send a signal to the command's process group. May be called from a signal handler. Return true if
 * something was running. */
CLOCHE_API bool cloche_run_signal(cloche_run *run, int signal_number);

typedef struct cloche_usage {
	uint64_t cpu_ms;
	uint64_t memory_peak_bytes; /* 0 if not measured */
	uint64_t pids_peak;         /* 0 if not measured */
} cloche_usage;

/* The result. Strings and bytes are borrowed until the run is freed. */
CLOCHE_API const char *cloche_run_id(const cloche_run *run);
CLOCHE_API const char *cloche_run_provider(const cloche_run *run);
/* "sandbox", or "none" with the provider "subprocess" or before there is a provider. Static. */
CLOCHE_API const char *cloche_run_isolation(const cloche_run *run);
/* The command's number in its sandbox; 0 if it has not started. */
CLOCHE_API uint32_t cloche_run_number(const cloche_run *run);
/* True if the command was left running: see cloche_run_leave(), cloche_run_set_detach_keys(). */
CLOCHE_API bool cloche_run_left(const cloche_run *run);
/* The command's exit code; 128+n if signal n ended it; 124 after a timeout; 126 or 127 if it
 * could not be started. */
CLOCHE_API int cloche_run_exit_code(const cloche_run *run);
CLOCHE_API int cloche_run_exit_signal(const cloche_run *run); /* 0: none */
CLOCHE_API bool cloche_run_timed_out(const cloche_run *run);
CLOCHE_API bool cloche_run_oom_killed(const cloche_run *run);
/* True if the process limit refused a process at least once. */
CLOCHE_API bool cloche_run_pids_refused(const cloche_run *run);
CLOCHE_API bool cloche_run_stopped(const cloche_run *run); /* by cloche_run_stop() */
/* Why the command could not be started, or "". */
CLOCHE_API const char *cloche_run_start_failure(const cloche_run *run);
CLOCHE_API uint64_t cloche_run_duration_ms(const cloche_run *run);
CLOCHE_API const void *cloche_run_stdout(const cloche_run *run, size_t *ret_length);
CLOCHE_API const void *cloche_run_stderr(const cloche_run *run, size_t *ret_length);
CLOCHE_API bool cloche_run_stdout_truncated(const cloche_run *run);
CLOCHE_API bool cloche_run_stderr_truncated(const cloche_run *run);
/* For a command in a sandbox of its own; otherwise all 0 (see cloche_instance_stats()). */
CLOCHE_API cloche_usage cloche_run_usage(const cloche_run *run);
/* The number of requests that the policy allowed or blocked. */
CLOCHE_API uint64_t cloche_run_network_allowed(const cloche_run *run);
CLOCHE_API uint64_t cloche_run_network_blocked(const cloche_run *run);
/* True if the run's own sandbox has a full record: cloche_oplog_open(cloche_run_id()). */
CLOCHE_API bool cloche_run_is_recorded(const cloche_run *run);

#ifdef __cplusplus
}
#endif
#endif
