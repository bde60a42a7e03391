/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* events.jsonl: one event per line, a blank line between replies. Appending costs the same however
 * long the file is. A line torn by a crash is ignored and affects no other line. */

#include "agent/event.h"

#define SESSION_EVENTS "events.jsonl"
/* Bytes of events kept for one reply; further events are left out. */
#define SESSION_EVENTS_MAX (64U << 20)

struct session_events {
	int fd;
	uint64_t offset; /* start of this reply in the file */
	uint64_t size;   /* bytes of the file */
};

#define SESSION_EVENTS_INIT ((struct session_events){.fd = -1})

/* Open the file in the directory (make it if missing) and start a new reply: a torn last line is
 * ended, and a blank line separates the reply from the one before. */
_warn_unused_ int session_events_begin(struct session_events *w, int dirfd, struct cloche_err *err);

/* Append one event with a single write. If the write fails half-way it is undone, so that the next
 * event begins on a new line. */
_warn_unused_ int session_events_append(
	struct session_events *w, const json_t *event, struct cloche_err *err);

/* Close the file. May be called again. */
void session_events_end(struct session_events *w);

/* Read the reply that begins at `offset` to its end, including a last line without a newline if it
 * is whole JSON. Appends to `events`. */
_warn_unused_ int session_events_reply_at(
	int dirfd, uint64_t offset, json_t *events, struct cloche_err *err);
