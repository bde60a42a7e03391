/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Requests that the broker itself makes. */

#include "base/buf.h"
#include "broker/constants.h"
#include "loop/loop.h"
#include "policy/host.h"

struct broker;
struct stream;

/* A request of the broker itself over verified TLS, and its answer. Zero it first, except for
 * `done`. */
struct fetch {
	void (*done)(struct fetch *f); /* takes the result; may start the next request */
	struct stream *stream;         /* while it is under way */
	struct loop_timer late;
	struct loop_job job;
	struct buf answer;
	unsigned status;
	bool complete;        /* else error says why not */
	char error[NOTE_MAX]; /* printable */
};

/* Everything is borrowed for the time of the call. */
struct fetch_request {
	struct str method, target, authorization, body; /* authorization may be empty */
	const struct host *host;
	uint16_t port;
	const struct str (*headers)[2];
	size_t n_headers;
	bool once; /* sending it twice would do harm */
};

/* Start the request. Return 0, and f->done() is called later; or -ENOMEM. */
_warn_unused_ int fetch_start(struct fetch *f, struct broker *b, const struct fetch_request *m);
/* The policy was replaced: the request ends if it opens other addresses for it. */
void fetch_judge_again(struct fetch *f);
/* End the request and free what it holds. done() is not called, unless that call is queued
 * already. */
void fetch_done(struct fetch *f);
/* Called for its stream: take a piece of the answer (false: the stream is closed); the stream
 * closes. */
_warn_unused_ bool fetch_data(struct fetch *f, struct str bytes);
void fetch_closed(struct fetch *f);
