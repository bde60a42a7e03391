/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decides which escape sequences pass and how to undo their effects, for terminal_filter.c. */

#include "terminal_filter.h"

/* Return whether the complete sequence in f->held passes. Note in f which effects last. */
bool terminal_sequence_passes(struct terminal_filter *f);

/* Note that another character set was chosen. */
void terminal_note_charset(struct terminal_filter *f);

/* Write what undoes these effects, at most TERMINAL_FILTER_END bytes. Return the length. */
size_t terminal_reset(const struct terminal_filter *f, char *out);
