/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of the worker. An operation returns 0, or -errno with e filled if the errno
 * alone is not enough. If `broken` is set, the connection cannot be used any more. */

#include "files/beneath.h"
#include "files/protocol.h"
#include "fs/place.h"

struct server {
	struct chan c;
	int root;                   /* borrowed */
	struct str base;            /* borrowed */
	const struct place *places; /* borrowed */
	size_t places_n;
	bool broken;              /* the client is gone, or broke the rules */
	int broken_r;             /* why */
	bool answered;            /* ERROR was already sent */
	struct files_moved moved; /* for DONE */
	uint64_t beat_usec;       /* when ALIVE was last sent */
};

typedef int (*server_op)(struct server *s, const struct files_request *q, struct files_error *e);

/* Mark the connection as broken. Return r. */
int server_break(struct server *s, int r);
/* Send everything that is queued, waiting for the client to read it. */
_warn_unused_ int server_flush(struct server *s);
/* Check whether the client wants to end the operation. Return 0, -ECANCELED, or another error if
 * the connection is broken. */
_warn_unused_ int server_check(struct server *s);
/* As chan_recv_wait, but first what is here already. */
int server_recv(struct server *s, struct chan_frame *ret);
/* The same, and send ALIVE at most once a second. */
_warn_unused_ int server_beat(struct server *s);

/* Copy a path of the request, as it is called here. */
_warn_unused_ int server_path(const struct server *s, struct str path, char **ret);

/* --- serve_names.c --- */
int serve_list(struct server *s, const struct files_request *q, struct files_error *e);
int serve_stat(struct server *s, const struct files_request *q, struct files_error *e);
int serve_readlink(struct server *s, const struct files_request *q, struct files_error *e);
int serve_mkdir(struct server *s, const struct files_request *q, struct files_error *e);
int serve_remove(struct server *s, const struct files_request *q, struct files_error *e);
int serve_rename(struct server *s, const struct files_request *q, struct files_error *e);
int serve_chmod(struct server *s, const struct files_request *q, struct files_error *e);
int serve_symlink(struct server *s, const struct files_request *q, struct files_error *e);
/* --- serve_data.c --- */
int serve_read(struct server *s, const struct files_request *q, struct files_error *e);
int serve_write(struct server *s, const struct files_request *q, struct files_error *e);
int serve_write_small(struct server *s, const struct files_request *q, struct files_error *e);
int serve_tar_get(struct server *s, const struct files_request *q, struct files_error *e);
int serve_tar_put(struct server *s, const struct files_request *q, struct files_error *e);
/* --- serve_watch.c --- */
int serve_watch(struct server *s, const struct files_request *q, struct files_error *e);
