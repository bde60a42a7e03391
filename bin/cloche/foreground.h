/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs a command in a sandbox while the user or a script waits for it: it gets our streams and our
 * terminal, Ctrl-C reaches it, and its ending becomes our exit status. */

#include "cli.h"
#include <cloche/run.h>
#include <stdbool.h>

/* For variables, as instance_freep(). */
static inline void run_freep(cloche_run **run)
{
	cloche_run_free(*run);
}

struct foreground {
	bool tty;          /* the command has a terminal */
	bool interactive;  /* pass standard input even if it is a terminal */
	bool no_input;     /* pass no standard input */
	bool events;       /* print JSON Lines (events.h) */
	bool ask;          /* ask on our terminal about what would be refused (net_watch.h) */
	bool no_output;    /* the run keeps the output; do not print it */
	bool joined;       /* another run started it: Ctrl-C is only passed on */
	bool stays;        /* it is in a long-lived sandbox */
	bool no_timeout;   /* the caller reports a timeout */
	const char *again; /* the command to come back with, "cloche attach"; NULL: there is none,
			    * so the command ends with us */
};

/* Return whether the command gets our terminal: if that was requested, or if it was not refused,
 * all our streams are terminals and we are in the foreground. */
bool foreground_has_tty(bool asked, bool refused);

/* Execute the run and print on standard error what its exit status alone does not explain. Return
 * that status or EXIT_CLOCHE. *ret_ran (may be NULL) says whether there is a result to show. The
 * caller keeps the run. */
int foreground_run(cloche_run *run, const struct foreground *f, bool *ret_ran);

/* Set a variable of the command: NAME=VALUE. */
int foreground_set_env(cloche_run *run, const char *text, cloche_err *err);

/* Start the command without waiting for its end. Of f only tty and interactive count. Return 0, its
 * exit status if it could not be started (which is printed), or a negative code. */
int foreground_start(cloche_run *run, const struct foreground *f, cloche_err *err);

/* Do the same, and print its number, or, if it has a sandbox of its own, the id of that; with
 * no_output, both as JSON. interactive: its input stays open. Of f no_output and stays count, too.
 * Return the exit status, or a negative code. */
int foreground_detach(cloche_run *run, const struct foreground *f, cloche_err *err);

/* The keys that detach from a command with a terminal. */
#define DETACH_KEYS "\x10\x11"
#define DETACH_KEYS_HELP                                                                           \
	"two keys that leave the command running (default ctrl-p,ctrl-q; or \"none\")"
/* For option.set: "ctrl-p,ctrl-q", "a,b" or "none", into a char[3]. */
int set_detach_keys(const struct option *o, void *at, const char *text, cloche_err *err);
