/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For programs of which many run on a machine, idle most of the time. */

/* Call this at the start. Keep freed memory at the end of the heap for later use: otherwise a
 * buffer that grows and is freed for each portion of a large body would fault in all its pages
 * again each time. */
void rest_set_up(void);

/* Give memory back that an idle program does not need: free memory that malloc keeps, and mappings
 * of code and tables that only the start or earlier work used. Those come back from the page cache
 * when they are used again. This takes tens of microseconds and makes only brk(), madvise() and
 * munmap() calls. */
void rest_memory(void);
