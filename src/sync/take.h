/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Having here what is there. */

#include "files/replace.h"
#include "sync/internal.h"

/* A file or link of the room's on its way: it has a temporary name until it is complete. */
struct taking {
	struct sync *s;
	struct sync_node *n;
	int dir;          /* owned */
	const char *name; /* borrowed: its name there */
	char *where;      /* owned: its path here */
	bool aside;       /* it gets another name */
	bool away;        /* its directory is another one here */
	struct replace file;
	struct sha256 h;
	uint64_t got;
	int error;     /* -errno: it cannot be written here */
	bool too_much; /* it passes the limit of what a pull fetches */
};

void taking_done(struct taking *t);
static inline void taking_donep(struct taking *t)
{
	taking_done(t);
}

/* Find its directory here, which is made if it is missing. */
_warn_unused_ int taking_begin(
	struct taking *t, struct sync *s, struct sync_node *n, struct cloche_err *err);
/* Make the temporary file, again if there is one. */
_warn_unused_ int taking_open(struct taking *t, struct cloche_err *err);
/* Add what came. Return 0, or -errno, which t->error has, too. */
_warn_unused_ int taking_add(struct taking *t, const void *data, size_t n);
/* All of it came: give the file its name, unless both sides are alike. */
_warn_unused_ int taking_finish(struct taking *t, struct cloche_err *err);
/* Tell why it could not be written. */
_warn_unused_ int taking_failed(const struct taking *t, struct cloche_err *err);
