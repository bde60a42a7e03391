/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_DIFF_H
#define CLOCHE_DIFF_H
/* What changed in the root of a sandbox: for a long-lived sandbox while it runs, and for one that
 * keeps its changes also after it has ended. /tmp, /run, /dev and mounts are not part of the
 * root. */

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
	CLOCHE_CHANGE_CHANGED = 'C', /* directory: the directory itself or something in it */
	CLOCHE_CHANGE_DELETED = 'D', /* directory: with everything that was in it */
};

enum cloche_file_type {
	CLOCHE_FILE_REGULAR = 'f',
	CLOCHE_FILE_DIRECTORY = 'd',
	CLOCHE_FILE_LINK = 'l',
	CLOCHE_FILE_OTHER = 'o', /* a fifo, a socket, a device */
};

typedef struct cloche_change {
	enum cloche_change_kind kind;
	enum cloche_file_type type; /* now, or before the deletion */
	/* Absolute path inside the sandbox, NUL-terminated. The sandbox chose it: it can have any
	 * byte but NUL and need not be UTF-8. */
	const char *path;
	size_t path_length;
	unsigned mode; /* permission bits */
	uint64_t size; /* of regular files and links */
} cloche_change;

/* Receives one change, which is valid during the call. Returns false to stop. */
typedef bool (*cloche_change_fn)(const cloche_change *change, void *user);

/* List the changes, sorted by path, with a directory before its entries. A file that was rewritten
 * with the same contents is not a change. CLOCHE_E_UNSUPPORTED if the changes of the sandbox are
 * not stored separately (a one-shot run without cloche_sandbox_set("keep-changes")).
 * CLOCHE_E_NOT_FOUND if it has ended and kept nothing. CLOCHE_E_LIMIT or CLOCHE_E_SYSTEM if a part
 * could not be read; everything else was listed then. */
CLOCHE_API int cloche_instance_diff(
	const cloche_instance *instance, cloche_change_fn fn, void *user, cloche_err *err);

/* Do the same for a directory of cloche_sandbox_set("keep-changes"), whether it is in use or not.
 */
CLOCHE_API int cloche_diff_kept(const char *dir, cloche_change_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
