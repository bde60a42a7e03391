/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_ASSETS_H
#define CLOCHE_ASSETS_H
/* Files of a recorded sandbox whose contents are stored by reference. A reference is "sha256-" and
 * the digest of the contents in hexadecimal, so equal contents have equal references. The contents
 * are stored next to the operation log (cloche-state(5)), which has an "assets.upload" entry for
 * each file, whatever its size. A replay restores the files. Contents are kept as long as a log
 * names them.
 *
 * Errors are those of cloche/files.h, and CLOCHE_E_UNSUPPORTED if the sandbox is not recorded. The
 * thread rules are those of the session or log that is passed. */

#include "files.h"
#include "state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Size of a reference, including the terminating NUL. */
#define CLOCHE_ASSET_REF_SIZE 72

/* Write a whole file in the sandbox, like cloche_files_write() with CLOCHE_FILES_PARENTS. ret has
 * room for CLOCHE_ASSET_REF_SIZE characters, and is untouched on failure. */
CLOCHE_API int cloche_assets_upload(
	cloche_files *f, const char *path, cloche_source from, char *ret, cloche_err *err);

/* Record a file that is already in the sandbox, with its permissions, no matter which program wrote
 * it. Return CLOCHE_E_LIMIT if it is larger than max bytes, CLOCHE_E_BUSY if it changed while it
 * was read. ret is as above. To get the bytes themselves use cloche_files_read_data(). */
CLOCHE_API int cloche_assets_keep(
	cloche_files *f, const char *path, uint64_t max, char *ret, cloche_err *err);

/* Call fn once for each path that the log has as an asset, in the order in which the paths first
 * appeared, with the latest reference of each. (A full record has all paths as absolute ones.)
 * Files that were changed or deleted since are included. Both strings are borrowed for the call. fn
 * returns false to stop. */
typedef bool (*cloche_assets_fn)(const char *path, const char *ref, void *user);
CLOCHE_API int cloche_assets_list(
	cloche_oplog *log, cloche_assets_fn fn, void *user, cloche_err *err);

/* Return in *ret_fd a descriptor from which the contents of ref can be read. The caller closes it.
 * The contents are verified first: CLOCHE_E_CORRUPT if they do not match. CLOCHE_E_NOT_FOUND if
 * they are not stored with the log. */
CLOCHE_API int cloche_assets_open(cloche_oplog *log, const char *ref, int *ret_fd, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
