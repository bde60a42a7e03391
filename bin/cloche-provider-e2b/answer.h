/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the service says: answers of its API, and the messages of a process (Connect's protocol:
 * frames of one byte of flags, four of length, and JSON). Every byte is hostile. */

#include "place.h"

enum {
	ANSWER_MAX = 1024 * 1024, /* a whole answer, or one frame */
	ANSWER_TEXT_MAX = 200,
	ANSWER_TOKEN_MAX = 4096,
};

struct answer_sandbox {
	char id[PLACE_ID_MAX + 1], domain[URL_HOST_MAX + 1];
	char token[ANSWER_TOKEN_MAX + 1]; /* "": it needs none */
};

/* Read the sandbox that was made or taken up. Return 0, or -EPROTO. */
_warn_unused_ int answer_read_sandbox(struct str body, struct answer_sandbox *ret);
/* Call each(user, id) with the service's id of each sandbox of a list whose metadata has this value
 * for this key: whatever was asked for, others may be listed. Return 0, the first nonzero result
 * of each(), or -EPROTO. */
_warn_unused_ int answer_each_sandbox(struct str body, const char *key, const char *value,
	int (*each)(void *user, const char *id), void *user);
/* Write what an answer says went wrong, as printable ASCII; "" if it says nothing. */
void answer_message(struct str body, char ret[ANSWER_TEXT_MAX + 1]);

enum answer_event {
	ANSWER_NOTHING, /* a sign of life */
	ANSWER_START,   /* number: the process */
	ANSWER_OUT,     /* data: what it has written */
	ANSWER_ERR,     /* ... to standard error */
	ANSWER_END,     /* number: its exit status; 255 if it has none */
	ANSWER_OVER,    /* nothing follows. text: what went wrong */
};

struct answer_events {
	struct buf in, data;
	char text[ANSWER_TEXT_MAX + 1];
	uint32_t number;
	enum answer_event last; /* of those that there is one of: START, END, OVER */
};
#define ANSWER_EVENTS_INIT                                                                         \
	((struct answer_events){.in = BUF_INIT(2 * ANSWER_MAX), .data = BUF_INIT(ANSWER_MAX)})

static inline void answer_events_donep(struct answer_events *e)
{
	buf_done(&e->in);
	buf_done(&e->data);
}

/* Take bytes, cut anywhere. Return 0, or a negative errno of buf_add(). The caller takes all events
 * before the next bytes. */
_warn_unused_ int answer_events_feed(struct answer_events *e, struct str bytes);
/* Take the next event. Return 1, 0 if there is none yet, or -EPROTO: START comes first and once,
 * and after END nothing but OVER. */
_warn_unused_ int answer_events_next(struct answer_events *e, enum answer_event *ret);
