/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Requests to the service and its answers. */

#include "answer.h"
#include "asked/key.h"
#include "base/buf.h"
#include "line.h"

struct service {
	struct line line;
	char key[sizeof("Bearer ") + KEY_MAX]; /* the value of a field */
	struct buf in;                         /* what was read and not yet taken */
};

/* place: of the request, or NULL. Fail if there is no key. */
_warn_unused_ int service_init(struct service *ret, const char *place, struct cloche_err *err);
void service_done(struct service *s);
static inline void service_donep(struct service *s)
{
	service_done(s);
}

/* Ask method for the room of this id (NULL: for nothing of a room), and return 0 with the status
 * and what the body says in words; fail if there was no answer. joins: ask for a WebSocket; with
 * status 101 the line is that one, and s->in has what came of it already. */
struct service_ask {
	const char *method, *id;
	bool joins;
	int patience_sec;
};
struct service_answer {
	unsigned status;
	bool ok; /* the document says that it was a success */
	char said[ANSWER_TEXT_MAX + 1];
};
_warn_unused_ int service_ask(struct service *s, const struct service_ask *ask,
	struct service_answer *ret, struct cloche_err *err);
/* Set the error of an answer with a status that was not wanted. */
int service_refused(
	const struct service *s, const struct service_answer *a, struct cloche_err *err);
