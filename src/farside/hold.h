/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The far end of a room: what holds it in the other place. Shared by the files of this folder. */

#include "dns/synthetic.h"
#include "far/protocol.h"
#include "far/pump.h"
#include "provider/provider.h"

struct hold;

/* A process of the room. */
struct hold_exec {
	UT_hash_handle hh;
	struct hold *hold;
	uint32_t number;
	struct pump pumps[3]; /* of a terminal the first alone; user NULL: not in use */
	bool tty, has_ended, is_told;
	struct roomctl_exited ending;
	unsigned unread; /* pumps that may still have to read what it has printed */
	unsigned open;   /* pumps that are not done */
};

/* Any other stream: a connection, a file worker. */
struct hold_stream {
	struct pump pump; /* first */
	struct hold_stream *prev, *next;
	struct hold *hold;
	pid_t worker; /* 0: none */
};

struct hold_listener {
	struct hold *hold;
	struct loop_io io;
	int fd;
};

struct hold {
	struct loop *loop;
	struct carrier carrier;
	const char *id;
	int dir;              /* the room's directory (fardir.h) */
	struct loop_io doors; /* its socket, where carriers connect */
	int guest;            /* who has connected last and has said nothing yet; or -1 */
	int giver; /* who has given us the carrier's descriptors, and lives with it; or -1 */
	struct loop_io guest_io, giver_io;
	struct loop_io signals;
	struct loop_timer patience;
	uint64_t patience_usec;

	struct room_spec spec;
	bool has_spec;
	bool in_place;   /* the room is the container that it stands in */
	bool only_rooms; /* ... which nobody wants here */
	int owner;       /* whose end is that of the room; -1: nobody's is */
	struct loop_io owner_io;
	char *pem;
	char *kept; /* what programs are called if they are kept: a line for each mount */
	struct room *room;
	bool room_dead, is_over, has_failed;
	bool is_ending; /* near has ended it */
	struct chan init;
	bool init_open;
	struct loop_io init_io, room_io;
	struct hold_exec *execs;
	struct hold_stream *streams;
	struct loop_timer usage, tails;
	uint64_t tails_usec, tails_until; /* until: 0: for ever */
	struct room_usage told;

	struct dns_synthetic *names;
	struct hold_listener listeners[ROOM_LISTENERS];
	struct loop_timer accept_again;
	struct chan channel; /* of a room that connects by one (ROOM_CAPTURE) */
	bool channel_open;
	struct loop_io channel_io;
	struct loop_job channel_more;
};

/* What a carrier says first, in place of a frame, if it has two descriptors for us, to read from
 * and to write to. No frame begins with that byte: that of the first one is the length of a HELLO.
 */
enum { HOLD_GIVES = 0xff, HOLD_GIVEN = 2 };

/* --- hold.c --- */
/* How a room is held, and where (fardir.h); the directory's lock is held. */
struct hold_how {
	int dir, listener; /* carriers connect to this */
	int owner;
	bool only_rooms;
};
_noreturn_ void hold_program(const char *id, const struct hold_how *how);
/* End everything, and the process. */
_noreturn_ void hold_leave(struct hold *h);
/* Tell the near end that the room could not be made, or is lost; then leave. */
void hold_fail(struct hold *h, const struct cloche_err *why);
/* Say what the room uses, if that is another figure than last time. */
void hold_tell_usage(struct hold *h);
/* Something was given to the link; e is the result. */
static inline void hold_sent(struct hold *h, int e)
{
	carrier_fail(&h->carrier, e);
}

/* --- make.c: the room --- */
/* Make the places for the mounts. */
_warn_unused_ int make_prepare(struct hold *h, struct str payload, struct cloche_err *err);
/* Open the directory of the copies of mount i. Return a descriptor or -errno. */
int make_open_place(const struct hold *h, size_t i);
_warn_unused_ int make_room(struct hold *h, struct cloche_err *err);

/* --- exec.c: processes --- */
/* Return 0 or -errno. */
_warn_unused_ int exec_on_exec(struct hold *h, struct str payload);
/* A frame of the room's init; return false if it is malformed. */
bool exec_on_frame(struct hold *h, struct chan_frame *f);
/* The room is dead. Return true if all output was read. */
bool exec_is_drained(const struct hold *h);

/* --- captured.c: the network --- */
_warn_unused_ int captured_start(struct hold *h, struct cloche_err *err);
/* Hang up the room's channel, if there is one. */
void captured_stop(struct hold *h);

/* --- inplace.c: where no namespaces can be made --- */
/* Find out whether the room has to be the container that it stands in. Return 0, or fail: no room
 * can be made here. */
_warn_unused_ int inplace_choose(struct hold *h, struct cloche_err *err);
_warn_unused_ int inplace_room(struct hold *h, struct cloche_err *err);

/* --- stand.c: the paths of mounts in the container that such a room stands in --- */
/* Have the copies at this path there. Return 0; then *ret_dir is a directory (owned) that was there
 * and is to take the copies, or -1 if a link leads to `copies`. ret_dir NULL: by a link alone.
 * Return 1 if the path cannot be had. */
_warn_unused_ int stand_take(
	struct hold *h, const char *path, const char *copies, int *ret_dir, struct cloche_err *err);
/* Give back everything that the room of this directory has taken. is_ours: this process has the
 * locks. */
void stand_undo(int room, bool is_ours);

/* --- streams.c --- */
/* Connect a channel with this socket (taken). ret may be NULL. Return 0 or -errno. */
_warn_unused_ int streams_add(struct hold *h, uint32_t number, int fd, struct hold_stream **ret);
_warn_unused_ int streams_on_files(struct hold *h, struct str payload);
unsigned streams_count(const struct hold *h);
