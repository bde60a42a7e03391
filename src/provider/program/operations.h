/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share. */

#include "base/buf.h"
#include "jail/netcapture.h"
#include "provider/native/cgroup.h"
#include "provider/native/judge.h"
#include "provider/native/owner.h"
#include "provider/native/rootfs.h"
#include "provider/program/words.h"
#include "provider/provider.h"

/* The version of the protocol. */
#define PROGRAM_PROTOCOL "1"

struct program_room {
	struct room base; /* first; its watch_fd is a pidfd */
	char *id;
	char **env;            /* settings of engines when it was made (strv) */
	pid_t pid;             /* process 1 as the host sees it; -1: none yet */
	struct buf uids, gids; /* its id maps, which never change (user_namespaces(7)) */
	struct netcapture net; /* the listeners until they are handed over, and diag */
	struct owner_budget looks;
	struct cgroup cgroup; /* the container's, not ours to remove */
	struct words_answer answer;
	bool made; /* the program was asked to make something */
	struct room_exit exit;
	struct room_usage usage; /* as it was seen last */
};

/* --- process.c --- */
struct process_ask {
	const char *verb;
	struct str request; /* its standard input */
	char *const *env;   /* besides program_env() (strv); may be NULL */
	int patience_sec;
	const struct room_spec *spec; /* whose given_up ends it; NULL: nobody does */
};
/* Runs the program. An error that it says is one of this function. ret's words_answer_done() is the
 * caller's. */
_warn_unused_ int process_run(const struct provider *p, const struct process_ask *ask,
	struct words_answer *ret, struct cloche_err *err);
/* The variables of environ by which engines find what they work with (strv, heap). */
char **process_settings(char *const *env);

/* --- describe.c --- */
/* What the program shall make, in lines. dir: the room's own directory on the host. */
_warn_unused_ int describe_room(const struct room_spec *spec, const struct judged_source *sources,
	const char *dir, struct buf *out, struct cloche_err *err);
/* Of a room that may be there. */
_warn_unused_ int describe_id(const char *id, struct buf *out);

/* --- inside.c --- */
/* Furnishes a room whose process 1 waits: names, trust, network; and compares what is mounted there
 * with what was asked for. */
_warn_unused_ int inside_furnish(struct program_room *r, const struct room_spec *spec,
	const struct judged_source *sources, struct cloche_err *err);

/* --- ask.c: the operations while it runs --- */
int program_kill(struct room *r, int sig, struct cloche_err *err);
int program_wait(struct room *r, struct room_exit *ret, struct cloche_err *err);
pid_t program_pid(const struct room *r);
const char *program_unenforced(const struct room *r, unsigned i);
int program_kill_tree(struct room *r, pid_t pid, struct cloche_err *err);
int program_usage(struct room *r, struct room_usage *ret, struct cloche_err *err);
int program_listeners(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err);
bool program_owner(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret);
void program_lend(const struct room *r, int fd, uint32_t uid, uint32_t gid);
/* Reads the id maps of process 1. */
_warn_unused_ int program_read_ids(struct program_room *r, struct cloche_err *err);
/* The control group of a process, to be read. */
void program_find_cgroup(pid_t pid, struct cgroup *ret);
void program_leave_cgroup(struct cgroup *g);

static inline struct program_room *program_room(struct room *r)
{
	return container_of(r, struct program_room, base);
}

static inline const struct program_room *program_room_const(const struct room *r)
{
	return (const struct program_room *)r;
}
