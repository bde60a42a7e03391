/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): a secret can be found only in plain content. So if
 * there are secrets, an answer's content coding is removed here, and the room gets the plain
 * content. No more is decoded than the gateway takes. What waits is at most one read, because
 * nothing more is read until it has been passed on. The end of an answer waits as well; by then the
 * connection may already serve other streams.
 *
 * An origin that could send a secret back is offered only codings that can be decoded here. It may
 * still use another one, or send a part of a coded whole (206). Such an answer is refused if the
 * request carried a secret, and otherwise passed on as it is.
 *
 * Some servers send files that are compressed (x.tar.gz) as content with a coding, whether it was
 * asked for or not. A client that has not asked keeps the coded bytes, compares them with a
 * checksum, or asks for the rest of them later. So they are passed on as they are, if no secret is
 * for that host. */
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/refuse.h"
#include "broker/response.h"
#include "broker/scrubbing.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/coding.h"
#include "secrets/secret_set.h"

#include <stdio.h>

enum { REST_MAX = 2 * SCRATCH };

struct codings {
	struct coding_decoder *decoder;
	struct buf rest; /* received bytes that wait */
	bool waits, ended;
	struct http_fields trailers;
};

static struct codings *codings_of(const struct stream *s)
{
	return s->filter[CHAIN_CODINGS];
}

static void codings_free(struct stream *s)
{
	struct codings *d = codings_of(s);

	coding_decoder_free(d->decoder);
	buf_done_wiped(&d->rest);
	http_fields_done(&d->trailers);
	free(d);
}

/* --- what is asked for --- */

static bool codings_is_covered(const struct stream *s)
{
	const struct secret_set *set = s->broker->secrets;

	for (size_t i = 0; i < secret_set_count(set); i++)
		if (masked_secret_covers(secret_set_get(set, i), &s->host))
			return true;
	return false;
}

static bool codings_is_in_scope(const struct stream *s)
{
	return s->scheme == NET_HTTPS && codings_is_covered(s);
}

/* An origin that could send a secret back is offered those codings that the room accepts and that
 * can be decoded here. If the room names none, the origin is offered none: what it codes all the
 * same is decoded. A part of coded content cannot be decoded, nor can messages that are compressed
 * one by one. */
static int codings_prepare(struct stream *s)
{
	static const struct str of_messages[] = {
		STR("Grpc-Accept-Encoding"), STR("Connect-Accept-Encoding")};
	struct http_fields *f = &s->head.fields;
	char accept[CODING_ACCEPT_MAX] = "identity";

	if (!codings_is_in_scope(s) || !s->verdict.rule->scrub)
		return 0;
	if (http_fields_find(f, STR("Range"), 0) < 0)
		coding_accept(f, accept);
	if (http_fields_find(f, STR("Accept-Encoding"), 0) >= 0 &&
		http_fields_set(f, STR("Accept-Encoding"), str_from(accept)) < 0) {
		refuse_upstream(s, 502, "request_not_sent", "too many header fields");
		return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(of_messages); i++)
		http_fields_remove(f, of_messages[i]);
	return 0;
}

/* --- what comes --- */

/* RFC 9110 8.8.1: a strong ETag names the coded bytes, which are not what is sent on. */
static int codings_weaken_etag(struct http_fields *f)
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

/* Make the head describe the plain content: remove what describes the coded bytes. */
static int codings_describe_plain(struct http_head *h)
{
	static const struct str coded[] = {STR("Content-Encoding"), STR("Content-Length"),
		STR("Accept-Ranges"), STR("Content-MD5"), STR("Digest"), STR("Content-Digest"),
		STR("Repr-Digest")};

	for (size_t i = 0; i < ARRAY_SIZE(coded); i++)
		http_fields_remove(&h->fields, coded[i]);
	h->flags &= ~(unsigned)HTTP_HAS_LENGTH;
	h->content_length = 0;
	h->body = HTTP_BODY_CHUNKED;
	return codings_weaken_etag(&h->fields);
}

static bool codings_refuse(struct stream *s, const char *what)
{
	char message[NOTE_MAX];

	snprintf(message, sizeof(message),
		"%s answered a request with a secret %s, so the secret could not be looked for in "
		"it",
		s->host.text, what);
	refuse_upstream(s, 502, "upstream_encoded", message);
	return false;
}

/* Return whether messages are compressed one by one, within a body that is not coded as a whole:
 * gRPC and Connect. */
static bool codings_in_messages(const struct http_fields *f)
{
	static const struct str names[] = {STR("Grpc-Encoding"), STR("Connect-Content-Encoding")};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int k = -1; (k = http_fields_find(f, names[i], (unsigned)k + 1)) >= 0;)
			if (!str_ieq(str_trim(http_fields_value(f, (unsigned)k)), STR("identity")))
				return true;
	return false;
}

static bool codings_response_head(struct stream *s, struct http_head *h)
{
	struct coding_list list;
	struct codings *d;
	int r;

	if (!scrubbing_applies(s) || h->body == HTTP_BODY_NONE)
		return true;
	r = coding_list_read(&h->fields, &list);
	if (s->masked > 0 && codings_in_messages(&h->fields))
		return codings_refuse(s, "with messages that are compressed one by one");
	if (r == 0 && list.n == 0)
		return true;
	if (r < 0)
		return s->masked == 0 || codings_refuse(s, "in a coding that is not known here");
	if (!codings_is_covered(s) && !coding_list_is_asked(&list, &s->head.fields))
		return true;
	if (h->status == 206)
		return s->masked == 0 || codings_refuse(s, "with a part of a compressed whole");
	d = calloc(1, sizeof(*d));
	s->filter[CHAIN_CODINGS] = d;
	if (d) {
		d->rest = BUF_INIT(REST_MAX);
		d->trailers = HTTP_FIELDS_INIT;
	}
	if (!d || coding_decoder_new(&list, &s->broker->coding, &d->decoder) < 0 ||
		codings_describe_plain(h) < 0) {
		refuse_upstream(s, 503, "out_of_memory", "no memory to decompress the answer");
		return false;
	}
	return true;
}

/* Return 1 if all of it was passed on, 0 if some may wait, -1 if the exchange is over. */
static int codings_decode(struct stream *s, struct str *in, bool last)
{
	struct broker *b = s->broker;
	char why[NOTE_MAX / 2];

	for (;;) {
		size_t room = response_takes(s), n = 0;

		if (room == 0)
			return 0;
		switch (coding_read(codings_of(s)->decoder, in, last, b->plain,
			MIN(room, sizeof(b->plain)), &n)) {
		case CODING_MORE:
		case CODING_DONE:
			return 1;
		case CODING_DATA:
			if (!chain_response_data(s, CHAIN_CODINGS + 1, str_make(b->plain, n)))
				return -1;
			break;
		case CODING_BAD:
			snprintf(why, sizeof(why), "its content coding: %s",
				coding_error(codings_of(s)->decoder));
			response_malformed(s, why);
			return -1;
		}
	}
}

/* Nothing more is read until this is passed on (response_room()). */
static bool codings_keep(struct stream *s, struct str in)
{
	codings_of(s)->waits = true;
	if (buf_add_str(&codings_of(s)->rest, in) == 0)
		return true;
	refuse_upstream(s, 503, "out_of_memory", "no memory for the answer");
	return false;
}

static bool codings_response_data(struct stream *s, struct str in)
{
	int r = codings_of(s)->waits ? 0 : codings_decode(s, &in, false);

	return r == 0 ? codings_keep(s, in) : r > 0;
}

static bool codings_response_end(struct stream *s, struct http_fields *trailers)
{
	struct codings *d = codings_of(s);
	struct str none = STR_NULL;
	int r = d->waits ? 0 : codings_decode(s, &none, true);

	if (r != 0)
		return r > 0 && chain_response_end(s, CHAIN_CODINGS + 1, trailers);
	d->waits = d->ended = true;
	if (http_fields_copy(&d->trailers, trailers) == 0)
		return true;
	refuse_upstream(s, 503, "out_of_memory", "no memory for the answer's trailers");
	return false;
}

static bool codings_response_waits(const struct stream *s)
{
	return codings_of(s)->waits;
}

static void codings_response_resume(struct stream *s)
{
	struct codings *d = codings_of(s);
	struct str rest = buf_str(&d->rest);
	int r = codings_decode(s, &rest, d->ended);

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
	else if (chain_response_end(s, CHAIN_CODINGS + 1, &d->trailers))
		stream_finish(s);
}

const struct filter filter_codings = {
	.prepare = codings_prepare,
	.response_head = codings_response_head,
	.response_data = codings_response_data,
	.response_end = codings_response_end,
	.response_waits = codings_response_waits,
	.response_resume = codings_response_resume,
	.free = codings_free,
};
