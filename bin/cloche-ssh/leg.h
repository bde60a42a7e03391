/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What both ends share: a session of SSH with one channel, the socket to the gateway or broker, and
 * waiting for them. */

#include "base/buf.h"
#include "ipc/sshleg.h"

#include <libssh/libssh.h>

enum {
	LEG_HANDSHAKE_SEC = 60, /* until the request was answered: then an alarm ends the process */
	LEG_BUFFER = 64 * 1024,
};

struct leg {
	ssh_session session;
	ssh_channel channel;
	ssh_event event;
	int plain;
	short watched;      /* events of plain that are waited for */
	bool plain_ended;   /* it was read to its end */
	bool plain_gone;    /* the other side has closed both directions */
	bool watches_end;   /* ... which is waited for in any case */
	bool broken;        /* the connection or plain is lost */
	struct buf in, out; /* of plain */
};

void leg_init(struct leg *l, ssh_session session, int plain);
void leg_done(struct leg *l);
/* Wait until something has happened to the session or, if these are wanted, to plain. */
void leg_wait(struct leg *l, bool read, bool write);
/* Read once into l->in, if there is room. Set plain_ended or broken. */
void leg_read_plain(struct leg *l);
/* Write of l->out what is taken now. */
void leg_write_plain(struct leg *l);
/* Whether the session takes more: the other side's window is open, and what was written before has
 * gone. */
bool leg_may_write(const struct leg *l);
/* Whether the session still has a channel that works. */
bool leg_is_open(const struct leg *l);
/* Wait until all that was written to the session has gone. */
void leg_drain(struct leg *l);

/* The two programs. Return the exit status. */
int room_main(void);
int origin_main(void);
