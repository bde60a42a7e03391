/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The log of one process of a kept sandbox (RUNDIR_EXECS in ipc/rundir.h): written by the
 * supervisor alone, read by anybody at the same time, without locks.
 *
 * The file `out` only grows at its end; byte N of the output is at offset N. The oldest is given up
 * by punching holes, so what is kept is what the file system calls data. The file `index` has an
 * entry wherever the stream changes; it too loses its oldest. A reader looks where the data begins
 * after it has read, as the writer may have given up what it was reading. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

enum {
	EXECLOG_ENTRY = 8, /* bytes of one entry of the index */
	EXECLOG_DEFAULT_BYTES = 16 * 1024 * 1024,
	EXECLOG_MIN_BYTES = 512 * 1024,
};

/* --- writing --- */

struct execlog {
	int out, index; /* owned; -1: not logged */
	uint64_t max;   /* bytes that are kept */
	uint64_t end;   /* bytes written so far */
	uint64_t first; /* everything below was given up */
	uint64_t index_end, index_first;
	int stream;    /* 1 or 2: of the last byte; 0: none yet */
	int sys_errno; /* why nothing is logged any more; 0 */
	uint64_t lost; /* bytes that were not logged for that reason */
};
#define EXECLOG_INIT ((struct execlog){.out = -1, .index = -1})

/* Makes the files in dir (borrowed). 0 or -errno; then every later call counts what is lost. */
int execlog_make(struct execlog *l, int dir, uint64_t max);
void execlog_done(struct execlog *l);

/* Moves exactly n bytes from a pipe (which has them, unless a process inside took them back) to the
 * end. Never fails: what cannot be written is dropped and counted. Returns how many bytes left the
 * pipe. */
uint64_t execlog_splice(struct execlog *l, int stream, int pipe, uint64_t n);
void execlog_write(struct execlog *l, int stream, const void *p, uint64_t n);

/* --- reading --- */

struct execlog_reader {
	int out, index; /* owned */
};
#define EXECLOG_READER_INIT ((struct execlog_reader){.out = -1, .index = -1})

/* Opens the log in dir (the process's; borrowed). E_NOT_FOUND if there is none. */
_warn_unused_ int execlog_reader_open(struct execlog_reader *r, int dir, struct cloche_err *err);
void execlog_reader_done(struct execlog_reader *r);

/* What is kept now: from *ret_start to *ret_end. 0 or -errno. */
_warn_unused_ int execlog_extent(
	const struct execlog_reader *r, uint64_t *ret_start, uint64_t *ret_end);

/* Reads at most size bytes of one stream from *offset on, which is moved to where it begins to be
 * kept. Returns how many (*ret_stream says of which: 1 or 2), 0 if nothing is there (yet), or
 * -errno. Does not wait. To be told of changes watch `out` with inotify, but do not count on it:
 * not every kernel tells of what was spliced; look again ten times a second as well. */
_warn_unused_ int64_t execlog_read(
	const struct execlog_reader *r, uint64_t *offset, void *p, uint64_t size, int *ret_stream);
