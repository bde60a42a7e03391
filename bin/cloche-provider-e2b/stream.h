/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A process in a sandbox whose standard input and output are ours. */

#include "service.h"

struct stream {
	struct service *service; /* borrowed */
	struct answer_sandbox sandbox;
	char *envd; /* the address of the service in the sandbox */
	char fields[3][ANSWER_TOKEN_MAX + 32];
	struct service_call start, input, prolong;
	struct buf start_body, input_body;
	char prolong_url[2 * PLACE_TEXT_MAX], input_url[2 * PLACE_TEXT_MAX];
	struct answer_events events;
	struct buf in, out, refusal;
	size_t sent;           /* bytes of `in` that the request under way has */
	uint32_t pid;          /* 0: it has not started */
	int status;            /* with which it has ended; -1: it has not */
	size_t words_left;     /* of what is shown of its standard error */
	bool in_ended, closed; /* ... and the sandbox was told */
	bool paused, warned;
	uint64_t prolong_at, give_up_at; /* 0: never */
	struct cloche_err why;           /* why it gives up; code 0: it does not */
};

/* How long a sandbox lives if nobody prolongs it. */
enum { STREAM_LIFETIME_SEC = 300 };

/* Start the script in a sandbox, and wait until it runs. s is large: it stays where it is until
 * stream_done(). */
_warn_unused_ int stream_open(struct stream *s, struct service *service,
	const struct answer_sandbox *sandbox, const char *script, struct cloche_err *err);
/* Carry bytes until the process has ended. Return its exit status, or negative. */
_warn_unused_ int stream_run(struct stream *s, struct cloche_err *err);
void stream_done(struct stream *s);
