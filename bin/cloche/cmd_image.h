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

/* image_build.c */
int image_build(const struct image_options *o, char **operands, cloche_err *err);
int image_hash(const struct image_options *o, char **operands, cloche_err *err);

/* image_load.c */
int image_load_archive(const struct image_options *o, char **operands, cloche_err *err);
int image_pull_name(const struct image_options *o, char **operands, cloche_err *err);
