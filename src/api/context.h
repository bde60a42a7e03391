/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The contexts of a sandbox, as its directory knows them: one file each in "contexts", with the
 * number of the process that is its interpreter, and whose locks are the queue of its callers. */

#include "api/instance.h"
#include <cloche/code.h>

enum { CONTEXT_NAME_MAX = 64, CONTEXT_RUNTIME_MAX = 13 };

struct context_file {
	int fd;                                /* -1: none */
	uint32_t number;                       /* of the process; 0: none */
	uint64_t tickets;                      /* given so far */
	uint64_t ticket;                       /* ours; 0: none */
	char runtime[CONTEXT_RUNTIME_MAX + 1]; /* "": it never had one */
	bool executes;                         /* code was given to it, whose end nobody has seen */
};
#define CONTEXT_FILE_INIT ((struct context_file){.fd = -1})
void context_done(struct context_file *c);

_warn_unused_ int context_check_name(const char *name, struct cloche_err *err);
/* make: with the first call of that name; else E_NOT_FOUND. Reads it. */
_warn_unused_ int context_open(const cloche_instance *instance, const char *name, bool make,
	struct context_file *ret, struct cloche_err *err);

/* Takes a place behind all others that wait; it is given up with the file. */
_warn_unused_ int context_queue(struct context_file *c, struct cloche_err *err);
/* 1: all that came before have gone; 0: not yet. Reads the file if it is our turn. */
_warn_unused_ int context_is_first(struct context_file *c, struct cloche_err *err);
/* Somebody calls it, or waits to. */
bool context_is_busy(const struct context_file *c);

/* Its interpreter is another; 0: none. only_from: if that is still the one. */
_warn_unused_ int context_set(struct context_file *c, uint32_t only_from, uint32_t number,
	const char *runtime, struct cloche_err *err);
/* Called by the caller whose turn it is: from here on code is executed, or that has ended. */
_warn_unused_ int context_set_executes(
	struct context_file *c, bool executes, struct cloche_err *err);
/* Whether the interpreter runs; else how it ended, if that is known. */
_warn_unused_ int context_look(const cloche_instance *instance, const struct context_file *c,
	bool *ret_runs, struct cloche_context_use *use, struct cloche_err *err);
