/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The near end of a far room. Shared by the files relay*.c. */

#include "far/protocol.h"
#include "far/pump.h"
#include "ipc/capture.h"

struct relay;

/* A channel of frames that the loop watches. */
struct relay_chan {
	struct chan chan;
	struct loop_io io;
	bool open;
};

/* A process of the room, until its end was told. */
struct relay_exec {
	UT_hash_handle hh;
	struct relay *relay;
	uint32_t number;
	struct pump pumps[3]; /* of a terminal the first alone; user NULL: not in use */
	int master;           /* of the terminal, until STARTED hands it out; else -1 */
	char *asked;          /* what to ask for when there is a terminal; NULL: nothing */
	size_t asked_n;
	bool has_started, has_ended, is_told;
	bool is_lost; /* it has ended with the room, and nobody has said how */
	struct roomctl_exited ending;
	unsigned unwritten; /* pumps that still have to write what it has printed */
	unsigned open;      /* pumps that are not done */
};

/* Any other stream: a connection, a file worker. */
struct relay_stream {
	struct pump pump; /* first */
	struct relay *relay;
};

enum relay_state {
	RELAY_NEW,      /* BEGIN has not come */
	RELAY_PREPARES, /* ROOM was sent */
	RELAY_PREPARED,
	RELAY_MAKES,
	RELAY_UP,
	RELAY_OVER,
};

struct relay {
	struct loop *loop;
	enum relay_state state;
	struct carrier carrier;
	struct relay_chan init, ctl, keeper, capture;
	struct relay_exec *execs;
	unsigned streams_n; /* relay_stream.c */

	char *start, *again_text; /* requests for the provider's program */
	uint64_t patience_usec;
	uint64_t came_at;        /* when the last carrier was there */
	uint64_t cut_at;         /* when the carrier was lost; 0: it is there */
	struct cloche_err last;  /* why there was no carrier at the last try; code 0: there was */
	struct loop_timer again; /* the next try for a carrier */
	struct loop_timer giving_up;
	unsigned said;  /* lines for a person */
	bool ready;     /* the room's init has said so */
	bool is_ending; /* somebody has ended the room: it got SIGTERM or SIGKILL */
	bool is_killed; /* the room has to end soon */
	bool owes_over; /* it is over, which is told when what it has printed is written */
	struct far_over over;
	int end_fd; /* its other end tells the supervisor that the room is over; or -1 */
};

/* --- relay.c --- */
/* The room is lost, or was never made. why: told to the supervisor. */
void relay_fail(struct relay *r, const struct cloche_err *why);
/* The end of a process was told. */
void relay_settle_over(struct relay *r);
/* Call this after a channel was given something; e is the result. */
void relay_sent(struct relay *r, struct relay_chan *c, int e);
/* The same for the link. */
void relay_linked(struct relay *r, int e);

/* --- relay_exec.c: processes --- */
/* Serve frames of the supervisor to the room's init. Return false if one is malformed. */
bool relay_exec_on_frame(struct relay *r, struct chan_frame *f);
/* Serve what init says. Return 0 or -errno. */
_warn_unused_ int relay_exec_on_message(struct relay *r, enum far_message type, struct str payload);
/* The room is over: no process says any more how it has ended. */
void relay_exec_on_over(struct relay *r);
/* Whether the end of a process waits until what it has printed is written. */
bool relay_exec_is_owed(const struct relay *r);
/* A terminal of this machine has come, or not (-1; both are taken), for the process that has waited
 * longest. Return false if none waits. */
bool relay_exec_on_terminal(struct relay *r, int master, int slave);

/* --- relay_stream.c: connections and file workers --- */
/* Serve files: connect this socket (taken) with a new worker. Return 0 or -errno. */
_warn_unused_ int relay_stream_files(struct relay *r, uint32_t mount, int fd);
/* A connection was captured. Return 0 or -errno. */
_warn_unused_ int relay_stream_connection(struct relay *r, struct str payload);
