/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the two providers that have a process of the host run in place of process 1. */

#include "base/program.h"
#include "provider/provider.h"

/* Names in the sandbox's directory, which are also words of cloche-init's. */
#define PLAIN_TRUST_DIR "trust"

struct subprocess {
	struct room base; /* first; its watch_fd is a pidfd */
	char *id;
	struct room_usage usage; /* the last reading */
	int gateway_fd; /* the gateway's end of a channel until it is handed over, else -1 */
};

static inline struct subprocess *subprocess(struct room *r)
{
	return container_of(r, struct subprocess, base);
}

static inline bool subprocess_is_guarded(const struct provider *p)
{
	return p == &landlock_provider;
}

/* The arguments of cloche-init. */
struct plain_args {
	char **v;
	bool failed;                                /* no memory */
	struct program_fd fds[ROOM_MAX_MOUNTS + 2]; /* the first is its control socket */
	size_t fds_n;
	int own; /* one of these that is closed afterwards, or -1 */
};

void plain_add(struct plain_args *a, const char *text);
/* Make a directory in the sandbox's, and add its name and path. Return it (O_PATH). */
_warn_unused_ int plain_make_dir(
	struct plain_args *a, const char *id, const char *name, struct cloche_err *err);

/* landlock.c: what a person is told, and what such a room has besides. */
extern const char landlock_walls[];
_warn_unused_ int landlock_furnish(struct subprocess *s, const struct room_spec *spec,
	struct plain_args *a, struct cloche_err *err);

/* Operations of both. */
int subprocess_plan(const struct provider *p, const struct room_spec *spec, struct buf *out,
	struct cloche_err *err);
int subprocess_create(const struct provider *p, const struct room_spec *spec, struct room **ret,
	struct cloche_err *err);
int subprocess_kill(struct room *room, int sig, struct cloche_err *err);
int subprocess_wait(struct room *room, struct room_exit *ret, struct cloche_err *err);
int subprocess_record(const struct room *r, struct buf *out, struct cloche_err *err);
int subprocess_reap(const struct provider *p, struct str record, struct cloche_err *err);
struct room *subprocess_destroy(struct room *room);
int subprocess_kill_tree(struct room *room, pid_t pid, struct cloche_err *err);
int subprocess_usage(struct room *room, struct room_usage *ret, struct cloche_err *err);
