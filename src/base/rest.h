/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For programs that are many on a machine and idle most of the time. */

/* Gives memory back that is not needed while nothing happens: what malloc keeps for later, and the
 * mappings of code and tables that only the start, or what happened before, has touched. They come
 * back from the page cache when they are touched again. Takes tens of microseconds; makes only
 * brk(), madvise() and munmap() calls. */
void rest_memory(void);
