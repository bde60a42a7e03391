/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The protocol between a supervisor and its network programs (gateway, broker). Each of them is
 * started with this channel as descriptor HELPER_FD_SUPERVISOR and the channel between the two of
 * them (ipc/netchan.h) as HELPER_FD_PEER.
 *
 * After READY the supervisor may ask the broker for its figures at any time; answers come in order.
 * At any time it may hand the broker the socket of a client that has a new policy (ipc/netconf.h);
 * the supervisor never sees the data on it, nor the answer.
 *
 * The broker may ask which process of the room holds a connection. The supervisor answers in order,
 * even if it finds none.
 *
 * The broker, which cannot open files, may ask whether the host's name resolution has changed. The
 * supervisor answers only if it has changed since the last answer.
 *
 * Nor can it open or replace the file of a person's login whose token it renews. The supervisor,
 * which has the directory of each, sends the file, to be read, and an empty one for what shall take
 * its place. It reads neither. From LOGIN to LOGIN_END no other sandbox of this machine gets that
 * login. LOGIN_END with .write is answered.
 *
 * Either may ask for a cloche-ssh. It hears of it on the other end of what it has handed over: if
 * none can be started, that is closed.
 *
 * A helper sends READY once, when it has dropped its rights and is ready to serve, or FAILED once,
 * and then ends. The supervisor may send LISTENERS before it has read READY. End-of-file towards a
 * helper means: end at once. End-of-file from a helper that did not send FAILED means that it
 * died. */

#include "ipc/netchan.h"

enum {
	HELPER_FD_SUPERVISOR = 3,
	HELPER_FD_PEER = 4,
	HELPER_MAX_PAYLOAD = 4096,
	HELPER_MAX_SOURCES = 512,
};

enum helper_frame {
	HELPER_LISTENERS = 1, /* supervisor -> gateway: struct helper_listeners, its sockets */
	HELPER_COUNT,         /* supervisor -> broker: nothing */
	HELPER_POLICY,        /* supervisor -> broker: 1 fd, a client's socket */
	HELPER_OWNER,         /* supervisor -> broker: struct helper_owner */
	HELPER_NAMES,         /* supervisor -> broker: 2 read-only fds, resolv.conf and hosts */
	HELPER_LOGIN, /* supervisor -> broker: struct helper_login; without a problem 2 fds */
	HELPER_LOGIN_WRITTEN, /* supervisor -> broker: struct helper_login */
	HELPER_READY = 16,    /* helper -> supervisor: nothing */
	HELPER_FAILED,        /* helper -> supervisor: an error */
	HELPER_COUNTED,       /* broker -> supervisor: struct helper_counted */
	HELPER_WHO,           /* broker -> supervisor: struct helper_who */
	HELPER_NAMES_CHANGED, /* broker -> supervisor: nothing; asks whether they have changed */
	HELPER_REPLACED,      /* broker -> supervisor: struct helper_replaced, the new policy */
	HELPER_LOGIN_OPEN,    /* broker -> supervisor: struct helper_login_open */
	HELPER_LOGIN_END,     /* broker -> supervisor: struct helper_login_end */
	HELPER_SSH,           /* helper -> supervisor: 2 fds, for a cloche-ssh (ipc/sshleg.h) */
};

/* Listening sockets of the room's network, or the channel that its connections come over; at most
 * one of each. The descriptors come in this order. */
enum helper_socket {
	HELPER_TCP4,
	HELPER_TCP6,
	HELPER_UDP4, /* DNS */
	HELPER_UDP6,
	HELPER_CAPTURE, /* the gateway's end of ipc/capture.h */
	HELPER_SOCKETS
};

/* present: bit 1 << enum helper_socket: this one is. */
#define HELPER_LISTENERS_FIELDS(F) F(U8, present, .max = (1 << HELPER_SOCKETS) - 1)
MESSAGE_STRUCT(helper_listeners, HELPER_LISTENERS_FIELDS);

MESSAGE_EMPTY(helper, count, HELPER_COUNT);
MESSAGE_OF_FDS(helper, policy, HELPER_POLICY, 1);
MESSAGE_OF_FDS(helper, names, HELPER_NAMES, 2);
MESSAGE_OF_FDS(helper, ssh, HELPER_SSH, 2); /* the connection, and its plain end */
MESSAGE_EMPTY(helper, ready, HELPER_READY);
MESSAGE_ERROR(helper, failed, HELPER_FAILED, "malformed report of a failure");
MESSAGE_EMPTY(helper, names_changed, HELPER_NAMES_CHANGED);

/* The broker's figures so far: requests, and bytes of their bodies from and to the room. */
#define HELPER_COUNTED_FIELDS(F)                                                                   \
	F(U64, allowed)                                                                            \
	F(U64, blocked)                                                                            \
	F(U64, sent)                                                                               \
	F(U64, received)
MESSAGE(helper, counted, HELPER_COUNTED, HELPER_COUNTED_FIELDS);

/* A new policy is in force. sources: names of files and "--allow", to be shown to users; any
 * bytes. */
#define HELPER_REPLACED_FIELDS(F)                                                                  \
	F(U32, rules)                                                                              \
	F(STR, sources, .max = HELPER_MAX_SOURCES)
MESSAGE(helper, replaced, HELPER_REPLACED, HELPER_REPLACED_FIELDS);

#define HELPER_WHO_FIELDS(F)                                                                       \
	F(U32, number)                                                                             \
	F(PART, client, net_client)
MESSAGE(helper, who, HELPER_WHO, HELPER_WHO_FIELDS);

/* The process that the question with this number asked for. */
#define HELPER_OWNER_FIELDS(F)                                                                     \
	F(U32, number)                                                                             \
	F(PART, owner, net_owner)
MESSAGE(helper, owner, HELPER_OWNER, HELPER_OWNER_FIELDS);

/* number: of the login, from 0 on. */
#define HELPER_LOGIN_OPEN_FIELDS(F) F(U8, number)
MESSAGE(helper, login_open, HELPER_LOGIN_OPEN, HELPER_LOGIN_OPEN_FIELDS);

/* problem: 0, or an errno. EAGAIN: another sandbox renews it now; ESTALE: somebody else has changed
 * the file since LOGIN, and it stays as it is. */
#define HELPER_LOGIN_FIELDS(F)                                                                     \
	F(U8, number)                                                                              \
	F(U32, problem)
MESSAGE_WITH_FDS(helper, login, HELPER_LOGIN_FIELDS);

/* write: the second file of LOGIN is complete and takes the place of the first. */
#define HELPER_LOGIN_END_FIELDS(F)                                                                 \
	F(U8, number)                                                                              \
	F(BOOL, write)
MESSAGE(helper, login_end, HELPER_LOGIN_END, HELPER_LOGIN_END_FIELDS);

/* fds[i] is used (borrowed) if bit i of present is set. Return 0 or -errno. */
_warn_unused_ int helper_send_listeners(
	struct chan *c, const struct helper_listeners *m, const int fds[HELPER_SOCKETS]);
/* Take the descriptors out of the frame; those that are not present are -1. Return false if it is
 * malformed; then nothing is taken. */
bool helper_get_listeners(struct chan_frame *f, int ret_fds[HELPER_SOCKETS]);
