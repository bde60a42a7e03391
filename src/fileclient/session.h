/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The client's side of files/protocol.h. The other side is inside a room: nothing that it says is
 * believed before it was checked, and nothing is kept that has no limit. */

#include "base/err.h"
#include "base/hostpath.h"
#include "files/protocol.h"
#include <cloche/files.h>

/* Is told of every operation that changes files, so that it can be put on record (api/record.c). */
struct files_recorder {
	/* A request, before it is sent. Negative: it is not sent. */
	int (*begin)(
		struct files_recorder *r, const struct files_request *q, struct cloche_err *err);
	/* A piece of its data. Negative: the operation is given up. */
	int (*data)(struct files_recorder *r, struct str data, struct cloche_err *err);
	/* All of it was sent but what makes the worker do it. Negative: it is given up. */
	int (*ready)(struct files_recorder *r, struct cloche_err *err);
	/* It was done, or not; also if nothing has begun. Negative: it is not on record. */
	int (*end)(struct files_recorder *r, bool done, struct cloche_err *err);
	void (*free)(struct files_recorder *r);
};

struct cloche_files {
	struct chan c;
	struct files_recorder *recorder; /* owned; NULL: none */
	int wake_fd;
	uint64_t timeout_ms; /* 0: none */
	bool ready;          /* READY has come */
	bool cancelled;      /* CANCEL was sent for the operation under way */
	bool watching;       /* silence is fine */
	bool broken;
	struct cloche_err why; /* it broke */
	cloche_files_progress_fn progress;
	void *progress_user;
	uint64_t moved_bytes, told_usec;
};

/* An operation under way. */
struct files_run {
	cloche_files *f;
	const char *verb, *path; /* for messages: "read", "/a/b" */
	/* Takes an answer that is neither DONE nor ERROR: 0, 1 to stop (which is no error), or a
	 * negative code with err set, upon which the rest is thrown away. NULL: there is none. */
	int (*answer)(
		struct files_run *run, const struct chan_frame *frame, struct cloche_err *err);
	void *user;
	struct files_moved moved; /* what DONE said */
};

/* A session over a connected socket (taken) at whose other end a worker is. */
_warn_unused_ int files_session_new(int fd, cloche_files **ret, struct cloche_err *err);

/* From the next operation on; takes it. */
void files_set_recorder(cloche_files *f, struct files_recorder *recorder);

/* Sends the request; fails if the session is broken already. */
_warn_unused_ int files_begin(
	struct files_run *run, const struct files_request *q, struct cloche_err *err);
/* Waits for the end of the operation. */
_warn_unused_ int files_finish(struct files_run *run, struct cloche_err *err);
/* Both: for what sends no data. */
_warn_unused_ int files_do(
	struct files_run *run, const struct files_request *q, struct cloche_err *err);

/* Puts a piece of data (at most FILES_CHUNK bytes) behind the request; it goes out with what
 * follows. */
_warn_unused_ int files_queue(struct files_run *run, struct str data, struct cloche_err *err);
/* Sends a piece of data, and waits until it has been taken. 0: go on; 1: the operation is over
 * (cancelled, or the worker has failed): files_finish says how; or a negative code. */
_warn_unused_ int files_send(struct files_run *run, struct str data, struct cloche_err *err);
/* The same, filled by source. 2: that was the end of it; then call files_finish. */
_warn_unused_ int files_send_from(
	struct files_run *run, cloche_files_source source, void *user, struct cloche_err *err);
/* All data was sent. */
_warn_unused_ int files_send_end(struct files_run *run, struct cloche_err *err);
/* Gives up: CANCEL, and what still comes is thrown away. After it the session is usable, or
 * broken. */
void files_give_up(struct files_run *run);

/* The worker broke the rules. */
int files_malformed(cloche_files *f, struct cloche_err *err);
/* Tells of progress if somebody wants to know. */
void files_progressed(cloche_files *f, uint64_t bytes);
/* "VERB PATH: ENTRY: reason"; returns -err->code. */
int files_tell(
	struct cloche_err *err, const char *verb, const char *path, const struct files_error *e);

/* As cloche_files_tar_put(), with further flags of the request. */
_warn_unused_ int files_unpack(cloche_files *f, const char *path, unsigned flags,
	cloche_files_source source, void *user, struct cloche_err *err);

/* --- the host's side of copies --- */

/* As files_tell, of a path of the host. */
int files_host_error(struct cloche_err *err, int errnum, const char *verb, const char *path);
/* Finds a path of the host (hostpath_find); E_DENIED also if it leads into what holds
 * credentials, or contains it. */
_warn_unused_ int files_host_find(
	const char *path, const char *verb, struct hostpath *ret, struct cloche_err *err);
