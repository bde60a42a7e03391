/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs a command in a sandbox while the user or a script waits for it: it gets our streams and our
 * terminal, Ctrl-C reaches it, and its ending becomes our exit status. */

#include <cloche/run.h>
#include <stdbool.h>

struct foreground {
	bool tty;          /* the command has a terminal */
	bool interactive;  /* pass standard input even if it is a terminal */
	bool no_input;     /* pass no standard input */
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

/* The keys that detach from a command with a terminal. */
#define DETACH_KEYS "\x10\x11"
#define DETACH_KEYS_HELP                                                                           \
	"two keys that leave the command running (default ctrl-p,ctrl-q; or \"none\")"
/* Parse "ctrl-p,ctrl-q", "a,b" or "none". */
int read_detach_keys(const char *text, char ret[3], cloche_err *err);
