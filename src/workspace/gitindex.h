/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the index of a git repository (gitformat-index(5)), versions 2 and 3 with SHA-1. A room may
 * have written it. */

#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

struct gitindex {
	struct str rest; /* after the entries: the extensions */
	uint32_t version, entries;
};

/* What counts of an entry: git may write the rest, times and inodes, anew at each look. */
struct gitindex_entry {
	struct str mode, id, flags, name; /* id: SHA-1, 20 bytes */
};

/* Begin to read. Return false if it is no such index. */
bool gitindex_begin(struct gitindex *x, struct str text);
/* Read the next of x->entries. Return false if it is malformed. */
bool gitindex_next(struct gitindex *x, struct gitindex_entry *ret);

/* Return a number of four bytes; there are as many after `at`. */
uint32_t gitindex_number(struct str text, size_t at);
