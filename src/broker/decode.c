/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): a secret can be looked for only in what is not
 * compressed, so where there are secrets an answer's content coding ends here, and the room gets
 * the plain content. It is decoded no further than the gateway takes it: what came and waits is at
 * most what is read at once, since nothing more is read until it is gone; and the end of an answer
 * waits with it, when its connection serves others already.
 *
 * What cannot be decoded is refused where the request carried a secret, and else passed on as it
 * is: a coding that nobody asked for (decide.c), and a part of a coded whole (206). */
#include "broker/decode.h"
#include "broker/broker_internal.h"
#include "broker/refuse.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/coding.h"
#include "ipc/chan.h"

#include <errno.h>
#include <stdio.h>

enum { REST_MAX = 2 * SCRATCH };

struct decoding {
	struct coding_decoder *decoder;
	struct buf rest; /* came, and waits */
	bool waits, ended;
	struct http_fields trailers;
};

void decoding_free(struct decoding *d)
{
	if (!d)
		return;
	coding_decoder_free(d->decoder);
	buf_done_wiped(&d->rest);
	http_fields_done(&d->trailers);
	free(d);
}

/* RFC 9110 8.8.1: what is sent on is not byte for byte what this names. */
static int weaken_etag(struct http_fields *f)
{
	char weak[2 + 1024] = "W/";
	int i = http_fields_find(f, STR("ETag"), 0);
	struct str tag = i < 0 ? STR_NULL : http_fields_value(f, (unsigned)i);

	if (i < 0 || str_starts(tag, STR("W/")))
		return 0;
	if (tag.n > sizeof(weak) - 2) {
		http_fields_remove(f, STR("ETag"));
		return 0;
	}
	memcpy(weak + 2, tag.p, tag.n);
	return http_fields_set(f, STR("ETag"), str_make(weak, tag.n + 2));
}

/* The head of the plain content: without what describes the coded bytes. */
static int describe_plain(struct http_head *h)
{
	static const struct str coded[] = {STR("Content-Encoding"), STR("Content-Length"),
		STR("Accept-Ranges"), STR("Content-MD5"), STR("Digest"), STR("Content-Digest"),
		STR("Repr-Digest")};

	for (size_t i = 0; i < ARRAY_SIZE(coded); i++)
		http_fields_remove(&h->fields, coded[i]);
	h->flags &= ~(unsigned)HTTP_HAS_LENGTH;
	h->content_length = 0;
	h->body = HTTP_BODY_CHUNKED;
	return weaken_etag(&h->fields);
}

static bool refuse(struct stream *s, const char *what)
{
	char message[NOTE_MAX];

	snprintf(message, sizeof(message),
		"%s answered a request with a secret %s, so the secret could not be looked for in "
		"it",
		s->host.text, what);
	refuse_upstream(s, 502, "upstream_encoded", message);
	return false;
}

/* One by one, within a body that is not coded as a whole: gRPC and Connect. */
static bool has_coded_messages(const struct http_fields *f)
{
	static const struct str names[] = {STR("Grpc-Encoding"), STR("Connect-Content-Encoding")};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int k = -1; (k = http_fields_find(f, names[i], (unsigned)k + 1)) >= 0;)
			if (!str_ieq(str_trim(http_fields_value(f, (unsigned)k)), STR("identity")))
				return true;
	return false;
}

bool decoding_begin(struct stream *s, struct http_head *h)
{
	struct coding_list list;
	int r = coding_list_read(&h->fields, &list);
	struct decoding *d;

	if (h->body == HTTP_BODY_NONE)
		return true;
	if (s->masked > 0 && has_coded_messages(&h->fields))
		return refuse(s, "with messages that are compressed one by one");
	if (r == 0 && list.n == 0)
		return true;
	if (r < 0)
		return s->masked == 0 || refuse(s, "in a coding that is not known here");
	if (h->status == 206)
		return s->masked == 0 || refuse(s, "with a part of a compressed whole");
	d = calloc(1, sizeof(*d));
	s->decoding = d;
	if (d) {
		d->rest = BUF_INIT(REST_MAX);
		d->trailers = HTTP_FIELDS_INIT;
	}
	if (!d || coding_decoder_new(&list, &s->broker->coding, &d->decoder) < 0 ||
		describe_plain(h) < 0) {
		refuse_upstream(s, 503, "out_of_memory", "no memory to decompress the answer");
		return false;
	}
	return true;
}

/* 1: all that came is through; 0: some may wait; -1: the exchange is over. */
static int decode(struct stream *s, struct str *in, bool last)
{
	struct broker *b = s->broker;
	char why[NOTE_MAX / 2];

	for (;;) {
		size_t room = response_takes(s), n = 0;

		if (room == 0)
			return 0;
		switch (coding_read(s->decoding->decoder, in, last, b->plain,
			MIN(room, sizeof(b->plain)), &n)) {
		case CODING_MORE:
		case CODING_DONE:
			return 1;
		case CODING_DATA:
			if (!response_pass(s, str_make(b->plain, n)))
				return -1;
			break;
		case CODING_BAD:
			snprintf(why, sizeof(why), "its content coding: %s",
				coding_error(s->decoding->decoder));
			response_malformed(s, why);
			return -1;
		}
	}
}

/* Nothing more is read until it is through (response_room()). */
static bool keep(struct stream *s, struct str in)
{
	s->decoding->waits = true;
	if (buf_add_str(&s->decoding->rest, in) == 0)
		return true;
	refuse_upstream(s, 503, "out_of_memory", "no memory for the answer");
	return false;
}

bool decoding_data(struct stream *s, struct str in)
{
	int r = s->decoding->waits ? 0 : decode(s, &in, false);

	return r == 0 ? keep(s, in) : r > 0;
}

bool decoding_end(struct stream *s, struct http_fields *trailers)
{
	struct decoding *d = s->decoding;
	struct str none = STR_NULL;
	int r = d->waits ? 0 : decode(s, &none, true);

	if (r != 0)
		return r > 0 && response_close(s, trailers);
	d->waits = d->ended = true;
	if (http_fields_copy(&d->trailers, trailers) == 0)
		return true;
	refuse_upstream(s, 503, "out_of_memory", "no memory for the answer's trailers");
	return false;
}

bool decoding_waits(const struct stream *s)
{
	return s->decoding && s->decoding->waits;
}

void response_resume(struct stream *s)
{
	struct decoding *d = s->decoding;
	struct str rest;
	int r;

	if (!decoding_waits(s)) {
		upstream_resume(s);
		return;
	}
	rest = buf_str(&d->rest);
	r = decode(s, &rest, d->ended);
	if (r < 0)
		return;
	buf_consume(&d->rest, buf_len(&d->rest) - rest.n);
	if (r == 0)
		return;
	d->waits = false;
	buf_done_wiped(&d->rest);
	d->rest = BUF_INIT(REST_MAX);
	if (!d->ended)
		upstream_resume(s);
	else if (response_close(s, &d->trailers))
		stream_finish(s);
}
