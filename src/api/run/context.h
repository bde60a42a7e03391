/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The contexts of a sandbox, as stored in its directory. Each has a file in "contexts" with the
 * number of its interpreter process; locks on that file are the queue of its callers. */

#include "api/instance/instance.h"
#include <cloche/code.h>

enum { CONTEXT_NAME_MAX = 64, CONTEXT_RUNTIME_MAX = 13 };

struct context_file {
	int fd;                                /* -1: none */
	uint32_t number;                       /* of the interpreter process; 0: none */
	uint64_t tickets;                      /* given so far */
	uint64_t ticket;                       /* ours; 0: none */
	char runtime[CONTEXT_RUNTIME_MAX + 1]; /* "": it never had one */
	bool executes; /* code was sent to it and has not been seen to end */
};
#define CONTEXT_FILE_INIT ((struct context_file){.fd = -1})
void context_done(struct context_file *c);

_warn_unused_ int context_check_name(const char *name, struct cloche_err *err);
/* Open the file of a context and read it. If there is none: make creates it, else E_NOT_FOUND. */
_warn_unused_ int context_open(const cloche_instance *instance, const char *name, bool make,
	struct context_file *ret, struct cloche_err *err);

/* Take a place at the end of the queue. It is released when the file is closed. */
_warn_unused_ int context_queue(struct context_file *c, struct cloche_err *err);
/* Wait for our turn, or until also_fd is readable. Return 1 if it is our turn (then the file is
 * read again), 0 if not yet, or an error. */
_warn_unused_ int context_wait_first(struct context_file *c, int also_fd, struct cloche_err *err);
/* Return whether a caller uses the context or waits for it. */
bool context_is_busy(const struct context_file *c);

/* Set the number of the interpreter (0: none) and its runtime (NULL: it stays), if the number in
 * the file is only_from. */
_warn_unused_ int context_set(struct context_file *c, uint32_t only_from, uint32_t number,
	const char *runtime, struct cloche_err *err);
/* Note that code is executed from here on, or that it has ended. Only for the caller whose turn it
 * is. */
_warn_unused_ int context_set_executes(
	struct context_file *c, bool executes, struct cloche_err *err);
/* Find out whether the interpreter runs and, if not, how it ended, if that is known. */
_warn_unused_ int context_look(const cloche_instance *instance, const struct context_file *c,
	bool *ret_runs, struct cloche_context_use *use, struct cloche_err *err);
