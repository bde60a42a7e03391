/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* events.jsonl: one event a line, a blank line between replies. Appending costs the same however
 * long the file is. A line that a crash tore is no event and disturbs none. */

#include "agent/event.h"

#define SESSION_EVENTS "events.jsonl"
/* Bytes of events kept of one reply; what comes after is counted and left out. */
#define SESSION_EVENTS_MAX (64U << 20)

struct session_events {
	int fd;
	uint64_t offset; /* where this reply begins in the file */
	uint64_t size;   /* bytes of the file */
	uint64_t lost;   /* events beyond SESSION_EVENTS_MAX */
};

#define SESSION_EVENTS_INIT ((struct session_events){.fd = -1})

/* Opens (makes, if missing) the file in the directory and starts a new reply: a torn last line
 * is ended, and a blank line separates it from the one before. */
_warn_unused_ int session_events_begin(struct session_events *w, int dirfd, struct cloche_err *err);

/* Appends one event with a single write. A write that fails half-way is taken back, so that the
 * next one begins on a line of its own. */
_warn_unused_ int session_events_append(
	struct session_events *w, const json_t *event, struct cloche_err *err);

/* Closes; NULL-safe on a closed one. */
void session_events_end(struct session_events *w);

/* Reads the reply that begins at `offset` to its end, and a last line without newline too if it
 * is whole JSON. Appends to `events`. */
_warn_unused_ int session_events_reply_at(
	int dirfd, uint64_t offset, json_t *events, struct cloche_err *err);
