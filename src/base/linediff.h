/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What differs between two texts, line by line (Myers, "An O(ND) Difference Algorithm and Its
 * Variations", 1986), and the unified form of it. Texts are borrowed and may be hostile: work and
 * memory are bounded. */

#include "base/str.h"
#include <stdint.h>

enum {
	LINEDIFF_MAX_LINES = 1 << 20, /* of one text */
	LINEDIFF_MAX_EDITS = 2000,    /* lines that were added or deleted; above that all are */
};

/* The lines [at, at + n) of the old text became those of the new one. */
struct linediff_edit {
	size_t old_at, old_n, new_at, new_n;
};

struct linediff {
	struct str *lines[2]; /* with their ends; of the old text and of the new one */
	size_t n[2];
	struct linediff_edit *edits; /* in order, with equal lines between them */
	size_t edits_n;
	size_t deleted, added; /* lines */
};

/* *work: how many lines may be compared; what was used is taken off. If it is used up, or the
 * texts differ too much, what lies between their common ends is one edit. Returns 0, -ENOMEM, or
 * -E2BIG if a text has too many lines; ret is then empty. */
int linediff_init(struct linediff *ret, struct str before, struct str after, uint64_t *work);
void linediff_done(struct linediff *d);

enum linediff_mark { LINEDIFF_HUNK, LINEDIFF_SAME, LINEDIFF_DELETED, LINEDIFF_ADDED };

/* Told of each line of the unified form, without its end and its mark; of a hunk "@@ -1,3 +1,4 @@".
 * cut: the text ends there without a line's end. Returns 0; anything else ends it. */
typedef int (*linediff_fn)(enum linediff_mark mark, struct str line, bool cut, void *user);

/* Returns 0 or what fn returned. */
int linediff_unified(const struct linediff *d, size_t context, linediff_fn fn, void *user);

static inline void linediff_donep(struct linediff *d)
{
	linediff_done(d);
}
