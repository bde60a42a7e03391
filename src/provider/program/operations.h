/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of this folder. */

#include "base/buf.h"
#include "provider/limit.h"
#include "provider/program/words.h"
#include "room/judge.h"
#include "room/nsroom.h"
#include "room/rootfs.h"

/* The version of the protocol. */
#define PROGRAM_PROTOCOL "1"

struct program_room {
	struct nsroom ns; /* first; its control group is the container's, not ours to remove */
	char *id;
	char **env;            /* environment variables for engines when the room was made (strv) */
	struct buf uids, gids; /* its id maps, which never change (user_namespaces(7)) */
	struct room_usage usage; /* the last reading */
};

/* --- process.c --- */
struct process_ask {
	const char *verb;
	struct str request; /* its standard input */
	char *const *env;   /* in addition to program_env() (strv); may be NULL */
	int patience_sec;
	const struct room_spec *spec; /* its given_up ends the run; NULL: nothing does */
	bool far; /* the request has a line `far`: the program may become a stream */
	/* NULL, or a program of ours that executes this one: "LEADER carry PATH VERB". */
	const char *leader;
};
/* What a program says to a person, if part of it may come from another place: so it is hostile. */
struct process_words {
	int fd;      /* the other end of its standard error, which does not block; or -1 */
	size_t left; /* how much more of it is passed on */
};
/* One run of the program. The caller only keeps it. */
struct process {
	const struct provider *provider;
	struct process_ask ask; /* its request: what is not sent yet */
	pid_t pid;
	int pidfd, to, from; /* its standard input and output; or -1 */
	struct process_words words;
	struct buf answer;
	bool answered, is_stream;
	int trouble; /* -errno; or 0 */
	uint64_t until;
};
/* Start the program. p and what ask points to have to stay until process_end(). */
_warn_unused_ int process_begin(struct process *ret, const struct provider *p,
	const struct process_ask *ask, struct cloche_err *err);
/* Wait until other is readable (return true), or the program has ended or made trouble. */
bool process_wait(struct process *run, int other);
/* Wait until the program has ended. If it answered with an error, fail with that error. */
_warn_unused_ int process_end(
	struct process *run, struct words_answer *ret, struct cloche_err *err);
/* What a program has become that answered `far`: a stream to the place where the room is made, from
 * its first byte on. to and from do not block. */
struct process_stream {
	pid_t pid; /* a child of ours, and the leader of its group */
	int pidfd, to, from;
	struct process_words words;
};
#define PROCESS_STREAM_NONE                                                                        \
	((struct process_stream){.pidfd = -1, .to = -1, .from = -1, .words.fd = -1})
/* Pass on what has been said so far to our own standard error, without what a terminal obeys, and
 * 16 KiB at most in all. Nobody need call it: a stream says it at its end, and until then whoever
 * says too much waits. */
void process_pass_on(struct process_words *words);
/* As process_end(), for a request with `far`. Return 1 if the program has become a stream, which
 * goes on; else 0 or an error. */
_warn_unused_ int process_end_or_stream(struct process *run, struct words_answer *ret,
	struct process_stream *ret_stream, struct cloche_err *err);
/* Kill the program with all of its group, and close the stream. Return its status as of waitpid().
 * Do nothing if it has been ended already. */
int process_stream_end(struct process_stream *stream);
/* Start the program and wait for its answer. */
_warn_unused_ int process_run(const struct provider *p, const struct process_ask *ask,
	struct words_answer *ret, struct cloche_err *err);
/* Return the variables of env that tell engines what to work with (strv, heap). */
char **process_settings(char *const *env);

/* --- describe.c --- */
extern const struct limit_way program_limits[];
/* Describe the room that the program has to make, in lines. dir: the room's own directory on the
 * host. */
_warn_unused_ int describe_room(const struct room_spec *spec, const struct judged_source *sources,
	const char *dir, struct buf *out, struct cloche_err *err);
/* What every request may begin with; NULL: it is left out. script: what has to run in the other
 * place, if the room is made there. */
struct describe_which {
	const char *id, *place, *script;
};
/* The same for a room that may or may not exist, or for none. */
_warn_unused_ int describe_id(const struct describe_which *which, struct buf *out);
/* Describe a room that is made at the other end of a stream: nothing in it is a path of this
 * machine. */
_warn_unused_ int describe_far(
	const struct room_spec *spec, const char *script, struct buf *out, struct cloche_err *err);

/* --- doctor.c --- */
int program_doctor_place(const struct provider *p, const char *place, provider_check_fn fn,
	void *user, struct cloche_err *err);

/* --- place.c --- */
/* Store what a program has said of itself in its answer to probe. */
void program_tell_about(const struct words_answer *answer, struct provider_about *ret);
int program_ask_place(const struct provider *p, const char *place, int patience_sec,
	struct provider_asked **ret, struct cloche_err *err);
int program_hear_place(
	struct provider_asked *asked, struct provider_about *ret, struct cloche_err *err);

/* --- inside.c --- */
enum { INSIDE_PLACE_MAX = 128 };
/* Write the path at which the program has to mount the source of mount i, in a directory that is
 * ours and has a name that no image knows. */
void inside_place(const struct room_spec *spec, size_t i, char ret[INSIDE_PLACE_MAX]);
/* Furnish a room whose process 1 waits: names, trust and network. Check that its mounts are what
 * was asked for, and put them where they belong. */
_warn_unused_ int inside_furnish(struct program_room *r, const struct room_spec *spec,
	const struct judged_source *sources, struct cloche_err *err);

/* --- ask.c: the operations while it runs --- */
int program_kill(struct room *r, int sig, struct cloche_err *err);
int program_wait(struct room *r, struct room_exit *ret, struct cloche_err *err);
int program_usage(struct room *r, struct room_usage *ret, struct cloche_err *err);
void program_lend(const struct room *r, int fd, uint32_t uid, uint32_t gid);
/* Read the id maps of process 1. */
_warn_unused_ int program_read_ids(struct program_room *r, struct cloche_err *err);
/* Find the control group of a process, for reading only. */
void program_find_cgroup(pid_t pid, struct cgroup *ret);
void program_leave_cgroup(struct cgroup *g);

static inline struct program_room *program_room(struct room *r)
{
	return container_of(r, struct program_room, ns.base);
}

static inline const struct program_room *program_room_const(const struct room *r)
{
	return (const struct program_room *)r;
}
