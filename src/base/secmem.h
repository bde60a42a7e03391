/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Real secrets: a type of their own, in locked memory that no core dump, child or swap sees, and
 * that has no conversion to a string other than the one named call. */

#include "base/macro.h"
#include "base/str.h"

struct secret;

/* Copies n bytes. NULL on lack of memory. The caller wipes its own copy. */
struct secret *secret_new(const void *p, size_t n);
/* Wipes and frees; NULL is fine; returns NULL. */
struct secret *secret_free(struct secret *s);
/* The value, borrowed. Call it only where the value is put to its use; never log it. */
struct str secret_reveal(const struct secret *s);
DEFINE_CLEANUP(struct secret, secret_free)

/* Makes this process undumpable and without core files: for programs that hold secrets. */
void secret_harden_process(void);
