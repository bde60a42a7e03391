/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `cloche image`: the options of its subcommands. Each subcommand gets its operands, which end with
 * NULL, and returns the exit status, or a negative code with err. */

#include "cli.h"
#include <cloche/image.h>

struct image_options {
	const char *name, *output;
	const char *file, *engine, *sync; /* build, hash */
	uint64_t age_ms;
	bool has_age;
	bool all, quiet, json;
};

/* Progress on a terminal. */
struct image_progress {
	bool on_terminal, shown; /* a line of progress is on the screen */
	uint64_t began, last;    /* now_usec() */
};
/* Show a step after one second, at most ten times a second. Return false if the user has
 * interrupted us. */
bool image_progress_step(struct image_progress *p, const char *step, uint64_t bytes);
void image_progress_clear(struct image_progress *p);
/* Let a first signal interrupt us in this way, and a second one end the program. */
void image_progress_catch(void);
/* That is over: let signals end the program, also one that came. */
void image_progress_forget(void);

/* image_build.c */
int image_build(const struct image_options *o, char **operands, cloche_err *err);
int image_hash(const struct image_options *o, char **operands, cloche_err *err);

/* image_load.c */
int image_load_archive(const struct image_options *o, char **operands, cloche_err *err);
int image_pull_name(const struct image_options *o, char **operands, cloche_err *err);
