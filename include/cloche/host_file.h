/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_HOST_FILE_H
#define CLOCHE_HOST_FILE_H
/* Files of the host that a user names, in places where a room may have written: a symbolic link on
 * the way is followed only by the rules of cloche_files_upload(), and one in the file's place never
 * is. A file directly in /dev (or /dev/fd, /dev/pts) belongs to the machine and is opened as it is.
 * Any thread; a cloche_host_file belongs to one thread at a time. */

#include <stdbool.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Open a regular file for reading. The caller closes *ret_fd. */
CLOCHE_API int cloche_host_open(const char *path, int *ret_fd, cloche_err *err);

typedef struct cloche_host_file cloche_host_file;

/* Begin a file; mode as for open(2), with the umask applied. *ret_fd is for writing and belongs to
 * the file. */
CLOCHE_API int cloche_host_file_begin(
	const char *path, unsigned mode, cloche_host_file **ret, int *ret_fd, cloche_err *err);
/* Give the complete file its name, and free it, also after an error. over: replace a file or link
 * of that name, else CLOCHE_E_EXISTS. */
CLOCHE_API int cloche_host_file_commit(cloche_host_file *f, bool over, cloche_err *err);
/* Discard the file and free it. NULL is allowed. */
CLOCHE_API void cloche_host_file_abort(cloche_host_file *f);

#ifdef __cplusplus
}
#endif
#endif
