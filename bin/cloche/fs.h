/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of `cloche fs`. */

#include "cli.h"
#include <cloche/files.h>

struct fs_options {
	const char *data;
	bool recursive, force, append, in_place, is_new, json, long_form, null_ends, no_follow,
		no_replace;
	bool parents; /* ignored: missing parents are always made */
	bool has_mode;
	uint32_t mode;
	const char *user; /* NULL: who owns the sandbox's files */
	uint64_t offset, length, count;
};

struct fs_request {
	cloche_files *f;
	const struct fs_options *o;
	char **v; /* operands after the operation, ends with NULL */
	cloche_err *err;
};

/* fs_show.c. Each returns 0 or a negative code. */
int fs_show_list(const struct fs_request *q);
int fs_stat(const struct fs_request *q);
int fs_watch(const struct fs_request *q);
