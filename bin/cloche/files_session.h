/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What fs and cp share: a session that Ctrl-C cancels, and streams on descriptors. */

#include <cloche/files.h>

/* Opens the sandbox and a session in it; from then on an interrupt cancels what runs. 0 or a
 * negative code. */
int files_open(const char *id, uint32_t uid, uint32_t gid, cloche_files **ret, cloche_err *err);

/* Says what went wrong (not what the person did himself) and returns the exit status. */
int files_failed(const cloche_err *err);

/* A descriptor to read from or write to; the errno of what failed. */
struct stream {
	int fd;
	int error;
};
/* Both for the library: user is a struct stream. Reading ends early when a signal has come. */
long stream_source(void *user, void *data, size_t size);
int stream_sink(void *user, const void *data, size_t length);
/* The same to standard output, of which a terminal (and only that) sees text and colours alone. The
 * end puts it right. */
int stream_show(void *user, const void *data, size_t length);
void stream_show_end(void);
/* The better reason if it was ours. what: name of the stream for the message. */
int stream_error(const struct stream *s, int r, const char *what, cloche_err *err);
