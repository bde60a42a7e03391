/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-SECRET-SCOPE): the room signs its requests to AWS with surrogates. The
 * signature is verified first, on the request as it came, so that it cannot serve another request
 * than the one it was made for. If this needs the body's hash, the body is collected. Then the
 * session token gets its real value. When everything else in the head is final, the request is
 * signed with the real credentials, in the form that the room's client used. Chunks with signatures
 * of their own pass through a rewriter. A request that cannot be signed is refused: none goes to a
 * host in scope with the room's signature.
 *
 * Foreign credentials would let the room send data to somebody else's account, so they are removed.
 * A presigned URL is useless without them, so it is refused. */
#include "broker/aws.h"
#include "aws/chunks.h"
#include "aws/request.h"
#include "broker/broker_internal.h"
#include "broker/log.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "http/valid.h"
#include "ipc/netchan.h"
#include "secrets/secret_set.h"
#include "secrets/signing.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
	WHOLE_MAX = 64 * 1024 * 1024, /* of a body whose signed hash the request does not state */
	EXTRA_FIELDS = 4,             /* signed fields that the model keeps elsewhere */
	SKEW_MINUTES = 5,
};

struct aws_account {
	struct signing_credential credential;
	struct aws_signer *surrogate, *real;
};

struct aws_accounts {
	struct aws_account *v;
	size_t n;
};

/* A request to a host in the scope of some account. */
struct aws_stream {
	struct aws_account *account; /* whose surrogates signed it; NULL: none */
	struct aws_auth auth;
	struct aws_form form;
	bool verified;
	unsigned foreign;          /* credentials that were removed */
	struct aws_chunks *chunks; /* rewriter of a streamed body; NULL: no signed chunks */
	size_t held;               /* bytes that it holds, as they are accounted for */
};

static struct aws_stream *aws_of(const struct stream *s)
{
	return s->filter[CHAIN_AWS];
}

/* --- credentials --- */

void aws_teardown(struct broker *b)
{
	if (!b->aws)
		return;
	for (size_t i = 0; i < b->aws->n; i++) {
		aws_signer_free(b->aws->v[i].surrogate);
		aws_signer_free(b->aws->v[i].real);
	}
	free(b->aws->v);
	free(b->aws);
	b->aws = NULL;
}

static int aws_add_account(struct aws_accounts *a, const struct signing_credential *c)
{
	struct aws_account *v = reallocarray(a->v, a->n + 1, sizeof(*v));
	struct aws_account one = {.credential = *c};

	if (!v)
		return -ENOMEM;
	a->v = v;
	one.surrogate = aws_signer_new(c->key_id->surrogate, c->secret_key->surrogate,
		c->token ? c->token->surrogate : STR_NULL);
	one.real =
		aws_signer_new(secret_reveal(c->key_id->value), secret_reveal(c->secret_key->value),
			c->token ? secret_reveal(c->token->value) : STR_NULL);
	v[a->n++] = one;
	return one.surrogate && one.real ? 0 : -ENOMEM;
}

int aws_setup(struct broker *b, struct cloche_err *err)
{
	struct signing_credential c;
	size_t at = 0;

	while (secret_set_next_signing(b->secrets, &at, &c)) {
		if (!b->aws)
			b->aws = calloc(1, sizeof(*b->aws));
		if (!b->aws || aws_add_account(b->aws, &c) < 0)
			return err_nomem(err);
	}
	return 0;
}

static void aws_free(struct stream *s)
{
	struct aws_stream *a = aws_of(s);

	aws_chunks_free(a->chunks);
	if (a->account)
		aws_auth_done(&a->auth);
	free(a);
}

/* --- what was, or will be, signed --- */

struct view {
	struct aws_field fields[HTTP_FIELDS_MAX + EXTRA_FIELDS];
	struct aws_request req;
	char host[HTTP_HOST_MAX + 8], length[24];
};

static void aws_add_field(struct view *v, struct str name, struct str value)
{
	v->fields[v->req.n_fields++] = (struct aws_field){name, value};
}

/* View the request as it goes out. Its framing depends on the protocol and is left out, except for
 * a length that is written in any case. */
static void aws_view_outgoing(const struct stream *s, struct view *v)
{
	const struct http_head *h = &s->head;
	int n = snprintf(v->host, sizeof(v->host), h->port ? "%.*s:%u" : "%.*s",
		STR_FMT(http_head_host(h)), h->port);

	v->req = (struct aws_request){
		.method = http_head_method(h), .target = http_head_target(h), .fields = v->fields};
	for (unsigned i = 0; i < h->fields.n; i++)
		aws_add_field(v, http_fields_name(&h->fields, i), http_fields_value(&h->fields, i));
	aws_add_field(v, STR("host"), str_make(v->host, (size_t)n));
	if (!(h->flags & HTTP_HAS_LENGTH))
		return;
	n = snprintf(v->length, sizeof(v->length), "%llu", (unsigned long long)h->content_length);
	aws_add_field(v, STR("content-length"), str_make(v->length, (size_t)n));
}

/* Bytes after a WebSocket's handshake are not a body. */
static bool aws_has_body(const struct stream *s)
{
	return s->framing != NET_BODY_NONE && s->kind == NET_KIND_HTTP;
}

/* View the request as the room sent it, with the fields that the gateway took out. */
static void aws_view_room(const struct stream *s, struct view *v)
{
	aws_view_outgoing(s, v);
	if (s->head.body == HTTP_BODY_CHUNKED && aws_has_body(s))
		aws_add_field(v, STR("transfer-encoding"), STR("chunked"));
	else if (!(s->head.flags & HTTP_HAS_LENGTH))
		aws_add_field(v, STR("content-length"), STR("0"));
	if (s->expect.asked)
		aws_add_field(v, STR("expect"), STR("100-continue"));
}

/* --- verification --- */

static int aws_refuse(struct stream *s, const char *message, const char *detail)
{
	refuse_body(s, "aws_signature_refused", message, str_from(detail));
	return -1;
}

static int aws_refuse_memory(struct stream *s)
{
	refuse_upstream(s, 503, "out_of_memory", "no memory for an AWS signature");
	return -1;
}

static bool aws_covers(const struct stream *s, const struct aws_account *a)
{
	return masked_secret_covers(a->credential.key_id, &s->host);
}

/* Return whether the host is in the scope of an account, and whether all such accounts let foreign
 * credentials pass. */
static bool aws_in_scope(const struct stream *s, bool *ret_allow_foreign)
{
	const struct aws_accounts *a = s->broker->aws;
	bool found = false;

	*ret_allow_foreign = true;
	for (size_t i = 0; i < a->n; i++) {
		if (!aws_covers(s, &a->v[i]))
			continue;
		found = true;
		*ret_allow_foreign &= a->v[i].credential.key_id->spec.allow_foreign_credentials;
	}
	return found;
}

/* Accounts are used over verified TLS only. */
static struct aws_account *aws_find_account(const struct stream *s, struct str key_id)
{
	const struct aws_accounts *a = s->broker->aws;

	for (size_t i = 0; s->scheme == NET_HTTPS && i < a->n; i++)
		if (aws_covers(s, &a->v[i]) && str_eq(aws_signer_key_id(a->v[i].surrogate), key_id))
			return &a->v[i];
	return NULL;
}

/* Remove a foreign credential. Return 0, or -1 if the log cannot be written. */
static int aws_strip(struct stream *s, struct str name)
{
	if (http_fields_remove(&s->head.fields, name) == 0)
		return 0;
	aws_of(s)->foreign++;
	if (log_stripped(s, name) == 0)
		return 0;
	refuse_upstream(s, 502, "log_unavailable", "the network log cannot be written");
	return -1;
}

static bool aws_has_masked_secret(const struct stream *s)
{
	const struct secret_set *set = s->broker->secrets;

	for (size_t i = 0; i < secret_set_count(set); i++) {
		const struct masked_secret *m = secret_set_get(set, i);

		if (m->spec.role == SECRET_MASKED && masked_secret_covers(m, &s->host))
			return true;
	}
	return false;
}

static bool aws_has_authorization(const struct http_fields *f)
{
	for (int i = -1; (i = http_fields_find(f, STR("authorization"), (unsigned)i + 1)) >= 0;)
		if (aws_is_scheme(http_fields_value(f, (unsigned)i)))
			return true;
	return false;
}

/* Handle a request without a signature of this sandbox: it has a foreign one, another kind of
 * Authorization, or none. If there is a masked secret for the host, an Authorization that is not
 * for AWS is left to the filter of secrets (secrets.c). */
static int aws_judge_foreign(struct stream *s)
{
	if (aws_query_has_credential(aws_query_of(http_head_target(&s->head))))
		return aws_refuse(s,
			"The presigned URL is not signed with credentials of this sandbox.",
			"foreign credential");
	if ((aws_has_authorization(&s->head.fields) || !aws_has_masked_secret(s)) &&
		aws_strip(s, STR("authorization")) < 0)
		return -1;
	if (aws_strip(s, STR("x-amz-security-token")) < 0)
		return -1;
	return aws_strip(s, STR("x-amz-s3session-token"));
}

/* Only log it: the origin will refuse the request. */
static void aws_warn_of_skew(struct stream *s)
{
	static const char form[] = "%Y%m%dT%H%M%SZ";
	char text[256], theirs[32], ours[32];
	time_t now = time(NULL);
	struct tm tm = {0};
	long long minutes;
	int n;

	snprintf(theirs, sizeof(theirs), "%.*s", STR_FMT(aws_of(s)->auth.time));
	if (aws_of(s)->auth.place == AWS_IN_QUERY || !strptime(theirs, form, &tm))
		return;
	minutes = llabs((long long)now - timegm(&tm)) / 60;
	if (minutes <= SKEW_MINUTES)
		return;
	gmtime_r(&now, &tm);
	strftime(ours, sizeof(ours), form, &tm);
	n = snprintf(text, sizeof(text),
		"Container clock skew detected: x-amz-date=%s, proxy-time=%s (drift=%lldm). "
		"Upstream rejection likely.",
		theirs, ours, minutes);
	if (log_warning(s->broker, str_make(text, (size_t)n)) < 0)
		s->broker->lines.unlogged++;
}

/* Set the real session token. The Authorization field is removed until it is made again, so that no
 * other filter takes it for a secret in the wrong place. */
static int aws_verified(struct stream *s)
{
	struct http_fields *f = &s->head.fields;
	int i;

	aws_of(s)->verified = s->secret = true;
	aws_warn_of_skew(s);
	if (aws_of(s)->auth.place == AWS_IN_HEADER)
		http_fields_remove(f, STR("authorization"));
	i = http_fields_find(f, STR("x-amz-security-token"), 0);
	if (i >= 0 &&
		http_fields_set_at(f, (unsigned)i, aws_signer_token(aws_of(s)->account->real)) < 0)
		return aws_refuse_memory(s);
	return 0;
}

/* Return 0 if verified, 1 if the body is needed, -1 if refused. */
static int aws_check(struct stream *s, struct str body_hash)
{
	struct aws_stream *a = aws_of(s);
	const char *why;
	struct view v;
	int r;

	aws_view_room(s, &v);
	r = aws_verify(&v.req, &a->auth, a->account->surrogate, body_hash, &a->form, &why);
	if (r == -ENOMEM)
		return aws_refuse_memory(s);
	if (r < 0)
		return aws_refuse(s, "The request's AWS signature does not verify.", why);
	return r > 0 ? r : aws_verified(s);
}

static bool aws_is_chunked(const struct aws_auth *auth)
{
	return auth->kind == AWS_PAYLOAD_CHUNKS || auth->kind == AWS_PAYLOAD_CHUNKS_TRAILER;
}

/* Return why even a valid signature does not fit the request, or NULL. */
static const char *aws_why_unfit(const struct stream *s, const struct aws_auth *auth)
{
	if (aws_is_chunked(auth) && !aws_has_body(s))
		return "it is for chunks, and there is no body";
	if (!aws_service_fits(host_str(&s->host), auth->scope.service))
		return "it is for another service than that of the host";
	return NULL;
}

static int aws_begin(struct stream *s)
{
	const struct aws_stream *a = aws_of(s);
	const char *why = aws_why_unfit(s, &a->auth);

	if (why)
		return aws_refuse(s, "The request's AWS signature does not fit the request.", why);
	return aws_check(s, aws_has_body(s) ? STR_NULL : STR(AWS_EMPTY_HASH));
}

/* Find the signature of s, if any, and check it. Return as aws_check(). */
static int aws_open(struct stream *s, bool allow_foreign)
{
	struct aws_stream *a = aws_of(s);
	struct aws_auth auth;
	const char *why;
	struct view v;
	int r;

	aws_view_room(s, &v);
	r = aws_auth_find(&v.req, &auth, &why);
	if (r == -ENOMEM)
		return aws_refuse_memory(s);
	if (r < 0)
		return aws_refuse(s, "The request's AWS signature is malformed.", why);
	a->account = r > 0 ? aws_find_account(s, auth.key_id) : NULL;
	if (a->account) {
		a->auth = auth;
		return aws_begin(s);
	}
	if (r > 0)
		aws_auth_done(&auth);
	return allow_foreign ? 0 : aws_judge_foreign(s);
}

static int aws_judge_head(struct stream *s, size_t *whole)
{
	bool allow;
	int r;

	if (!s->broker->aws || !aws_in_scope(s, &allow))
		return 0;
	s->filter[CHAIN_AWS] = calloc(1, sizeof(struct aws_stream));
	r = aws_of(s) ? aws_open(s, allow) : aws_refuse_memory(s);
	if (r > 0)
		*whole = MIN(*whole, (size_t)WHOLE_MAX);
	return MIN(r, 0);
}

static struct str aws_body_hash(const struct stream *s, char hash[AWS_HEX])
{
	aws_sha256_hex(buf_str(&s->body), hash);
	return str_make(hash, AWS_HEX);
}

/* Called before any filter changes the body. */
static int aws_judge_body(struct stream *s)
{
	const struct aws_stream *a = aws_of(s);
	char hash[AWS_HEX];

	if (!a || !a->account || !s->whole)
		return 0;
	if (!a->verified)
		return MIN(aws_check(s, aws_body_hash(s, hash)), 0);
	/* The body will be signed again as the filters leave it. */
	if (a->auth.kind == AWS_PAYLOAD_HASH && !str_eq(a->auth.payload, aws_body_hash(s, hash)))
		return aws_refuse(s, "The request's body is not the one that was signed.",
			"x-amz-content-sha256 is not the body's hash");
	return 0;
}

/* --- chunks --- */

/* Bytes that the rewriter holds count as collected bodies. */
static int aws_account_for(struct stream *s, struct cloche_err *err)
{
	struct aws_stream *a = aws_of(s);
	size_t now = aws_chunks_held(a->chunks);

	s->broker->bounds.collected += now - a->held;
	s->collected += now - a->held;
	a->held = now;
	if (s->broker->bounds.collected > REQUEST_COLLECTED_MAX)
		return err_set(err, E_LIMIT, "too many large requests at once");
	return 0;
}

static int aws_request_data(struct stream *s, struct str bytes, struct cloche_err *err)
{
	struct aws_stream *a = aws_of(s);
	int r;

	if (!a->chunks)
		return chain_request_data(s, CHAIN_AWS + 1, bytes, err);
	r = aws_chunks_feed(a->chunks, bytes, &s->body, err);
	return r < 0 ? r : aws_account_for(s, err);
}

static int aws_request_end(struct stream *s, struct cloche_err *err)
{
	struct aws_stream *a = aws_of(s);

	return a->chunks ? aws_chunks_end(a->chunks, err)
			 : chain_request_end(s, CHAIN_AWS + 1, err);
}

/* Pass a collected body through the rewriter at once. */
static int aws_rewrite_whole(struct stream *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(s->body.max + AWS_CHUNK_MAX);
	struct aws_stream *a = aws_of(s);
	struct buf was = s->body;
	int r = aws_chunks_feed(a->chunks, buf_str(&s->body), &body, err);

	if (r == 0)
		r = aws_account_for(s, err);
	if (r == 0)
		r = aws_chunks_end(a->chunks, err);
	aws_chunks_free(a->chunks);
	a->chunks = NULL;
	if (r < 0)
		return r;
	s->body = body;
	body = was;
	http_head_set_body(&s->head, HTTP_BODY_LENGTH, buf_len(&s->body));
	return 0;
}

static int aws_start_chunks(struct stream *s, struct str seed, struct cloche_err *err)
{
	struct aws_stream *a = aws_of(s);
	struct str length = http_fields_get(&s->head.fields, STR("x-amz-decoded-content-length"));
	struct aws_chunks_config config = {.auth = &a->auth,
		.surrogate = a->account->surrogate,
		.real = a->account->real,
		.surrogate_seed = a->auth.signature,
		.real_seed = seed,
		.same_length = !s->whole && s->head.body == HTTP_BODY_LENGTH};

	config.has_decoded_length =
		length.p && http_parse_length(length, &config.decoded_length) == 0;
	a->chunks = aws_chunks_new(&config);
	if (!a->chunks)
		return err_nomem(err);
	if (s->whole)
		return aws_rewrite_whole(s, err);
	s->body.max = AWS_CHUNK_MAX + REQUEST_HIGH;
	return 0;
}

/* --- signing --- */

/* Set *ret to the value that stands for the body in the signature. A filter may have changed the
 * body. */
static int aws_payload(struct stream *s, char hash[AWS_HEX], struct str *ret)
{
	struct aws_stream *a = aws_of(s);
	bool stated = a->form.hash == AWS_HASH_STATED;
	bool hashed = stated ? a->auth.kind == AWS_PAYLOAD_HASH && s->whole
			     : a->form.hash == AWS_HASH_BODY;

	*ret = hashed ? aws_body_hash(s, hash) : a->auth.payload;
	if (!stated || str_eq(*ret, a->auth.payload))
		return 0;
	return http_fields_set(&s->head.fields, STR("x-amz-content-sha256"), *ret);
}

static int aws_put(struct stream *s, struct aws_signed *made)
{
	if (aws_of(s)->auth.place == AWS_IN_HEADER)
		return http_fields_set(
			&s->head.fields, STR("Authorization"), buf_str(&made->value));
	s->shown = str_dup(http_head_target(&s->head));
	return s->shown ? http_head_set_target(&s->head, buf_str(&made->value)) : -ENOMEM;
}

static int aws_make(struct stream *s, struct cloche_err *err)
{
	struct aws_stream *a = aws_of(s);
	_cleanup_(aws_signed_done) struct aws_signed made = {0};
	char hash[AWS_HEX];
	struct str text;
	struct view v;
	int r;

	/* Write a length that was signed even if there is no body. */
	if (s->head.body == HTTP_BODY_NONE && aws_auth_signs(&a->auth, STR("content-length")))
		http_head_set_body(&s->head, HTTP_BODY_LENGTH, 0);
	r = aws_payload(s, hash, &text);
	if (r == 0) {
		aws_view_outgoing(s, &v);
		r = aws_sign(&v.req, &a->auth, &a->form, a->account->real, text, &made);
	}
	if (r == 0)
		r = aws_put(s, &made);
	if (r < 0)
		return err_set(err, E_PROTOCOL, "the request cannot be signed for AWS");
	s->masked++;
	if (aws_is_chunked(&a->auth))
		r = aws_start_chunks(s, str_make(made.signature, made.signature_n), err);
	return r;
}

static int aws_sign_stream(struct stream *s)
{
	const struct aws_stream *a = aws_of(s);
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (!a)
		return 0;
	s->dropped += a->foreign;
	if (!a->account || (a->verified && aws_make(s, &err) == 0))
		return 0;
	refuse_upstream(s, 502, "aws_signing_failed",
		err.message[0] ? err.message : "the request cannot be signed for AWS");
	return -1;
}

static void aws_log(const struct stream *s, struct netlog_event *ev)
{
	const struct aws_stream *a = aws_of(s);

	if (a->account && ev->kind != NETLOG_WEBSOCKET)
		ev->region = a->auth.region;
}

const struct filter filter_aws = {
	.judge_head = aws_judge_head,
	.judge_body = aws_judge_body,
	.sign = aws_sign_stream,
	.request_data = aws_request_data,
	.request_end = aws_request_end,
	.log = aws_log,
	.free = aws_free,
};
