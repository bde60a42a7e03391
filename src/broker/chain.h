/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Filters: what is done to a request that policy allows, and to its answer, on their way through
 * the broker. A filter is one file with a struct of operations, a place in the enum below and a row
 * of the table in chain.c; the rest of the broker calls the chain. What a filter knows of one
 * stream is in a state of its own, s->filter[place], which it makes when it has something to do
 * with that stream.
 *
 * Both ways go through the table from its first row to its last. Filters from CHAIN_COUNTED on keep
 * the length of an answer: what reaches them counts against the gateway's window, so what they hold
 * back is covered by it. */

#include "base/buf.h"
#include "base/err.h"
#include "http/msg.h"
#include "netlog/netlog.h"

#include <stdbool.h>
#include <stddef.h>

struct stream;

enum chain_place {
	CHAIN_WEBSOCKET, /* frames of a WebSocket, judged and written anew: websocket.c */
	CHAIN_AWS,       /* signatures of AWS, verified and made anew: aws.c */
	CHAIN_BODIES,    /* what request bodies say, graphql and tools: bodies.c */
	CHAIN_CODINGS,   /* content codings of the answer, taken off: codings.c */
	CHAIN_SECRETS,   /* surrogates become values: secrets.c */
	CHAIN_GITHUB,    /* tokens of GitHub Apps, and what they reach: github.c */
	CHAIN_SCRUB,     /* values become surrogates: scrubbing.c */
	CHAIN_FILTERS,
	CHAIN_COUNTED = CHAIN_SCRUB,
};

/* NULL: nothing to do. "Active": asked only if it has a state for s. The ints: 0, s goes on; -1, it
 * was refused. The bools: false, the exchange is over. */
struct filter {
	/* --- the request --- */
	/* The head, as it came; no name is resolved yet. A filter that has to know the whole body
	 * lowers *whole to what it reads at most; SIZE_MAX: nobody has to. */
	int (*judge_head)(struct stream *s, size_t *whole);
	/* Active: the body is longer than that. Refuses s. */
	void (*judge_large)(struct stream *s);
	/* The body: collected in s->body (s->whole), or nobody had to know it. */
	int (*judge_body)(struct stream *s);
	/* The head as it goes out. 1: s waits, and is prepared again, from the first filter on, by
	 * request_prepare(). */
	int (*prepare)(struct stream *s);
	/* Nothing changes the head, or a collected body, after this. */
	int (*sign)(struct stream *s);
	/* Active: a piece, and the end, of a body that is not collected. Appends to s->body what
	 * becomes of it, or passes it on with the function of the chain; at most one filter of a
	 * stream changes it. 0, or negative, with err set or without memory: s is broken off. */
	int (*request_data)(struct stream *s, struct str bytes, struct cloche_err *err);
	int (*request_end)(struct stream *s, struct cloche_err *err);

	/* --- the answer --- */
	bool (*response_head)(struct stream *s, struct http_head *h);
	/* Fields of a head, of an interim one, or trailers, as they will be sent. */
	void (*response_fields)(struct stream *s, struct http_fields *f);
	/* Active: a piece, which may be changed in place, and the end of the body. Passes on with
	 * the functions of the chain. */
	bool (*response_data)(struct stream *s, struct str bytes);
	bool (*response_end)(struct stream *s, struct http_fields *trailers);
	/* Active: whether it waits for the gateway with something of the answer; nothing more is
	 * read until response_resume() has passed it on. One that has these makes any amount of
	 * little, and is given whatever comes. */
	bool (*response_waits)(const struct stream *s);
	void (*response_resume)(struct stream *s);

	/* --- both --- */
	/* Active: adds to a line about s. */
	void (*log)(const struct stream *s, struct netlog_event *ev);
	/* Frees the state of s, which is no NULL. */
	void (*free)(struct stream *s);
};

/* Each runs the operation of that name of all filters, or of all active ones. */
_warn_unused_ int chain_judge_head(struct stream *s, size_t *ret_whole);
_warn_unused_ int chain_judge_body(struct stream *s);
_warn_unused_ int chain_prepare(struct stream *s);
_warn_unused_ int chain_sign(struct stream *s);
_warn_unused_ bool chain_response_head(struct stream *s, struct http_head *h);
void chain_response_fields(struct stream *s, struct http_fields *f);
void chain_log(const struct stream *s, struct netlog_event *ev);
void chain_free(struct stream *s);

/* The first active filter that has it. False: there is none. */
_warn_unused_ bool chain_judge_large(struct stream *s);
/* The filter that waits, NULL: none does; whether there is one that could. */
const struct filter *chain_waiting(const struct stream *s);
bool chain_may_wait(const struct stream *s);

/* From the filter at this place on; behind the last one are the stream's body, and the gateway. */
_warn_unused_ int chain_request_data(
	struct stream *s, unsigned from, struct str bytes, struct cloche_err *err);
_warn_unused_ int chain_request_end(struct stream *s, unsigned from, struct cloche_err *err);
_warn_unused_ bool chain_response_data(struct stream *s, unsigned from, struct str bytes);
_warn_unused_ bool chain_response_end(
	struct stream *s, unsigned from, struct http_fields *trailers);
