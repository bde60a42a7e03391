/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: parsing is strict, because a request that could be read in two ways must not
 * be signed: each part occurs once and in one place, and nothing is unknown. All values are copied,
 * those of a query decoded, into one buffer that is reserved beforehand, so that views of it stay
 * valid. */
#include "aws/auth.h"

#include <errno.h>

enum { AUTH_MAX = 512 * 1024 };

void aws_auth_done(struct aws_auth *a)
{
	buf_done(&a->text);
}

bool aws_auth_signs(const struct aws_auth *a, struct str name)
{
	struct str rest = a->signed_headers, one;

	while (aws_next_name(&rest, &one))
		if (str_eq(aws_field_name(one), name))
			return true;
	return false;
}

bool aws_only_field(const struct aws_request *req, struct str name, struct str *ret)
{
	bool found = false;

	*ret = STR_NULL;
	for (size_t i = 0; i < req->n_fields; i++) {
		if (!str_ieq(req->fields[i].name, name))
			continue;
		if (found)
			return false;
		*ret = str_trim(req->fields[i].value);
		found = true;
	}
	return true;
}

/* --- what is common --- */

static struct str text_from(struct buf *b, size_t from)
{
	return str_make(b->mem + from, b->tail - from);
}

/* Copies s to a->text, which has room. */
static struct str keep(struct aws_auth *a, struct str s)
{
	size_t from = a->text.tail;

	if (!s.p || buf_add_str(&a->text, s) < 0)
		return STR_NULL;
	return text_from(&a->text, from);
}

/* Copies the only field called name. */
static bool keep_field(
	struct aws_auth *a, const struct aws_request *req, struct str name, struct str *ret)
{
	struct str value;

	if (!aws_only_field(req, name, &value))
		return false;
	*ret = keep(a, value);
	return true;
}

static bool find_algorithm(struct str name, enum aws_algorithm *ret)
{
	for (enum aws_algorithm a = 0; a < AWS_ALGORITHMS; a++)
		if (str_eq(name, aws_algorithm_name(a))) {
			*ret = a;
			return true;
		}
	return false;
}

static bool take_credential(struct aws_auth *a, enum aws_algorithm algorithm, struct str credential)
{
	a->key_id = str_prefix(credential, str_chr(credential, '/'));
	return a->key_id.n > 0 && a->key_id.n < credential.n &&
	       str_is_all(a->key_id, STR_LOWER STR_UPPER STR_DIGITS "-_.") &&
	       aws_scope_parse(algorithm, str_from_index(credential, a->key_id.n + 1), &a->scope);
}

static bool is_name(struct str s)
{
	return str_eq(s, STR(":authority")) ||
	       (s.n > 0 && str_is_all(s, STR_LOWER STR_DIGITS "!#$%&'*+-.^_`|~"));
}

/* Whether the list contains host and no name twice. */
static bool is_header_list(struct str list)
{
	struct str rest = list, name, seen[AWS_SIGNED_HEADERS_MAX];
	bool host = false;
	size_t n = 0;

	while (aws_next_name(&rest, &name)) {
		if (!is_name(name) || n == ARRAY_SIZE(seen))
			return false;
		for (size_t i = 0; i < n; i++)
			if (str_eq(seen[i], aws_field_name(name)))
				return false;
		seen[n++] = aws_field_name(name);
		host |= str_eq(aws_field_name(name), STR("host"));
	}
	return host;
}

static bool is_signature(struct str s, enum aws_algorithm a)
{
	uint8_t bytes[AWS_SIGNATURE_MAX / 2];

	return (a == AWS_HMAC ? s.n == AWS_HEX : s.n > 0 && s.n <= AWS_SIGNATURE_MAX) &&
	       aws_unhex(s, bytes);
}

static bool is_digits(struct str s, size_t from, size_t n)
{
	return str_is_all(str_make(s.p + from, n), STR_DIGITS);
}

static bool is_time(struct str s)
{
	return s.n == 16 && is_digits(s, 0, 8) && s.p[8] == 'T' && is_digits(s, 9, 6) &&
	       s.p[15] == 'Z';
}

static enum aws_payload payload_kind(struct str s, enum aws_algorithm a)
{
	struct str start = STR("STREAMING-"), end = STR("-PAYLOAD"), name = aws_algorithm_name(a);
	uint8_t bytes[AWS_DIGEST];

	if (!s.p)
		return AWS_PAYLOAD_ABSENT;
	if (s.n == AWS_HEX && aws_unhex(s, bytes))
		return AWS_PAYLOAD_HASH;
	if (str_eq(s, STR("UNSIGNED-PAYLOAD")))
		return AWS_PAYLOAD_UNSIGNED;
	if (str_eq(s, STR("STREAMING-UNSIGNED-PAYLOAD-TRAILER")))
		return AWS_PAYLOAD_UNSIGNED_TRAILER;
	if (!str_starts(s, start))
		return AWS_PAYLOAD_UNKNOWN;
	s = str_from_index(s, start.n);
	if (!str_starts(s, name))
		return AWS_PAYLOAD_UNKNOWN;
	s = str_from_index(s, name.n);
	if (str_eq(s, end))
		return AWS_PAYLOAD_CHUNKS;
	return str_eq(s, STR("-PAYLOAD-TRAILER")) ? AWS_PAYLOAD_CHUNKS_TRAILER
						  : AWS_PAYLOAD_UNKNOWN;
}

/* The last checks; a->scope, signed_headers, signature, time, payload are set. */
static const char *complete(struct aws_auth *a, const struct aws_request *req)
{
	if (!is_header_list(a->signed_headers))
		return "the list of signed headers is malformed, or without host";
	if (!is_signature(a->signature, a->scope.algorithm))
		return "the signature is malformed";
	if (!is_time(a->time) || !str_eq(str_prefix(a->time, 8), a->scope.date))
		return "its time is malformed, or not of the day that its key is for";
	a->kind = payload_kind(a->payload, a->scope.algorithm);
	if (a->kind == AWS_PAYLOAD_UNKNOWN)
		return "x-amz-content-sha256 says something unknown";
	if (a->scope.algorithm == AWS_HMAC)
		a->region = a->scope.region;
	else if (a->place == AWS_IN_HEADER &&
		 !keep_field(a, req, STR("x-amz-region-set"), &a->region))
		return "there are two x-amz-region-set";
	return NULL;
}

bool aws_service_fits(struct str host, struct str service)
{
	static const struct {
		struct str label, service;
	} code[] = {{STR("execute-api"), STR("execute-api")}, {STR("appsync-api"), STR("appsync")},
		{STR("appsync-realtime-api"), STR("appsync")}, {STR("lambda-url"), STR("lambda")},
		{STR("vpc-lattice-svcs"), STR("vpc-lattice-svcs")}};

	while (host.n > 0) {
		struct str label = str_next(&host, '.');

		for (size_t i = 0; i < ARRAY_SIZE(code); i++)
			if (str_eq(label, code[i].label) && !str_eq(service, code[i].service))
				return false;
	}
	return true;
}

/* --- Authorization --- */

bool aws_is_scheme(struct str s)
{
	s = str_trim(s);
	return s.n > 3 && str_ieq(str_prefix(s, 3), STR("AWS")) &&
	       (s.p[3] == ' ' || s.p[3] == '\t' || (s.p[3] >= '0' && s.p[3] <= '9'));
}

static bool take_part(struct str *s, struct str *ret_name, struct str *ret_value)
{
	*s = str_trim(*s);
	if (s->n == 0)
		return false;
	*ret_value = str_trim(str_next(s, ','));
	*ret_name = str_next(ret_value, '=');
	return true;
}

static const char *auth_parse_header(struct aws_auth *a, struct str s)
{
	struct {
		struct str name, value;
	} parts[] = {{STR("Credential"), STR_NULL}, {STR("SignedHeaders"), STR_NULL},
		{STR("Signature"), STR_NULL}};
	struct str algorithm = str_prefix(s, str_chr(s, ' ')), name, value;
	enum aws_algorithm id;

	if (!find_algorithm(algorithm, &id))
		return "there is no space behind the algorithm";
	s = str_from_index(s, algorithm.n);
	while (take_part(&s, &name, &value)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(parts) && !str_eq(name, parts[i].name))
			i++;
		if (i == ARRAY_SIZE(parts) || parts[i].value.p || value.n == 0)
			return "a part of Authorization is unknown, empty or there twice";
		parts[i].value = value;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!parts[i].value.p)
			return "Authorization lacks a part";
	a->signed_headers = parts[1].value;
	a->signature = parts[2].value;
	return take_credential(a, id, parts[0].value) ? NULL : "the credential is malformed";
}

/* "Sun, 30 Aug 2015 12:36:00 GMT" (RFC 9110 5.6.7) as 20150830T123600Z. */
static int basic_time(struct buf *out, struct str s, struct str *ret)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	size_t from = out->tail, month;
	int r;

	if (is_time(s)) {
		r = buf_add_str(out, s);
		*ret = text_from(out, from);
		return r;
	}
	if (s.n != 29 || !is_digits(s, 5, 2) || !is_digits(s, 12, 4) || !is_digits(s, 17, 2) ||
		!is_digits(s, 20, 2) || !is_digits(s, 23, 2))
		return 0;
	month = str_find(str_from(months), str_make(s.p + 8, 3));
	if (month % 3 != 0 || month >= sizeof(months) - 1)
		return 0;
	r = buf_printf(out, "%.4s%02zu%.2sT%.2s%.2s%.2sZ", s.p + 12, month / 3 + 1, s.p + 5,
		s.p + 17, s.p + 20, s.p + 23);
	*ret = text_from(out, from);
	return r;
}

static const char *find_time(struct aws_auth *a, const struct aws_request *req)
{
	struct str date;

	if (!keep_field(a, req, STR("x-amz-date"), &a->time))
		return "there are two x-amz-date";
	if (a->time.p)
		return NULL;
	if (!aws_only_field(req, STR("date"), &date) || !date.p ||
		basic_time(&a->text, date, &a->time) < 0 || !a->time.p)
		return "there is no x-amz-date";
	return NULL;
}

static const char *find_header(struct aws_auth *a, const struct aws_request *req)
{
	const char *why = auth_parse_header(a, keep(a, str_trim(req->fields[a->field].value)));

	if (!why)
		why = find_time(a, req);
	return why;
}

/* --- the query --- */

enum param {
	ALGORITHM,
	CREDENTIAL,
	DATE,
	SIGNED_HEADERS,
	SIGNATURE,
	TOKEN,
	SHA256,
	REGIONS,
	VERSION_2,
	PARAMS
};

static const struct str param_names[PARAMS] = {
	[ALGORITHM] = {"X-Amz-Algorithm", 15},
	[CREDENTIAL] = {"X-Amz-Credential", 16},
	[DATE] = {"X-Amz-Date", 10},
	[SIGNED_HEADERS] = {"X-Amz-SignedHeaders", 19},
	[SIGNATURE] = {"X-Amz-Signature", 15},
	[TOKEN] = {"X-Amz-Security-Token", 20},
	[SHA256] = {"X-Amz-Content-Sha256", 20},
	[REGIONS] = {"X-Amz-Region-Set", 16},
	[VERSION_2] = {"AWSAccessKeyId", 14},
};

/* Decodes into a->text, which has room. */
static struct str decoded(struct aws_auth *a, struct str s)
{
	size_t from = a->text.tail;

	if (aws_decode(&a->text, s) < 0)
		return STR_NULL;
	return text_from(&a->text, from);
}

/* Names are compared without case: an origin that does the same must not see two where we see
 * one. */
static const char *collect(struct aws_auth *a, struct str query, struct str found[PARAMS])
{
	struct str name, value;

	while (aws_next_param(&query, &name, &value)) {
		name = decoded(a, name);
		for (enum param i = 0; i < PARAMS; i++) {
			if (!str_ieq(name, param_names[i]))
				continue;
			if (!str_eq(name, param_names[i]))
				return "a parameter of the presigned URL is spelled in another "
				       "case";
			if (found[i].p)
				return "a parameter of the presigned URL is there twice";
			found[i] = decoded(a, value);
		}
	}
	return NULL;
}

static const char *find_query(struct aws_auth *a, struct str query)
{
	struct str found[PARAMS] = {STR_NULL};
	enum aws_algorithm id;
	const char *why = collect(a, query, found);

	if (why)
		return why;
	if (found[VERSION_2].p)
		return "the presigned URL is of version 2, not 4 (s3v4)";
	if (!find_algorithm(found[ALGORITHM], &id))
		return "the presigned URL's algorithm is unknown";
	if (!take_credential(a, id, found[CREDENTIAL]))
		return "the presigned URL's credential is malformed";
	a->signed_headers = found[SIGNED_HEADERS];
	a->signature = found[SIGNATURE];
	a->time = found[DATE];
	a->token = found[TOKEN];
	a->region = found[REGIONS];
	if (found[SHA256].p)
		a->payload = found[SHA256];
	return NULL;
}

/* Whether text is the lower-case name, in any case and with any of its characters escaped. */
static bool is_spelled(struct str text, struct str name)
{
	char plain[64];
	struct buf out = {.mem = plain, .cap = sizeof(plain), .max = sizeof(plain)};

	/* A longer text cannot be the name; any other has room. */
	return text.n <= 3 * name.n && text.n <= sizeof(plain) && aws_decode(&out, text) == 0 &&
	       str_ieq(buf_str(&out), name);
}

bool aws_query_has_credential(struct str query)
{
	static const struct str names[] = {STR("x-amz-credential"), STR("x-amz-signature"),
		STR("x-amz-security-token"), STR("awsaccesskeyid")};
	struct str name, value;

	while (aws_next_param(&query, &name, &value))
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (is_spelled(name, names[i]))
				return true;
	return false;
}

/* --- both --- */

static bool is_known(struct str s)
{
	enum aws_algorithm id;
	size_t n = 0;

	while (n < s.n && s.p[n] != ' ' && s.p[n] != '\t')
		n++;
	return find_algorithm(str_prefix(s, n), &id);
}

/* Counts Authorization headers. *ret is the index of one that we can verify, or SIZE_MAX. */
static size_t find_authorization(const struct aws_request *req, size_t *ret)
{
	size_t n = 0;

	*ret = SIZE_MAX;
	for (size_t i = 0; i < req->n_fields; i++) {
		if (!str_ieq(req->fields[i].name, STR("authorization")))
			continue;
		n++;
		if (is_known(str_trim(req->fields[i].value)))
			*ret = i;
	}
	return n;
}

/* The most bytes that may be copied to a->text. */
static size_t size_of(const struct aws_request *req)
{
	size_t n = 64 + req->target.n;

	for (size_t i = 0; i < req->n_fields; i++)
		n += req->fields[i].value.n;
	return n;
}

static const char *find(const struct aws_request *req, struct aws_auth *a)
{
	const char *why;

	if (!keep_field(a, req, STR("x-amz-content-sha256"), &a->payload))
		return "there are two x-amz-content-sha256";
	why = a->place == AWS_IN_HEADER ? find_header(a, req)
					: find_query(a, aws_query_of(req->target));
	return why ? why : complete(a, req);
}

int aws_auth_find(const struct aws_request *req, struct aws_auth *ret, const char **ret_why)
{
	struct aws_auth a = {.text = BUF_INIT(AUTH_MAX)};
	bool in_query = aws_query_has_credential(aws_query_of(req->target));
	size_t n = find_authorization(req, &a.field);
	char *reserved;

	if (a.field == SIZE_MAX && !in_query)
		return 0;
	*ret_why = in_query ? "there is Authorization beside the presigned URL"
			    : "there are two Authorization headers";
	if (n + in_query > 1)
		return -EINVAL;
	a.place = in_query ? AWS_IN_QUERY : AWS_IN_HEADER;
	/* Reserve it all at once, so that views stay valid. */
	if (buf_reserve(&a.text, size_of(req), &reserved) < 0)
		return -ENOMEM;
	*ret_why = find(req, &a);
	if (*ret_why) {
		buf_done(&a.text);
		return -EINVAL;
	}
	*ret = a;
	return 1;
}
