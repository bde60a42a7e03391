/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Real secrets: a type of their own, in locked memory that never appears in a core dump, a child or
 * swap, and that only secret_reveal() converts to a string. */

#include "base/macro.h"
#include "base/str.h"

struct secret;

/* Copy n bytes. NULL on lack of memory. The caller wipes its own copy. */
struct secret *secret_new(const void *p, size_t n);
/* Wipe and free; NULL is fine. Return NULL. */
struct secret *secret_free(struct secret *s);
/* Return the value, borrowed. Call this only where the value is used; never log it. */
struct str secret_reveal(const struct secret *s);
DEFINE_CLEANUP(struct secret, secret_free)

/* Make this process undumpable and disable core files, for programs that hold secrets. */
void secret_harden_process(void);
