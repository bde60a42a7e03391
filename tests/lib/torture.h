/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes each allocation fail once. `torture(fn)` calls fn again and again: in its n-th call the
 * n-th allocation fails (and only that one), until a call made fewer than n. fn must then end in
 * good order: no crash, no leak (LeakSanitizer looks), its documented error. torture_failed tells
 * fn whether this call has had its failure.
 *
 * A test that uses it is registered with 'link_args': torture_link_args. What libc allocates inside
 * itself (opendir, for one) does not fail; asprintf and strdup do. */

#include <stdbool.h>
#include <stddef.h>

extern bool torture_failed;
extern unsigned long torture_countdown; /* allocations to the failure; 0: none fails */

void torture(void (*fn)(void));

/* Never fails. */
void *__real_malloc(size_t n);
