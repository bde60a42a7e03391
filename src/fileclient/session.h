/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The client's side of files/protocol.h. The other side is inside a room: everything that it sends
 * is checked before it is used, and everything that is kept has a limit. */

#include "base/err.h"
#include "files/protocol.h"
#include "fs/hostpath.h"
#include <cloche/files.h>

/* Receives every operation that changes files, to record it (api/record/session_record.c). */
struct files_observer {
	/* A request, before it is sent. Negative: do not send it. */
	int (*begin)(
		struct files_observer *r, const struct files_request *q, struct cloche_err *err);
	/* A piece of its data. Negative: give the operation up. */
	int (*data)(struct files_observer *r, struct str data, struct cloche_err *err);
	/* Everything was sent except what makes the worker act. Negative: give it up. */
	int (*ready)(struct files_observer *r, struct cloche_err *err);
	/* The first n files of a batch were written. Followed by end(). Negative: not recorded. */
	int (*wrote)(struct files_observer *r, const struct files_small *files, size_t n,
		struct cloche_err *err);
	/* The operation was done, or not; also called if nothing has begun. Negative: not
	 * recorded. */
	int (*end)(struct files_observer *r, bool done, struct cloche_err *err);
	void (*free)(struct files_observer *r);
};

struct cloche_files {
	struct chan c;
	struct files_observer *observer; /* owned; NULL: none */
	int wake_fd;
	uint64_t timeout_ms;   /* 0: none */
	bool ready;            /* READY has come */
	bool cancelled;        /* CANCEL was sent for the current operation */
	uint64_t give_up_usec; /* when the session ends if that operation has not ended then */
	bool watching;         /* no timeout */
	bool lenient;          /* see cloche_files_set_lenient() */
	bool broken;
	struct cloche_err why; /* why it is broken */
	cloche_files_progress_fn progress;
	void *progress_user;
	uint64_t moved_bytes, told_usec;
};

/* Files that are written by one request. */
struct files_batch {
	const struct files_small *files;
	size_t n;
	size_t written; /* after files_finish(): how many were; the next one has failed */
};

/* An operation in progress. */
struct files_run {
	cloche_files *f;
	const char *verb, *path; /* for messages: "read", "/a/b" */
	/* Handle an answer that is neither DONE nor ERROR. Return 0, 1 to stop (which is no
	 * error), or a negative code with err set, after which the remaining answers are discarded.
	 * NULL: no answers are expected. */
	int (*answer)(
		struct files_run *run, const struct chan_frame *frame, struct cloche_err *err);
	void *user;
	struct files_batch *batch; /* NULL: none */
	struct files_moved moved;  /* from DONE */
};

/* Make a session over a connected socket (taken) with a worker at the other end. */
_warn_unused_ int files_session_new(int fd, cloche_files **ret, struct cloche_err *err);

/* Set the observer (taken) for all further operations. */
void files_set_observer(cloche_files *f, struct files_observer *observer);

/* Send the request. Fails if the session is already broken. */
_warn_unused_ int files_begin(
	struct files_run *run, const struct files_request *q, struct cloche_err *err);
/* Wait for the end of the operation. */
_warn_unused_ int files_finish(struct files_run *run, struct cloche_err *err);
/* Do both, for operations that send no data. */
_warn_unused_ int files_do(
	struct files_run *run, const struct files_request *q, struct cloche_err *err);

/* Queue a piece of data (at most FILES_CHUNK bytes) after the request, to be sent with the next
 * frame. */
_warn_unused_ int files_queue(struct files_run *run, struct str data, struct cloche_err *err);
/* Send a piece of data, and wait until it was taken. Return 0 to go on; 1 if the operation is over
 * (cancelled, or the worker has failed), then files_finish() returns the result; or a negative
 * code. */
_warn_unused_ int files_send(struct files_run *run, struct str data, struct cloche_err *err);
/* The same with data from source. Return 2 at its end; then call files_finish(). */
_warn_unused_ int files_send_from(
	struct files_run *run, cloche_files_source source, void *user, struct cloche_err *err);
/* End the data. */
_warn_unused_ int files_send_end(struct files_run *run, struct cloche_err *err);
/* Cancel the operation and discard the remaining answers. Afterwards the session is usable or
 * broken. */
void files_give_up(struct files_run *run);

/* Return the mode of a request for a mode, or CLOCHE_FILES_KEEP_MODE, of a caller. */
static inline uint32_t files_mode(uint32_t mode)
{
	return mode == CLOCHE_FILES_KEEP_MODE ? FILES_KEEP_MODE : mode & 07777;
}

/* Mark the session as broken because the worker broke the rules. Return the negative code. */
int files_malformed(cloche_files *f, struct cloche_err *err);
/* Mark it as broken because of an errno (negative). Return the negative code. */
int files_lost(cloche_files *f, int r, struct cloche_err *err);
/* Send CANCEL if cloche_files_cancel() was called. Return 0 or -errno. */
_warn_unused_ int files_look_for_cancel(cloche_files *f);
/* Count bytes, and report progress if a function is set. */
void files_progressed(cloche_files *f, uint64_t bytes);
/* Set err to "VERB PATH: ENTRY: reason". Return -err->code. */
int files_tell(
	struct cloche_err *err, const char *verb, const char *path, const struct files_error *e);

/* Begin to write the files of run->batch in their order: at most FILES_CHUNK bytes in all, each
 * with FILES_SMALL_BYTES besides its path and data; their paths are terminated. files_finish()
 * tells how that ended; before that, others may be begun in this way unless the session has a
 * observer, and nothing else. */
enum { FILES_SMALL_BYTES = 16 };
_warn_unused_ int files_batch_begin(struct files_run *run, struct cloche_err *err);

/* As cloche_files_tar_put(), with additional flags of the request. */
_warn_unused_ int files_unpack(cloche_files *f, const char *path, unsigned flags,
	cloche_source from, struct cloche_err *err);

/* --- the host's side of copies --- */

/* As files_tell(), for a path of the host. */
int files_host_error(struct cloche_err *err, int errnum, const char *verb, const char *path);
/* Find a path of the host (hostpath_find). E_DENIED also if it leads into, or contains, a place
 * that holds credentials. */
_warn_unused_ int files_host_find(
	const char *path, const char *verb, struct hostpath *ret, struct cloche_err *err);
/* Open a regular file at such a path for reading. Return the descriptor, and its state in ret. */
_warn_unused_ int files_host_open(
	const char *path, const char *verb, struct stat *ret, struct cloche_err *err);
/* Refuse to replace devices and directories. */
_warn_unused_ int files_host_check_replaced(
	const struct hostpath *at, const char *path, struct cloche_err *err);
