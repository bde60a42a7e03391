/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Filters process a request that policy allows, and its answer, on their way through the broker. A
 * filter is one file with a struct of operations, a place in the enum below and a row in the table
 * in chain.c. The rest of the broker calls only the chain. A filter keeps what it knows about a
 * stream in a state of its own, s->filter[place], which it makes when it has something to do for
 * that stream.
 *
 * Requests and answers both go through the table from the first row to the last. Filters from
 * CHAIN_COUNTED on keep the length of an answer: bytes that reach them count against the gateway's
 * window, so the window covers what they hold back. */

#include "base/buf.h"
#include "base/err.h"
#include "http/msg.h"
#include "netlog/netlog.h"

#include <stdbool.h>
#include <stddef.h>

struct stream;
struct verdict;

enum chain_place {
	CHAIN_WEBSOCKET, /* checks and rewrites the frames of a WebSocket: websocket.c */
	CHAIN_AWS,       /* verifies AWS signatures and signs again: aws.c */
	CHAIN_BODIES,    /* judges request bodies (graphql, tools): bodies.c */
	CHAIN_CODINGS,   /* removes the content codings of an answer: codings.c */
	CHAIN_SECRETS,   /* replaces surrogates by values: secrets.c */
	CHAIN_GITHUB,    /* tokens of GitHub Apps, and what they may reach: github.c */
	CHAIN_RENEW,     /* tokens of logins that are renewed: renew.c */
	CHAIN_SCRUB,     /* replaces values by surrogates: scrubbing.c */
	CHAIN_FILTERS,
	CHAIN_COUNTED = CHAIN_SCRUB,
};

/* A NULL operation has nothing to do. An "active" one is called only if the filter has a state for
 * s. Unless noted otherwise, an int is 0 if s goes on and -1 if it was refused; a bool is false if
 * the exchange is over. */
struct filter {
	/* --- the request --- */
	/* Judge the head as it came; no name is resolved yet. A filter that needs the whole body
	 * lowers *whole to the largest body that it reads; SIZE_MAX: no filter needs it. */
	int (*judge_head)(struct stream *s, size_t *whole);
	/* Active: refuse s, whose body is longer than *whole. */
	void (*judge_large)(struct stream *s);
	/* Judge the body. It is in s->body if s->whole is set; else no filter needed it. */
	int (*judge_body)(struct stream *s);
	/* Make the head as it goes out. Return 1 if s has to wait; request_prepare() then prepares
	 * it again, from the first filter on. */
	int (*prepare)(struct stream *s);
	/* Sign the request. Nothing changes the head or a collected body after this. */
	int (*sign)(struct stream *s);
	/* Active: take a piece, or the end, of a body that is not collected. Append the result to
	 * s->body, or pass it on with the function of the chain; at most one filter of a stream
	 * changes the body. Return 0, or negative with err set (unset: no memory), and s is broken
	 * off. */
	int (*request_data)(struct stream *s, struct str bytes, struct cloche_err *err);
	int (*request_end)(struct stream *s, struct cloche_err *err);

	/* --- the answer --- */
	bool (*response_head)(struct stream *s, struct http_head *h);
	/* Change the fields of a head, an interim head or trailers, as they will be sent. */
	void (*response_fields)(struct stream *s, struct http_fields *f);
	/* Active: take a piece, which may be changed in place, or the end of the body, and pass it
	 * on with the functions of the chain. */
	bool (*response_data)(struct stream *s, struct str bytes);
	bool (*response_end)(struct stream *s, struct http_fields *trailers);
	/* Active: return whether the filter keeps a part of the answer until the gateway takes it.
	 * Nothing more is read until response_resume() has passed it on. A filter with these
	 * operations may turn a few bytes into many, so it is given more than the gateway takes. */
	bool (*response_waits)(const struct stream *s);
	void (*response_resume)(struct stream *s);

	/* --- both --- */
	/* The policy was replaced by one that allows s too, with this verdict. Return whether what
	 * the filter has done, or has not done, is right by that as well. */
	bool (*stands)(const struct stream *s, const struct verdict *v);
	/* Active: add to a log line about s. */
	void (*log)(const struct stream *s, struct netlog_event *ev);
	/* Free the state of s, which is not NULL. */
	void (*free)(struct stream *s);
};

/* The filters, each in the file that the enum names. */
extern const struct filter filter_websocket, filter_aws, filter_bodies, filter_codings,
	filter_secrets, filter_github, filter_renew, filter_scrub;

/* Run the operation of that name of all filters, or of all active ones. */
_warn_unused_ int chain_judge_head(struct stream *s, size_t *ret_whole);
_warn_unused_ int chain_judge_body(struct stream *s);
_warn_unused_ int chain_prepare(struct stream *s);
_warn_unused_ int chain_sign(struct stream *s);
_warn_unused_ bool chain_response_head(struct stream *s, struct http_head *h);
void chain_response_fields(struct stream *s, struct http_fields *f);
void chain_log(const struct stream *s, struct netlog_event *ev);
/* Return whether stands() of each filter is true. */
bool chain_stands(const struct stream *s, const struct verdict *v);
void chain_free(struct stream *s);

/* Call judge_large() of the first active filter that has it. Return false if there is none. */
_warn_unused_ bool chain_judge_large(struct stream *s);
/* Return the filter that waits, or NULL; return whether there is one that could wait. */
const struct filter *chain_waiting(const struct stream *s);
bool chain_may_wait(const struct stream *s);

/* Run the filters from place `from` on. After the last one, request bytes go to s->body, and answer
 * bytes to the gateway. */
_warn_unused_ int chain_request_data(
	struct stream *s, unsigned from, struct str bytes, struct cloche_err *err);
_warn_unused_ int chain_request_end(struct stream *s, unsigned from, struct cloche_err *err);
_warn_unused_ bool chain_response_data(struct stream *s, unsigned from, struct str bytes);
_warn_unused_ bool chain_response_end(
	struct stream *s, unsigned from, struct http_fields *trailers);
