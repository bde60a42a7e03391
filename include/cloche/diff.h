/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_DIFF_H
#define CLOCHE_DIFF_H
/* What was changed in a sandbox's root: of a long-lived one while it runs, and of one that keeps
 * its changes also afterwards. /tmp, /run, /dev and what is mounted do not belong to the root. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "instance.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_change_kind {
	CLOCHE_CHANGE_ADDED = 'A',
	CLOCHE_CHANGE_CHANGED = 'C', /* of a directory: itself, or what is in it */
	CLOCHE_CHANGE_DELETED = 'D', /* of a directory: all that was in it too */
};

enum cloche_file_type {
	CLOCHE_FILE_REGULAR = 'f',
	CLOCHE_FILE_DIRECTORY = 'd',
	CLOCHE_FILE_LINK = 'l',
	CLOCHE_FILE_OTHER = 'o', /* a fifo, a socket, a device */
};

typedef struct cloche_change {
	enum cloche_change_kind kind;
	enum cloche_file_type type; /* as it is; of what was deleted, as it was */
	const char *path;           /* inside, from '/' on, ended by a NUL. The sandbox chose it:
				     * any bytes but NUL, not always UTF-8 */
	size_t path_length;
	unsigned mode; /* permission bits */
	uint64_t size; /* of regular files and links */
} cloche_change;

/* Takes one change, valid for the call; false ends the listing. */
typedef bool (*cloche_change_fn)(const cloche_change *change, void *user);

/* Lists the changes, sorted by path, a directory before its entries. A file that was written again
 * as it was is no change. CLOCHE_E_UNSUPPORTED for a sandbox whose changes do not lie apart (a
 * one-shot run without cloche_sandbox_set_keep_changes()); CLOCHE_E_NOT_FOUND for one that has
 * ended and kept nothing; CLOCHE_E_LIMIT or CLOCHE_E_SYSTEM if something could not be looked
 * into: then all the rest was listed. */
CLOCHE_API int cloche_instance_diff(
	const cloche_instance *instance, cloche_change_fn fn, void *user, cloche_err *err);

/* The same for a directory of cloche_sandbox_set_keep_changes(), used or not. */
CLOCHE_API int cloche_diff_kept(const char *dir, cloche_change_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
