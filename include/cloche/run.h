/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_RUN_H
#define CLOCHE_RUN_H
/* Runs: a run is one command, either in a sandbox of its own that is made and torn down with it, or
 * in a long-lived sandbox (cloche/instance.h). Every way in which the command can end, including a
 * timeout, is a result. An error means that the sandbox itself failed.
 *
 * cloche_run_execute() blocks; cloche_run_start() does the same as a job (cloche/job.h), of which
 * one thread can drive many. Meanwhile cloche_run_stop(), cloche_run_signal() and
 * cloche_run_leave() may be called from any thread and from signal handlers. Everything else
 * belongs to one thread; different runs may be used by different threads at a time. A thread must
 * not be cancelled (pthread_cancel()) while it is in a function of this library: what that function
 * holds, locks too, would stay as it is, and later calls would wait for ever. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "job.h"
#include "network_log.h"
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
 * cloche_run_options.keep_input), until it ends. If it has ended already, the run gives its output
 * and result. number 0: the latest running command, or else the latest. */
CLOCHE_API int cloche_run_new_joining(
	const cloche_instance *instance, uint32_t number, cloche_run **ret, cloche_err *err);
/* Free the run. A command in a long-lived sandbox keeps running; a sandbox of the run's own
 * ends. */
CLOCHE_API void cloche_run_free(cloche_run *run);

/* Set a variable for this command only. HOME, USER and LOGNAME are the user's unless they are
 * set. */
CLOCHE_API int cloche_run_set_env(
	cloche_run *run, const char *name, const char *value, cloche_err *err);

/* What else can be set for this command only. CLOCHE_RUN_OPTIONS_INIT leaves everything as it is:
 * as in the sandbox, or as said here. */
typedef struct cloche_run_options {
	size_t size;         /* of this struct; error.h */
	const char *workdir; /* NULL: unchanged */
	/* Numbers of the room, both or none. Default: the sandbox's own user, or its image's. */
	uint32_t uid, gid;
	/* The command is ended so long after its start. 0: never. */
	uint64_t timeout_ms;
	/* Two keys that, typed one after the other on the terminal, leave the command running:
	 * cloche_run_execute() returns 0, and the result has left. "": none (the default). */
	const char *detach_keys;
	/* true: cloche_run_execute() returns as soon as the command has started, and its output
	 * goes to its log only. A sandbox of its own then ends with the command, but its record and
	 * log stay (cloche_instance_open()). */
	bool detached;
	/* true: the input of a detached command without a terminal stays open for runs that join
	 * it, instead of being empty. */
	bool keep_input;
	/* For a joined command: how many bytes at the end of its log are shown first. Default: all
	 * that is kept. */
	uint64_t log_tail;
	/* The command's standard input: a descriptor (borrowed until execute returns, and read as
	 * the command asks for more), or bytes (copied). Default: empty. Not for code. */
	int stdin_fd;
	const void *stdin_data; /* NULL: unchanged */
	size_t stdin_length;
	/* Give the command a terminal. The caller's terminal on this descriptor (borrowed) is in
	 * raw mode while the command runs. If the command is stopped there (Ctrl-Z), the terminal
	 * is restored, the caller's process group is stopped by SIGTSTP, and the command goes on
	 * when the caller does. Not for code. */
	int tty_fd;
} cloche_run_options;

#define CLOCHE_RUN_UNCHANGED UINT64_MAX
#define CLOCHE_RUN_OPTIONS_INIT                                                                    \
	{                                                                                          \
		sizeof(cloche_run_options), NULL, UINT32_MAX, UINT32_MAX, CLOCHE_RUN_UNCHANGED,    \
			NULL, false, false, CLOCHE_RUN_UNCHANGED, -1, NULL, 0, -1                  \
	}

/* Set options (borrowed for the call). CLOCHE_E_USAGE: one of them is wrong; then none is set. */
CLOCHE_API int cloche_run_set_options(
	cloche_run *run, const cloche_run_options *options, cloche_err *err);

/* Call fn on the executing thread for each piece of output as it arrives; is_stderr tells the
 * stream. Without fn the output is kept for the result: the first 16 MiB of each
 * stream, or as much as cloche_sandbox_set("output-limit") says, at most 256 MiB. */
typedef void (*cloche_output_fn)(bool is_stderr, const void *data, size_t length, void *user);
CLOCHE_API void cloche_run_on_output(cloche_run *run, cloche_output_fn fn, void *user);

CLOCHE_API void cloche_run_on_warning(cloche_run *run, cloche_warning_fn fn, void *user);

/* Call fn on the executing thread when the run's own sandbox has started, before its command
 * begins. id is borrowed during the call. */
typedef void (*cloche_start_fn)(const char *id, void *user);
CLOCHE_API void cloche_run_on_start(cloche_run *run, cloche_start_fn fn, void *user);

/* Call fn on the executing thread for each entry of the network log of the run's own sandbox, as it
 * is written: what was asked for and refused, names that were looked up, warnings. The entry is
 * borrowed during the call. Nothing is called for a sandbox without a network, in an existing
 * sandbox, and for a detached run. */
typedef void (*cloche_network_fn)(const cloche_network_entry *entry, void *user);
CLOCHE_API void cloche_run_on_network(cloche_run *run, cloche_network_fn fn, void *user);

/* Run the command to its end. Return 0 if it ran (cloche_run_result() says how it ended).
 * Call this once. */
CLOCHE_API int cloche_run_execute(cloche_run *run, cloche_err *err);

/* Start a job that does what cloche_run_execute() does. The run has to live until the job has
 * ended. If the job is cancelled, the run's own sandbox is ended at once; in a long-lived sandbox,
 * the command that the run has started is killed, code in a context is interrupted, and a command
 * that the run has joined goes on. */
CLOCHE_API int cloche_run_start(cloche_run *run, cloche_job **ret, cloche_err *err);

/* Write to the command's standard input while it runs. A first call before the run starts, with as
 * little as no bytes, says that the input is written like this. *ret_taken is how many of the bytes
 * were taken: fewer than length if the command has not read what was written before, and then
 * cloche_job_dispatch() returns as soon as more can be taken. A command that has closed its input,
 * or has ended, takes everything: it is thrown away. Call these two in the thread of the run's job,
 * callbacks included. Not for code, and not for detached commands. */
CLOCHE_API int cloche_run_write_input(
	cloche_run *run, const void *data, size_t length, size_t *ret_taken, cloche_err *err);
/* Close the input: the command reads an end-of-file after what was written. */
CLOCHE_API void cloche_run_close_input(cloche_run *run);

/* End a running command: send TERM to everything in the sandbox (in a long-lived sandbox: to the
 * command's process group), and KILL after five seconds. A second call kills at once. Return true
 * if something was running. */
CLOCHE_API bool cloche_run_stop(cloche_run *run);

/* Make execute return soon, and leave a command in a long-lived sandbox running (the result has
 * left). Return true if something was running. */
CLOCHE_API bool cloche_run_leave(cloche_run *run);

/* Send a signal to the command's process group. May be called from a signal handler. Return true if
 * something was running. */
CLOCHE_API bool cloche_run_signal(cloche_run *run, int signal_number);

/* How a command ended. Strings and bytes are borrowed until the run is freed. */
typedef struct cloche_result {
	size_t size;          /* of this struct in the library: later versions append members */
	const char *id;       /* of the sandbox; "" until it is known */
	const char *provider; /* "" until there is one */
	/* "sandbox", "landlock" with that provider, or "none" with the provider "subprocess" or
	 * before there is a provider. */
	const char *isolation;
	uint32_t number; /* of the command in its sandbox; 0: it has not started */
	/* The command was left running (cloche_run_leave(), detach_keys): nothing
	 * below is known. */
	bool left;
	bool is_recorded; /* the run's own sandbox has a full record: cloche_oplog_open(id) */
	/* The command's exit code; 128+n if signal n ended it; 124 after a timeout; 126 or 127 if
	 * it could not be started. */
	int exit_code;
	int signal; /* that ended it; 0: none */
	bool timed_out;
	bool oom_killed;           /* the memory limit killed a process of the sandbox */
	bool pids_refused;         /* the process limit refused a process at least once */
	bool stopped;              /* by cloche_run_stop() */
	const char *start_failure; /* why the command could not be started, or "" */
	uint64_t duration_ms;
	/* What was kept of the output: see cloche_run_on_output(). */
	const void *stdout_data, *stderr_data;
	size_t stdout_length, stderr_length; /* bytes */
	bool stdout_truncated, stderr_truncated;
	/* For a command in a sandbox of its own; otherwise all 0 (see cloche_instance_stats()). */
	uint64_t cpu_ms;
	uint64_t memory_peak_bytes, pids_peak;     /* 0 if not measured */
	uint64_t network_allowed, network_blocked; /* requests, by the policy */
	int input_errno; /* why the input could not be read to its end; 0: it could */
} cloche_result;

/* Return the result, which is complete when cloche_run_execute() has returned; before that, only
 * the id of an existing sandbox is known. Never NULL; borrowed until the run is freed. */
CLOCHE_API const cloche_result *cloche_run_result(const cloche_run *run);

#ifdef __cplusplus
}
#endif
#endif
