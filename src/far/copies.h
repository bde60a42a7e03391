/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The person's files of a far room: copied there before it is made, and what changed brought back
 * when it is over. cloche-sync does it, one run for each mount (bin/cloche-sync). */

#include "far/protocol.h"
#include "provider/spec.h"

/* A mount whose files are copied. */
struct far_mount {
	uint32_t number; /* at the far end: its guards are not counted */
	int dir;         /* of this machine: a directory (O_PATH), or a file that can be read */
	int one;         /* a file that may be written to (O_PATH): dir is where it is; -1: none */
	int state;       /* a file of cloche-sync's */
	char **kept;     /* paths in it that are the person's alone: they do not come back (strv) */
	char **hidden;   /* the same of files that do not go there either */
	bool ro;
	bool file;                     /* one file, to be read: it is copied once */
	char *one_name;                /* what it is called in dir; NULL: none */
	char name[FAR_KEPT_BYTES + 1]; /* of a program that may be there already (kept.h); or "" */
};

/* What copies both ways while the room lives. */
struct far_sync {
	size_t at;    /* the mount */
	bool is_push; /* else a pull */
	pid_t pid;    /* of cloche-sync, 0: none */
	int pidfd;
	bool is_stopped;
	struct cloche_err why; /* the first failure; code 0: none */
};

struct far_copies {
	struct far_mount *mounts;
	size_t mounts_n;
	char *id, *what; /* of the sandbox; --sync */
	struct far_sync sync;
};

/* How files get there: connect this socket (taken) with a file worker for that mount. Return 0 or
 * -errno. */
typedef int (*far_copies_fn)(void *user, uint32_t mount, int fd);

/* Note what there is to be copied. */
_warn_unused_ int far_copies_init(
	struct far_copies *f, const struct room_spec *spec, struct cloche_err *err);
void far_copies_done(struct far_copies *f);

/* Get a line for each mount: what struct far_room_spec has as kept. */
_warn_unused_ int far_copies_names(const struct far_copies *f, struct buf *ret);

/* Copy everything. given_up: of the room's spec, or NULL. */
_warn_unused_ int far_copies_push(struct far_copies *f, const struct room_spec *spec,
	far_copies_fn connect, void *user, struct cloche_err *err);
/* Copy both ways what has changed: a step of what struct provider has as sync. A mount that fails
 * does not keep the others. */
_warn_unused_ int far_copies_sync(struct far_copies *f, int out, int *ret_fd, far_copies_fn connect,
	void *user, struct cloche_err *err);
/* End it soon. now: at once. */
void far_copies_sync_stop(struct far_copies *f, bool now);
/* End it, and wait for that. Every file is whole then, and what was copied is known. */
void far_copies_sync_end(struct far_copies *f);
/* Bring back what has changed in mounts that may be written to. All of them are tried. */
_warn_unused_ int far_copies_pull(
	struct far_copies *f, far_copies_fn connect, void *user, struct cloche_err *err);
