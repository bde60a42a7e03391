/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: AWS defines the canonical request, but clients differ: in whether they
 * normalise a path or encode it once more, in how they read a query that was not fully escaped, in
 * whether they sign the session token of a presigned URL. The room's signature can be verified, so
 * the form is not guessed: the possible forms are tried, most likely first, and the one that
 * verifies is signed again. For most requests all forms are the same text, which is tried once. */
#include "aws/request.h"

#include <errno.h>
#include <stdlib.h>

void aws_signed_done(struct aws_signed *s)
{
	buf_done_wiped(&s->value);
}

static bool is_s3(struct str service)
{
	static const struct str names[] = {
		STR("s3"), STR("s3-outposts"), STR("s3-object-lambda"), STR("s3express")};

	return str_is_one_of(service, names, ARRAY_SIZE(names));
}

/* "ALG \n time \n scope \n hash of the canonical request". */
static int request_string_to_sign(
	struct buf *out, const struct aws_auth *auth, const struct buf *canonical)
{
	char hash[AWS_HEX];

	aws_sha256_hex(buf_str(canonical), hash);
	return buf_printf(out, "%.*s\n%.*s\n%.*s\n%.*s",
		STR_FMT(aws_algorithm_name(auth->scope.algorithm)), STR_FMT(auth->time),
		STR_FMT(auth->scope.text), AWS_HEX, hash);
}

static int canonical_request(struct buf *out, struct str method, struct str path, struct str query,
	struct str headers, struct str payload)
{
	const struct str parts[] = {method, path, query, headers, payload};
	int r = 0;

	buf_clear(out);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
		if (i > 0)
			r = buf_add_char(out, '\n');
		if (r == 0)
			r = buf_add_str(out, parts[i]);
	}
	return r;
}

/* --- verification --- */

enum { PATHS = AWS_PATH_FORMS, QUERIES = 2 * AWS_QUERY_FORMS, HASHES = 3 };

/* One part of the request in several forms, without duplicate texts. */
struct variants {
	struct {
		int form;
		struct buf text;
	} v[QUERIES];
	size_t n;
};

struct trial {
	const struct aws_request *req;
	const struct aws_auth *auth;
	struct aws_signer *signer;
	struct variants paths, queries;
	struct buf headers, canonical, text;
	struct {
		enum aws_hash hash;
		struct str text;
	} payloads[HASHES];
	size_t payloads_n;
	bool needs_body;
};

static void variants_done(struct variants *v)
{
	for (size_t i = 0; i < v->n; i++)
		buf_done(&v->v[i].text);
}

static void trial_done(struct trial *t)
{
	variants_done(&t->paths);
	variants_done(&t->queries);
	buf_done(&t->headers);
	buf_done(&t->canonical);
	buf_done(&t->text);
}

/* Takes text. */
static void add_variant(struct variants *v, int form, struct buf *text)
{
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(buf_str(&v->v[i].text), buf_str(text))) {
			buf_done(text);
			return;
		}
	v->v[v->n].form = form;
	v->v[v->n++].text = *text;
}

static int add_paths(struct trial *t)
{
	static const enum aws_path_form s3[PATHS] = {AWS_PATH_WIRE, AWS_PATH_ONCE, AWS_PATH_AGAIN,
		AWS_PATH_NORMAL_WIRE, AWS_PATH_NORMAL};
	static const enum aws_path_form other[PATHS] = {AWS_PATH_NORMAL, AWS_PATH_AGAIN,
		AWS_PATH_WIRE, AWS_PATH_NORMAL_WIRE, AWS_PATH_ONCE};
	const enum aws_path_form *forms = is_s3(t->auth->scope.service) ? s3 : other;

	for (size_t i = 0; i < PATHS; i++) {
		struct buf text = BUF_INIT(AWS_CANONICAL_MAX);

		if (aws_canonical_path(&text, aws_path_of(t->req->target), forms[i]) < 0) {
			buf_done(&text);
			return -ENOMEM;
		}
		add_variant(&t->paths, (int)forms[i], &text);
	}
	return 0;
}

/* The number of a query's form is 2 * form + without_token. */
static int add_queries(struct trial *t)
{
	bool presigned = t->auth->place == AWS_IN_QUERY;

	for (int i = 0; i < QUERIES; i++) {
		struct aws_query_options o = {.form = (enum aws_query_form)(i / 2),
			.without_signature = presigned,
			.without_token = i % 2};
		struct buf text = BUF_INIT(AWS_CANONICAL_MAX);
		int r;

		if (o.without_token && !presigned)
			continue;
		r = aws_canonical_query(&text, aws_query_of(t->req->target), &o);
		if (r < 0) {
			buf_done(&text);
			return r;
		}
		add_variant(&t->queries, i, &text);
	}
	return 0;
}

static void add_payload(struct trial *t, enum aws_hash hash, struct str text)
{
	t->payloads[t->payloads_n].hash = hash;
	t->payloads[t->payloads_n++].text = text;
}

/* Adds the possible last lines of the canonical request. */
static void add_payloads(struct trial *t, struct str body_hash)
{
	if (t->auth->payload.p) {
		add_payload(t, AWS_HASH_STATED, t->auth->payload);
		return;
	}
	add_payload(t, AWS_HASH_UNSIGNED, STR("UNSIGNED-PAYLOAD"));
	if (t->auth->place == AWS_IN_QUERY)
		add_payload(t, AWS_HASH_EMPTY, STR(AWS_EMPTY_HASH));
	if (body_hash.p)
		add_payload(t, AWS_HASH_BODY, body_hash);
	t->needs_body = !body_hash.p;
}

/* Returns 1 if the signature verifies, 0 if not, or an error. */
static int try_one(struct trial *t, size_t path, size_t query, size_t payload)
{
	int r = canonical_request(&t->canonical, t->req->method, buf_str(&t->paths.v[path].text),
		buf_str(&t->queries.v[query].text), buf_str(&t->headers),
		t->payloads[payload].text);

	buf_clear(&t->text);
	if (r == 0)
		r = request_string_to_sign(&t->text, t->auth, &t->canonical);
	if (r < 0)
		return r;
	return aws_signer_check(t->signer, &t->auth->scope, buf_str(&t->text), t->auth->signature);
}

static int try_all(struct trial *t, struct aws_form *ret)
{
	for (size_t path = 0; path < t->paths.n; path++)
		for (size_t query = 0; query < t->queries.n; query++)
			for (size_t i = 0; i < t->payloads_n; i++) {
				int form = t->queries.v[query].form;
				int r = try_one(t, path, query, i);

				if (r < 0)
					return r;
				if (r == 0)
					continue;
				*ret = (struct aws_form){
					.path = (enum aws_path_form)t->paths.v[path].form,
					.query = (enum aws_query_form)(form / 2),
					.without_token = form % 2,
					.hash = t->payloads[i].hash};
				return 0;
			}
	return t->needs_body ? AWS_NEEDS_BODY : -EACCES;
}

/* Whether the tokens in the header and in the query, if there are any, are the room's. */
static bool token_fits(const struct aws_request *req, const struct aws_auth *auth, struct str token)
{
	struct str header;

	return aws_only_field(req, STR("x-amz-security-token"), &header) &&
	       (!header.p || str_eq(header, token)) &&
	       (!auth->token.p || str_eq(auth->token, token));
}

int aws_verify(const struct aws_request *req, const struct aws_auth *auth,
	struct aws_signer *surrogate, struct str body_hash, struct aws_form *ret,
	const char **ret_why)
{
	_cleanup_(trial_done) struct trial t = {.req = req,
		.auth = auth,
		.signer = surrogate,
		.headers = BUF_INIT(AWS_CANONICAL_MAX),
		.canonical = BUF_INIT(AWS_CANONICAL_MAX),
		.text = BUF_INIT(AWS_CANONICAL_MAX)};
	int r;

	*ret_why = "the session token is not that of the access key";
	if (!token_fits(req, auth, aws_signer_token(surrogate)))
		return -EACCES;
	*ret_why = "a header that was signed is missing, or does not reach the origin";
	r = aws_canonical_headers(&t.headers, req, auth->signed_headers);
	if (r == -ENOENT)
		return -EACCES;
	*ret_why = "the query has too many parameters";
	if (r == 0)
		r = add_paths(&t);
	if (r == 0)
		r = add_queries(&t);
	if (r < 0)
		return r == -E2BIG ? -EACCES : r;
	add_payloads(&t, body_hash);
	*ret_why = "the signature is not that of this request";
	return try_all(&t, ret);
}

/* --- signing --- */

static bool has_field(const struct aws_request *req, struct str name)
{
	for (size_t i = 0; i < req->n_fields; i++)
		if (str_ieq(req->fields[i].name, name))
			return true;
	return false;
}

/* Writes the list of signed headers of the outgoing request. */
static int header_list(struct buf *out, const struct aws_request *req, const struct aws_auth *auth)
{
	struct str rest = auth->signed_headers, name, v[AWS_SIGNED_HEADERS_MAX];
	size_t n = 0;
	int r = 0;

	if (!has_field(req, STR("host")))
		return -EINVAL;
	if (auth->place == AWS_IN_QUERY) /* the list is a part of the URL */
		return buf_add_str(out, auth->signed_headers);
	while (n < ARRAY_SIZE(v) && aws_next_name(&rest, &name)) {
		name = aws_field_name(name);
		if (has_field(req, name))
			v[n++] = name;
	}
	qsort(v, n, sizeof(*v), aws_compare_texts);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i > 0)
			r = buf_add_char(out, ';');
		if (r == 0)
			r = buf_add_str(out, v[i]);
	}
	return r;
}

/* Writes the value of X-Amz-Credential with another key id, the part before the first '/', plain or
 * encoded. */
static int swap_credential(struct buf *out, struct str value, struct str key_id)
{
	static const struct str slashes[] = {STR("/"), STR("%2F"), STR("%2f")};
	size_t at = value.n;
	int r = aws_encode(out, key_id, false);

	for (size_t i = 0; i < ARRAY_SIZE(slashes); i++)
		at = MIN(at, str_find(value, slashes[i]));
	return r < 0 ? r : buf_add_str(out, str_from_index(value, at));
}

static int swap_param(struct buf *out, struct str name, struct str value,
	const struct aws_signer *real, struct str signature)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(AWS_CANONICAL_MAX);

	if (aws_decode(&plain, name) < 0)
		return -ENOMEM;
	if (str_ieq(buf_str(&plain), STR("x-amz-credential")))
		return swap_credential(out, value, aws_signer_key_id(real));
	if (str_ieq(buf_str(&plain), STR("x-amz-security-token")))
		return aws_encode(out, aws_signer_token(real), false);
	if (str_ieq(buf_str(&plain), STR("x-amz-signature")) && signature.p)
		return buf_add_str(out, signature);
	return buf_add_str(out, value);
}

/* Writes the target with another credential, token and (if there is one) signature; all else stays
 * byte for byte. */
static int swap_target(
	struct buf *out, struct str target, const struct aws_signer *real, struct str signature)
{
	struct str query = aws_query_of(target), name, value;
	int r = buf_add_str(out, aws_path_of(target));
	char before = '?';

	while (r == 0 && aws_next_param(&query, &name, &value)) {
		bool equals = value.p > name.p + name.n;

		r = buf_add_char(out, before);
		before = '&';
		if (r == 0)
			r = buf_add_str(out, name);
		if (r == 0 && equals)
			r = buf_add_char(out, '=');
		if (r == 0 && equals)
			r = swap_param(out, name, value, real, signature);
	}
	return r;
}

static struct str payload_text(const struct aws_form *form, struct str payload)
{
	switch (form->hash) {
	case AWS_HASH_UNSIGNED:
		return STR("UNSIGNED-PAYLOAD");
	case AWS_HASH_EMPTY:
		return STR(AWS_EMPTY_HASH);
	case AWS_HASH_STATED:
	case AWS_HASH_BODY:
		break;
	}
	return payload;
}

struct signing {
	struct buf target, path, query, headers, list, canonical, text;
};

static void signing_done(struct signing *s)
{
	buf_done_wiped(&s->target);
	buf_done(&s->path);
	buf_done_wiped(&s->query);
	buf_done_wiped(&s->headers);
	buf_done(&s->list);
	buf_done_wiped(&s->canonical);
	buf_done(&s->text);
}

static int make_text(struct signing *s, const struct aws_request *req, const struct aws_auth *auth,
	const struct aws_form *form, const struct aws_signer *real, struct str payload)
{
	struct aws_query_options o = {.form = form->query,
		.without_signature = auth->place == AWS_IN_QUERY,
		.without_token = form->without_token};
	struct str target = req->target;
	int r = header_list(&s->list, req, auth);

	if (r == 0 && auth->place == AWS_IN_QUERY) {
		r = swap_target(&s->target, target, real, STR_NULL);
		target = buf_str(&s->target);
	}
	if (r == 0)
		r = aws_canonical_path(&s->path, aws_path_of(target), form->path);
	if (r == 0)
		r = aws_canonical_query(&s->query, aws_query_of(target), &o);
	if (r == 0)
		r = aws_canonical_headers(&s->headers, req, buf_str(&s->list));
	if (r == 0)
		r = canonical_request(&s->canonical, req->method, buf_str(&s->path),
			buf_str(&s->query), buf_str(&s->headers), payload_text(form, payload));
	return r < 0 ? r : request_string_to_sign(&s->text, auth, &s->canonical);
}

static int write_value(struct buf *out, const struct aws_request *req, const struct aws_auth *auth,
	const struct aws_signer *real, struct str list, struct str signature)
{
	if (auth->place == AWS_IN_QUERY)
		return swap_target(out, req->target, real, signature);
	return buf_printf(out, "%.*s Credential=%.*s/%.*s, SignedHeaders=%.*s, Signature=%.*s",
		STR_FMT(aws_algorithm_name(auth->scope.algorithm)),
		STR_FMT(aws_signer_key_id(real)), STR_FMT(auth->scope.text), STR_FMT(list),
		STR_FMT(signature));
}

int aws_sign(const struct aws_request *req, const struct aws_auth *auth,
	const struct aws_form *form, struct aws_signer *real, struct str payload,
	struct aws_signed *ret)
{
	const struct buf empty = BUF_INIT(AWS_CANONICAL_MAX);
	_cleanup_(signing_done) struct signing s = {.target = empty,
		.path = empty,
		.query = empty,
		.headers = empty,
		.list = empty,
		.canonical = empty,
		.text = empty};
	int r;

	*ret = (struct aws_signed){.value = empty};
	r = make_text(&s, req, auth, form, real, payload);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	ret->signature_n = aws_signer_sign(real, &auth->scope, buf_str(&s.text), ret->signature);
	if (ret->signature_n == 0)
		return -EINVAL;
	return write_value(&ret->value, req, auth, real, buf_str(&s.list),
		str_make(ret->signature, ret->signature_n));
}
