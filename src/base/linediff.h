/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Differences between two texts, line by line (Myers, "An O(ND) Difference Algorithm and Its
 * Variations", 1986), and their unified form. Texts are borrowed and may be hostile: work and
 * memory are bounded. */

#include "base/str.h"
#include <stdint.h>

enum {
	LINEDIFF_MAX_LINES = 1 << 20, /* of one text */
	LINEDIFF_MAX_EDITS = 2000,    /* lines added or deleted; above that, all are */
};

/* The lines [old_at, old_at + old_n) of the old text became [new_at, new_at + new_n) of the new
 * one. */
struct linediff_edit {
	size_t old_at, old_n, new_at, new_n;
};

struct linediff {
	struct str *lines[2]; /* of the old and of the new text, with line ends */
	size_t n[2];
	struct linediff_edit *edits; /* in order, with equal lines between them */
	size_t edits_n;
	size_t deleted, added; /* lines */
};

/* Compare two texts. *work is how many lines may be compared; the used part is subtracted. If it is
 * used up, or the texts differ too much, everything between their common ends is one edit. Return
 * 0, -ENOMEM, or -E2BIG if a text has too many lines; ret is then empty. */
int linediff_init(struct linediff *ret, struct str before, struct str after, uint64_t *work);
void linediff_done(struct linediff *d);

enum linediff_mark { LINEDIFF_HUNK, LINEDIFF_SAME, LINEDIFF_DELETED, LINEDIFF_ADDED };

/* Called for each line of the unified form, without its line end and its mark; for a hunk the line
 * is "@@ -1,3 +1,4 @@". cut: the text ends here without a line end. Return 0, or another value to
 * stop. */
typedef int (*linediff_fn)(enum linediff_mark mark, struct str line, bool cut, void *user);

/* Return 0 or the value that fn returned. */
int linediff_unified(const struct linediff *d, size_t context, linediff_fn fn, void *user);

static inline void linediff_donep(struct linediff *d)
{
	linediff_done(d);
}
