/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For programs that are many on a machine and idle most of the time. */

/* At the start. What is freed at the end of the heap then stays for what comes next: a buffer that
 * grows and is freed again for each portion of a large body would else have every page of it
 * faulted in again, portion by portion. */
void rest_set_up(void);

/* Gives memory back that is not needed while nothing happens: what malloc keeps for later, and the
 * mappings of code and tables that only the start, or what happened before, has touched. They come
 * back from the page cache when they are touched again. Takes tens of microseconds; makes only
 * brk(), madvise() and munmap() calls. */
void rest_memory(void);
