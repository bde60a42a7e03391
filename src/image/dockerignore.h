/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A .dockerignore: which files are no part of an image's context. */

#include "base/err.h"
#include "base/str.h"
#include <stdbool.h>

struct dockerignore_part;
struct dockerignore_rule {
	struct dockerignore_part *parts; /* heap */
	size_t n;
	bool keep; /* a line with "!" */
};

struct dockerignore {
	struct dockerignore_rule *rules; /* heap */
	size_t n, room;
	bool keeps; /* a rule has keep */
};
void dockerignore_done(struct dockerignore *g);

/* Read the lines into g, which is empty. E_CONFIG names a line that is no pattern. */
_warn_unused_ int dockerignore_read(
	struct dockerignore *g, struct str text, struct cloche_err *err);
/* Return whether a file or directory is left out. path is relative, without "." and "..". */
bool dockerignore_matches(const struct dockerignore *g, const char *path);
