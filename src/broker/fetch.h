/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Requests of the broker's own. */

#include "base/buf.h"
#include "broker/constants.h"
#include "loop/loop.h"
#include "policy/host.h"

struct broker;
struct stream;

/* A request of the broker's own over verified TLS, and its answer. At first zeroed but for done. */
struct fetch {
	void (*done)(struct fetch *f); /* what came of it; may start the next one */
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
	struct str method, target, authorization, body;
	const struct host *host;
	uint16_t port;
	const struct str (*headers)[2];
	size_t n_headers;
};

/* Starts it. 0, and f->done() is called later; or -ENOMEM. */
_warn_unused_ int fetch_start(struct fetch *f, struct broker *b, const struct fetch_request *m);
/* Ends it (done() is not called, but for one that is queued already) and frees what it holds. */
void fetch_done(struct fetch *f);
/* For the way of its stream: a piece of the answer; its stream closes. */
_warn_unused_ bool fetch_data(struct fetch *f, struct str bytes);
void fetch_closed(struct fetch *f);
