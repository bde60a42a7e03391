/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The log of one process of a kept sandbox (RUNDIR_EXECS in ipc/rundir.h): written only by the
 * supervisor, read by any number of readers at the same time, without locks.
 *
 * The file `out` only grows at its end; byte N of the output is at offset N. The oldest output is
 * dropped by punching holes, so the kept part is the data in the sense of lseek(2). The file
 * `index` has an entry for each change of the stream; its oldest entries are dropped too. A reader
 * checks where the data begins after it has read, as the writer may have dropped that part
 * meanwhile. */

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
	uint64_t max;   /* limit of the bytes that are kept */
	uint64_t end;   /* bytes written so far */
	uint64_t first; /* everything below was dropped */
	uint64_t index_end, index_first;
	int stream;    /* stream of the last byte: 1 or 2; 0: none yet */
	int sys_errno; /* why logging has stopped, or 0 */
	uint64_t lost; /* bytes that were lost because of that */
};
#define EXECLOG_INIT ((struct execlog){.out = -1, .index = -1})

/* Make the files in dir (borrowed). Return 0 or -errno; after an error every later call only counts
 * the lost bytes. */
int execlog_make(struct execlog *l, int dir, uint64_t max);
void execlog_done(struct execlog *l);

/* Move exactly n bytes from a pipe (which has them, unless a process of the room took them back) to
 * the end. This never fails: bytes that cannot be written are dropped and counted. Return how many
 * bytes left the pipe. */
uint64_t execlog_splice(struct execlog *l, int stream, int pipe, uint64_t n);
void execlog_write(struct execlog *l, int stream, const void *p, uint64_t n);

/* --- reading --- */

struct execlog_reader {
	int out, index; /* owned */
};
#define EXECLOG_READER_INIT ((struct execlog_reader){.out = -1, .index = -1})

/* Open the log in dir (the process's; borrowed). E_NOT_FOUND if there is none. */
_warn_unused_ int execlog_reader_open(struct execlog_reader *r, int dir, struct cloche_err *err);
void execlog_reader_done(struct execlog_reader *r);

/* Store the range that is kept now, from *ret_start to *ret_end. Return 0 or -errno. */
_warn_unused_ int execlog_extent(
	const struct execlog_reader *r, uint64_t *ret_start, uint64_t *ret_end);

/* Read at most size bytes of one stream, beginning at *offset, or at the first kept byte if that is
 * later; *offset is set to where the data begins. Return the number of bytes (*ret_stream is their
 * stream, 1 or 2), 0 if there is no data (yet), or -errno. Does not wait. To wait for changes,
 * watch `out` with inotify, but also look ten times a second, as not every kernel reports spliced
 * data. */
_warn_unused_ int64_t execlog_read(
	const struct execlog_reader *r, uint64_t *offset, void *p, uint64_t size, int *ret_stream);
