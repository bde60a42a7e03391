/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Start cloche-unpack, which reads untrusted archives. It gets the archive and one directory, the
 * only place to which it can write, and answers in lines:
 *
 *   progress BYTES                              decompressed so far
 *   layer DIGEST ENTRIES BYTES OWNERS SKIPPED   the layer is unpacked (UNPACK_LAYER)
 *   file NUMBER BYTES PATH                      the file NUMBER is PATH (UNPACK_FILES)
 *   hard TARGET PATH, soft TARGET PATH          a link
 *
 * On failure it writes "CODE MESSAGE" and a line with the hint to standard error. The form of its
 * answers is checked as if the archive had written them. DIGEST is its word alone: whoever takes it
 * over can pass a tree off as another layer (docs/design/threat-model.md). */

#include "base/buf.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/program.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

enum { UNPACK_FD_IN = 3, UNPACK_FD_DIR = 4 };
enum { UNPACK_FILES_MAX = 16384 }; /* in an archive of an image, without links */
#define UNPACK_TREE "t"
#define UNPACK_OWNERS "owners"
#define UNPACK_BYTES_MAX (64ULL << 30)

/* Its first argument: what it does. */
#define UNPACK_LAYER "layer"
#define UNPACK_FILES "files"
#define UNPACK_PACK "pack"

/* Takes a line other than progress. A negative result ends the unpacking. */
typedef int (*unpack_line_fn)(void *user, struct str line, struct cloche_err *err);
/* Called with the number of bytes decompressed so far. Return false to cancel (E_CANCELLED). */
typedef bool (*unpack_progress_fn)(void *user, uint64_t bytes);

struct unpack_job {
	const char *what;
	int in, dir; /* borrowed */
	unpack_line_fn line;
	void *line_user;
	unpack_progress_fn progress; /* may be NULL */
	void *user;                  /* of progress */
};

/* Unpack. Blocks until it is done. */
_warn_unused_ int unpack_run(const struct unpack_job *job, struct cloche_err *err);

/* Write an archive of files in dir to out. list: a descriptor with lines "PATH NAME". */
_warn_unused_ int unpack_pack_to(int out, int dir, int list, struct cloche_err *err);

/* Read what such a pipe has to its end, as fd_read_to_end() does. Return 0 or -errno. */
_warn_unused_ int image_read_trouble(int fd, struct buf *b);

/* Wait until a program has ended. give_up: end it first. Return 0 with *ret_status as of waitpid(),
 * or -errno. The program is reaped even if the job was cancelled. */
_warn_unused_ int image_wait_program(pid_t pid, bool give_up, int *ret_status);

/* Start a program with one more end of a pipe: what it writes to standard error comes from
 * *ret_trouble. */
_warn_unused_ int image_start_program(
	struct program_spawn spawn, pid_t *ret_pid, int *ret_trouble, struct cloche_err *err);
