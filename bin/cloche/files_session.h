/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by fs and cp: a session that Ctrl-C cancels, and streams on descriptors. */

#include <cloche/files.h>

/* Open the sandbox and a session in it. From then on an interrupt cancels the current operation.
 * Return 0 or a negative code. */
int files_open(const char *id, const char *user, cloche_files **ret, cloche_err *err);

/* Print the error, unless the user interrupted, and return the exit status. */
int files_failed(const cloche_err *err);

/* A descriptor to read from or write to, and the errno of a failure. */
struct stream {
	int fd;
	int error;
};
/* Callbacks for the library; user is a struct stream. They stop early when a signal has arrived. */
long stream_source(void *user, void *data, size_t size);
int stream_sink(void *user, const void *data, size_t length);
/* Write to standard output. If that is a terminal, only text, colours and cursor movement pass.
 * stream_show_end() resets the terminal. */
int stream_show(void *user, const void *data, size_t length);
void stream_show_end(void);
/* If our own stream failed, replace the error with that reason. what names the stream in the
 * message. */
int stream_error(const struct stream *s, int r, const char *what, cloche_err *err);
