/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_ASSETS_H
#define CLOCHE_ASSETS_H
/* Files of a recorded sandbox whose contents are kept by reference: "sha256-" and the digest of the
 * contents in hexadecimal, so the same contents have the same reference. The contents lie beside
 * the operation log (cloche-state(5)), which has an entry "assets.upload" for each, of any size; a
 * replay puts them there again. They are kept as long as a log names them.
 *
 * Errors are those of cloche/files.h, and CLOCHE_E_UNSUPPORTED if the sandbox is not recorded.
 * Threads: as for the session or the log that is given. */

#include "files.h"
#include "state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Characters of a reference, with the NUL at its end. */
#define CLOCHE_ASSET_REF_SIZE 72

/* Writes a file of the sandbox whole, as cloche_files_write() with CLOCHE_FILES_PARENTS; ret has
 * CLOCHE_ASSET_REF_SIZE characters, and is untouched on failure. */
CLOCHE_API int cloche_assets_upload(cloche_files *f, const char *path, cloche_files_source source,
	void *user, char *ret, cloche_err *err);
CLOCHE_API int cloche_assets_upload_data(cloche_files *f, const char *path, const void *data,
	size_t length, char *ret, cloche_err *err);

/* Puts a file that is in the sandbox on record, with its permissions, whoever wrote it. Above max
 * bytes CLOCHE_E_LIMIT; CLOCHE_E_BUSY: it changed while it was read. ret as above. The bytes
 * themselves: cloche_files_read_data(). */
CLOCHE_API int cloche_assets_keep(
	cloche_files *f, const char *path, uint64_t max, char *ret, cloche_err *err);

/* Calls fn with each path that a log has as an asset, once, in the order in which they came first,
 * and with the reference that came last; also if the file was changed or deleted since. Both are
 * borrowed for the call; fn returns false to end. */
typedef bool (*cloche_assets_fn)(const char *path, const char *ref, void *user);
CLOCHE_API int cloche_assets_list(
	cloche_oplog *log, cloche_assets_fn fn, void *user, cloche_err *err);

/* A descriptor, to be closed, from which the contents that ref names can be read. They are checked
 * first: CLOCHE_E_CORRUPT. CLOCHE_E_NOT_FOUND: they are not beside the log. */
CLOCHE_API int cloche_assets_open(cloche_oplog *log, const char *ref, int *ret_fd, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
