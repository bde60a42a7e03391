/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_RUN_H
#define CLOCHE_RUN_H
/* One command: in a sandbox of its own that is made, used and torn down with it, or in one that
 * lives longer (cloche/instance.h). Every ending of the command, a timeout included, is a result;
 * an error means that the sandbox itself failed.
 *
 * cloche_run_execute() blocks; cloche_run_stop(), cloche_run_signal() and cloche_run_leave() may be
 * called from any thread and from signal handlers while it does. Everything else belongs to one
 * thread; different runs may be used by different threads at a time. */

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

/* Copies the configuration and the command (argv ends with NULL). */
CLOCHE_API int cloche_run_new(
	const cloche_sandbox *sb, const char *const *argv, cloche_run **ret, cloche_err *err);
/* A command in a sandbox that is there already. The handle is needed for the call only. */
CLOCHE_API int cloche_run_new_in(const cloche_instance *instance, const char *const *argv,
	cloche_run **ret, cloche_err *err);
/* Joins a command that was started by somebody else and may run: executing it hands on its output
 * from its log, and input to it if it keeps that open (a terminal, or
 * cloche_run_set_keep_input), until it ends. One that has ended gives its output and result. number
 * 0: the latest that runs, else the latest. */
CLOCHE_API int cloche_run_new_joining(
	const cloche_instance *instance, uint32_t number, cloche_run **ret, cloche_err *err);
/* Never ends a command in a sandbox that lives longer; one in a sandbox of its own ends. */
CLOCHE_API void cloche_run_free(cloche_run *run);

/* For this command alone; what is not set is the sandbox's. User and group are those of the room
 * (default 0, 0). A command that is still there timeout_ms after its start is ended. */
CLOCHE_API int cloche_run_set_env(
	cloche_run *run, const char *name, const char *value, cloche_err *err);
CLOCHE_API int cloche_run_set_workdir(cloche_run *run, const char *dir, cloche_err *err);
CLOCHE_API void cloche_run_set_user(cloche_run *run, uint32_t uid, uint32_t gid);
CLOCHE_API void cloche_run_set_timeout(cloche_run *run, uint64_t timeout_ms);

/* True: execute returns as soon as the command has started; its output goes to its log alone. A
 * sandbox of its own ends with it then, but its record and log stay (cloche_instance_open()). */
CLOCHE_API void cloche_run_set_detached(cloche_run *run, bool detached);
/* True: if a detached command has no terminal, its input stays open for whoever joins it,
 * instead of being empty. */
CLOCHE_API void cloche_run_set_keep_input(cloche_run *run, bool keep);
/* Of a joined command: where in its log the output that is handed on begins; from_end: that many
 * bytes before the end. Default: with what is kept of the beginning. */
CLOCHE_API void cloche_run_set_log_offset(cloche_run *run, uint64_t offset, bool from_end);
/* Two keys that, typed one after the other on the terminal, leave the command running: execute
 * returns 0 and cloche_run_left() is true. "" turns it off (the default). */
CLOCHE_API int cloche_run_set_detach_keys(cloche_run *run, const char *keys, cloche_err *err);

/* Where the command's standard input comes from: a descriptor (borrowed until execute returns, read
 * as the command asks for more), or bytes (copied). Default: empty. */
CLOCHE_API void cloche_run_set_stdin_fd(cloche_run *run, int fd);
CLOCHE_API int cloche_run_set_stdin_data(
	cloche_run *run, const void *data, size_t length, cloche_err *err);

/* Gives the command a terminal; the caller's, on fd (borrowed), is put into raw mode meanwhile. */
CLOCHE_API void cloche_run_set_tty(cloche_run *run, int fd);

/* Called on the executing thread with each piece of output as it comes; is_stderr tells which.
 * Without it the output is kept and cloche_run_stdout() returns it: of each stream the first 16
 * MiB, or what cloche_sandbox_set_output_limit() says, at most 256 MiB. */
typedef void (*cloche_output_fn)(bool is_stderr, const void *data, size_t length, void *user);
CLOCHE_API void cloche_run_on_output(cloche_run *run, cloche_output_fn fn, void *user);

CLOCHE_API void cloche_run_on_warning(cloche_run *run, cloche_warning_fn fn, void *user);

/* Runs the command to its end. Returns 0 if it ran (see the accessors for how it ended). Call it
 * once. */
CLOCHE_API int cloche_run_execute(cloche_run *run, cloche_err *err);

/* Ends a running command: TERM to everything inside (in a longer-living sandbox: to its process
 * group), KILL after five seconds. A second call kills at once. Returns true if something was
 * running. */
CLOCHE_API bool cloche_run_stop(cloche_run *run);

/* Makes execute return soon and leaves a command in a longer-living sandbox running
 * (cloche_run_left is true then). Returns true if something was running. */
CLOCHE_API bool cloche_run_leave(cloche_run *run);

/* Sends a signal to the command's process group; may be called from a signal handler. Returns true
 * if something was running. */
CLOCHE_API bool cloche_run_signal(cloche_run *run, int signal_number);

typedef struct cloche_usage {
	uint64_t cpu_ms;
	uint64_t memory_peak_bytes; /* 0 if it is not measured */
	uint64_t pids_peak;         /* 0 if it is not measured */
} cloche_usage;

/* The result. Strings and bytes are borrowed until the run is freed. */
CLOCHE_API const char *cloche_run_id(const cloche_run *run);
CLOCHE_API const char *cloche_run_provider(const cloche_run *run);
/* "sandbox"; "none" with provider "subprocess", or before there is a provider. Static. */
CLOCHE_API const char *cloche_run_isolation(const cloche_run *run);
/* The command's number in its sandbox, 0 if it has not started. */
CLOCHE_API uint32_t cloche_run_number(const cloche_run *run);
/* It went on without us: see cloche_run_leave(), cloche_run_set_detach_keys(). */
CLOCHE_API bool cloche_run_left(const cloche_run *run);
/* The command's exit code; 128+n if signal n ended it; 124 after a timeout; 126 or 127 if it
 * could not be started. */
CLOCHE_API int cloche_run_exit_code(const cloche_run *run);
CLOCHE_API int cloche_run_exit_signal(const cloche_run *run); /* 0: none */
CLOCHE_API bool cloche_run_timed_out(const cloche_run *run);
CLOCHE_API bool cloche_run_oom_killed(const cloche_run *run);
/* The limit on processes refused one at least once. */
CLOCHE_API bool cloche_run_pids_refused(const cloche_run *run);
CLOCHE_API bool cloche_run_stopped(const cloche_run *run); /* by cloche_run_stop() */
/* Why the command could not be started, or "". */
CLOCHE_API const char *cloche_run_start_failure(const cloche_run *run);
CLOCHE_API uint64_t cloche_run_duration_ms(const cloche_run *run);
CLOCHE_API const void *cloche_run_stdout(const cloche_run *run, size_t *ret_length);
CLOCHE_API const void *cloche_run_stderr(const cloche_run *run, size_t *ret_length);
CLOCHE_API bool cloche_run_stdout_truncated(const cloche_run *run);
CLOCHE_API bool cloche_run_stderr_truncated(const cloche_run *run);
/* Of a command in a sandbox of its own; all 0 for others (see cloche_instance_stats()). */
CLOCHE_API cloche_usage cloche_run_usage(const cloche_run *run);
/* Requests that policy let pass and refused. */
CLOCHE_API uint64_t cloche_run_network_allowed(const cloche_run *run);
CLOCHE_API uint64_t cloche_run_network_blocked(const cloche_run *run);
/* Whether the sandbox, one of its own, has a full record: cloche_oplog_open(cloche_run_id()). */
CLOCHE_API bool cloche_run_is_recorded(const cloche_run *run);

#ifdef __cplusplus
}
#endif
#endif
