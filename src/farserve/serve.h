/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The service. Shared by the files of this folder. */

#include "farserve/ask.h"
#include "farserve/options.h"
#include "http/body.h"
#include "http/h1.h"
#include "http/wsbytes.h"
#include "ipc/chan.h"
#include "loop/loop.h"
#include "manager/own.h"
#include "provider/provider.h"

enum {
	SERVE_CONNS_MAX = 64,
	RUN_STREAM_MAX = 8 * 1024 * 1024,    /* of one stream of output */
	SERVE_OUTPUT_MAX = 64 * 1024 * 1024, /* of all output that is kept at a time */
};

struct serve;
struct session;
struct conn;

struct run_stream {
	struct run *run;
	struct loop_io io;
	int fd;
	struct buf kept;
};

/* One execution. */
struct run {
	struct run *prev, *next; /* of the session */
	struct session *session;
	struct conn *conn; /* who waits for it; NULL: nobody any more */
	uint32_t number;
	uint32_t pid; /* in the room; 0: not yet known */
	struct run_stream streams[2];
	struct loop_timer deadline;
	uint64_t timeout_ms, began_mono, began_real;
	bool truncated, is_killed;
};

/* A room, and the name under which its client finds it again. */
struct session {
	struct session *prev, *next;
	struct serve *serve;
	char name[ASK_NAME_MAX + 1]; /* "": for one run */
	char id[64];
	uint32_t uid, gid;      /* whose the code is, in the room */
	struct sandbox_dir dir; /* if there is anything that has to be removed in the end */
	struct room *room;
	struct chan init;
	struct loop_io init_io, room_io;
	struct loop_timer sleep;
	struct loop_job end;
	uint32_t last_number;
	struct run *runs;
};

/* A far room, which a process of its own holds. */
struct far {
	struct far *prev, *next;
	struct serve *serve;
	char id[ASK_NAME_MAX + 1];
	int owner; /* its end ends the room; -1: it has been ended */
	pid_t pid;
	int pidfd;
	struct loop_io ended;
	struct loop_timer sleep;
	struct join *join; /* whoever carries its bytes */
};

/* A connection that has become a WebSocket. */
struct join {
	struct serve *serve;
	struct far *far;  /* NULL: it has another carrier, or is gone */
	int client, room; /* their sockets */
	struct loop_io client_io, room_io;
	struct loop_timer late;
	struct loop_job end;
	struct wsbytes ws;
	struct buf to_client, to_room;
	bool room_ended;
};

struct serve {
	struct options options;
	struct loop *loop;
	const struct provider *provider;
	bool has_token;
	uint8_t token[32]; /* its SHA-256 */
	int listener;
	struct loop_io listener_io, signals;
	struct loop_timer listen_again;
	char self[PATH_MAX];
	struct session *sessions;
	unsigned sessions_n, fars_n; /* together: rooms */
	struct far *fars;
	struct conn *conns;
	unsigned conns_n;
	size_t output; /* bytes of all runs and unsent answers */
};

/* Whether sessions are rooms with namespaces of their own. Else each has a directory of the place
 * that this process stands in. */
static inline bool serve_has_rooms(const struct serve *s)
{
	return s->provider == &native_provider;
}

/* --- session.c: rooms --- */
/* Remove what killed services and supervisors of this user have left. */
void session_sweep(void);
/* Make a room, to see whether that works here, and end it; say in words what is not enforced. */
_warn_unused_ int session_try(struct serve *s, struct buf *words, struct cloche_err *err);
/* Find or make the session of that name ("": a new one). E_LIMIT: there are too many. */
_warn_unused_ int session_get(
	struct serve *s, const char *name, struct session **ret, struct cloche_err *err);
/* A run is over: forget the session now if it was for that run alone, later otherwise. */
void session_rest(struct session *x);
void session_end_all(struct serve *s);

/* --- run.c: executions --- */
/* Start what is asked for; conn_on_answer() or conn_on_failure() is called later. */
_warn_unused_ int run_start(struct session *x, struct conn *c, const struct ask *ask,
	struct run **ret, struct cloche_err *err);
/* A frame of the room's init. Return false if it breaks the protocol. */
_warn_unused_ bool run_on_frame(struct session *x, struct chan_frame *f);
/* Nobody waits for it any more: end it. */
void run_forsake(struct run *r);
/* The room is gone: tell who waits. */
void run_lose_all(struct session *x);

/* --- far.c: far rooms (docs/design/services.md) --- */
/* Make what holds a room of this id. E_BUSY: there is one. E_LIMIT: there are too many rooms. */
_warn_unused_ int far_make(struct serve *s, const char *id, struct cloche_err *err);
/* Return the room of this id, or NULL. */
struct far *far_find(struct serve *s, const char *id);
/* Nobody carries its bytes: end it when it has slept. */
void far_rest(struct far *f);
/* Start what says which rooms can be had here; as long as it runs it counts as a room. Return a
 * socket to it, or negative. */
int far_probe(struct serve *s, struct far **ret, struct cloche_err *err);
void far_end(struct far *f);
/* End all, and wait for that. */
void far_end_all(struct serve *s);

/* --- join.c: their bytes --- */
/* Carry a room's bytes over a WebSocket, in place of whoever did. first: what is to be written
 * before, came: what has been read behind the request. Both sockets are taken if that works. Return
 * 0 or -errno. */
struct join_how {
	int room, client;
	struct str first, came;
};
_warn_unused_ int join_begin(struct far *f, const struct join_how *how);
void join_end(struct join *j);

/* --- conn.c: HTTP --- */
void conn_listen(struct serve *s);
/* The run of this connection is over; a is borrowed. */
void conn_on_answer(struct conn *c, const struct answer *a);
void conn_on_failure(struct conn *c, unsigned status, const char *why);
void conn_end_all(struct serve *s);
