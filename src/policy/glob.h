/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shell patterns as allowlists have always written them (Python's fnmatch): `*` is any run of
 * bytes, also an empty one and also across '/' and '.', `?` is one byte, `[seq]` and `[!seq]` one
 * byte in or not in the set (ranges a-z; a ']' right after the opening is a member; an unclosed '['
 * is itself). There is no escape character. */

#include "base/str.h"

/* Whether s contains `*` or `?`. Only then is it a pattern; otherwise it is compared as it is, and
 * a '[' in it means itself. */
bool glob_is_pattern(struct str s);

/* Whether all of text matches. Needs no memory and never recurses; the time is bounded by
 * |pattern| * |text|, times the length of a set if there are sets. */
bool glob_match(struct str pattern, struct str text);

/* glob_match for patterns, equality for the rest. */
bool glob_match_or_equal(struct str pattern, struct str text);
