/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rules of .gitignore files (gitignore(5)), without git: a room may have written the
 * configuration that git would obey. What differs from git:
 *
 *   - What git tracks although a rule excludes it is excluded: the index is not read.
 *   - Nothing outside of the tree is read (core.excludesFile).
 *   - In [], names of classes ([:alpha:]) are not known.
 *   - Bytes are compared, whatever the locale and core.ignoreCase.
 *   - Of a file, the first IGNORE_MAX_TEXT bytes and IGNORE_MAX_RULES rules count. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>

enum { IGNORE_MAX_TEXT = 64 * 1024, IGNORE_MAX_RULES = 2000 };

struct ignore_rules;

enum ignore_verdict {
	IGNORE_UNSAID, /* no rule is about it */
	IGNORE_NOT,    /* a rule includes it again */
	IGNORE_IT,
};

/* Read the text of one file. NULL on lack of memory. */
struct ignore_rules *ignore_parse(struct str text);
/* r may be NULL. Return NULL. */
struct ignore_rules *ignore_free(struct ignore_rules *r);
DEFINE_CLEANUP(struct ignore_rules, ignore_free)

size_t ignore_count(const struct ignore_rules *r);

/* path: from the directory of the file, without a slash at either end. What is in an excluded
 * directory is excluded, too; the caller does not ask about that. */
enum ignore_verdict ignore_match(const struct ignore_rules *r, struct str path, bool is_directory);
