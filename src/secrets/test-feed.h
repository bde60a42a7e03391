/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: a scrubber, and texts that are fed to it. */

#include "base/buf.h"
#include "secrets/scrub.h"

extern struct secret_set *set;
extern struct scrubber *scrubber;

void use(const char *const *values, size_t n);
void drop(void);
struct str fake(size_t i);

/* Feed text in pieces of `step` bytes (0: random ones) and collect what comes out. */
void feed(struct str text, size_t step, struct buf *out, uint64_t *ret_hits);
