/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers for a room without namespaces of its own: for its files' modes (keep.h), and for its
 * sockets (jail/seccomp.h, seccomp_install_dialling()): its connections go to the gateway. */

#include "init/keep.h"
#include "init/relay.h"
#include "ipc/capture.h"
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	DIAL_HELD_MAX = 512,
	DIAL_DONE_MAX = 1024,
	DIAL_RELAYS_MAX = 32,
	DIAL_POLLS_MAX = DIAL_HELD_MAX + 2 * DIAL_RELAYS_MAX,
};

/* A socket of the room that is not connected yet. */
struct dial_held {
	ino_t inode; /* of the room's end */
	int fd;      /* the other end */
	bool v6;
	bool datagrams; /* it was asked for as one of UDP */
};

/* One that is, as long as few others were connected since. */
struct dial_done {
	ino_t inode;
	bool v6;
	struct net_client client;
};

/* Begins with zeroes, except as noted. */
struct dial {
	int listener;         /* owned */
	bool captured;        /* there is a channel: */
	struct chan *gateway; /* to the gateway, borrowed */
	struct dial_held held[DIAL_HELD_MAX];
	size_t held_n;
	struct dial_done done[DIAL_DONE_MAX];
	size_t done_n; /* so far; the last ones are kept */
	struct relay relays[DIAL_RELAYS_MAX];
	size_t relays_n;
	struct keep keep;
	uint16_t port; /* that the last one was said to come from */
};

/* Answer one request of the listener. Never waits for the room or the gateway. */
void dial_answer(struct dial *d);

/* Write what to poll for, at most DIAL_POLLS_MAX, and return how many; then do what these say:
 * carry queries for names, and forget the sockets that the room has closed. */
size_t dial_poll(const struct dial *d, struct pollfd *polls);
void dial_look(struct dial *d, const struct pollfd *polls);
void dial_done(struct dial *d);
