/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A command in a sandbox while a person or a script waits for it: its streams are ours, its
 * terminal is ours, Ctrl-C reaches it, and its ending becomes our exit status. */

#include <cloche/run.h>
#include <stdbool.h>

struct foreground {
	bool tty;          /* the command has a terminal */
	bool interactive;  /* pass standard input also if it is a terminal */
	bool no_input;     /* pass none at all */
	bool no_output;    /* it is kept by the run, not printed */
	bool joined;       /* somebody else's command: Ctrl-C goes to it each time and never more */
	bool stays;        /* in a sandbox that lives on */
	bool no_timeout;   /* of one the caller says more */
	const char *again; /* how to come back, "cloche attach", should we go away; NULL: that is
			    * not possible, so the command ends with us */
};

/* Whether the command gets our terminal: it was asked for, or, unless it was refused, we have one
 * and it is ours to give. */
bool foreground_has_tty(bool asked, bool refused);

/* Executes the run and says on standard error what its exit status alone does not. Returns that,
 * or EXIT_CLOCHE. *ret_ran (may be NULL): there is a result to show. The run stays the caller's. */
int foreground_run(cloche_run *run, const struct foreground *f, bool *ret_ran);

/* The keys that leave a command with a terminal running. */
#define DETACH_KEYS "\x10\x11"
#define DETACH_KEYS_HELP "two keys that leave it running (default ctrl-p,ctrl-q; \"none\")"
/* Reads such a text: "ctrl-p,ctrl-q", "a,b", "none". */
int read_detach_keys(const char *text, char ret[3], cloche_err *err);
