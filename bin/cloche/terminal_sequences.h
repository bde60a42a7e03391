/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which escape sequences pass, and what puts right what they leave behind; for terminal_filter.c.
 */

#include "terminal_filter.h"

/* In terminal_filter.modes, beside the bits of the table of modes. */
#define TERMINAL_CHARSET (1ULL << 63)

/* Judges the whole sequence in f->held, and notes in f what stays switched on by it. */
bool terminal_sequence_passes(struct terminal_filter *f);

/* Writes what undoes it, at most TERMINAL_FILTER_END bytes; returns how much. */
size_t terminal_reset(const struct terminal_filter *f, char *out);
