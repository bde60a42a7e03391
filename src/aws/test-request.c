/* SPDX-License-Identifier: Apache-2.0 */
#include "aws/request.h"

#include "tap.h"
#include <errno.h>

#define TIME "20260131T120000Z"
#define SCOPE "20260131/eu-1/s3/aws4_request"
#define SERVICE "20260131/eu-1/service/aws4_request"
#define SIG "0000000000000000000000000000000000000000000000000000000000000000"
#define AUTH(scope, names)                                                                         \
	"AWS4-HMAC-SHA256 Credential=AKIAROOM/" scope ", SignedHeaders=" names ", Signature=" SIG

enum { FIELDS = 16 };

struct request {
	struct aws_field fields[FIELDS];
	struct aws_request req;
};

/* lines: name:value, ended by NULL. */
static void make(struct request *r, const char *target, const char *const *lines)
{
	r->req = (struct aws_request){
		.method = STR("GET"), .target = str_from(target), .fields = r->fields};
	for (; *lines; lines++) {
		struct str line = str_from(*lines);
		size_t colon = str_chr(line, ':');

		r->fields[r->req.n_fields++] = (struct aws_field){
			str_prefix(line, colon), str_from_index(line, colon + 1)};
	}
}

#define MAKE(r, target, ...) make(r, target, (const char *const[]){__VA_ARGS__, NULL})

static void test_canonical_paths(void)
{
	static const struct {
		const char *path, *want[AWS_PATH_FORMS];
	} cases[] = {
		{"/", {"/", "/", "/", "/", "/"}},
		{"", {"/", "/", "/", "/", "/"}},
		{"/a/b", {"/a/b", "/a/b", "/a/b", "/a/b", "/a/b"}},
		{"/a%2Fb", {"/a%252Fb", "/a%252Fb", "/a%2Fb", "/a/b", "/a%2Fb"}},
		{"//a//", {"/a/", "//a//", "//a//", "//a//", "/a/"}},
		{"/a/../b/.", {"/b", "/a/../b/.", "/a/../b/.", "/a/../b/.", "/b"}},
		{"/..", {"/", "/..", "/..", "/..", "/"}},
		{"/../../a/..", {"/", "/../../a/..", "/../../a/..", "/../../a/..", "/"}},
		{"/a/b/../", {"/a/", "/a/b/../", "/a/b/../", "/a/b/../", "/a/"}},
		{"/a b", {"/a%20b", "/a%20b", "/a b", "/a%20b", "/a b"}},
		{"/\xe1\x88\xb4", {"/%E1%88%B4", "/%E1%88%B4", "/\xe1\x88\xb4", "/%E1%88%B4",
					  "/\xe1\x88\xb4"}},
		{"/%7e(x)%", {"/%257e%28x%29%25", "/%257e%28x%29%25", "/%7e(x)%", "/~%28x%29%25",
				     "/%7e(x)%"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (enum aws_path_form f = 0; f < AWS_PATH_FORMS; f++) {
			_cleanup_(buf_donep) struct buf out = BUF_INIT(AWS_CANONICAL_MAX);

			check_int(aws_canonical_path(&out, str_from(cases[i].path), f), 0);
			if (!str_eq(buf_str(&out), str_from(cases[i].want[f])))
				tap_fail("%s as %d: %.*s", cases[i].path, (int)f,
					STR_FMT(buf_str(&out)));
		}
}

static void test_canonical_queries(void)
{
	static const struct {
		const char *query, *want[AWS_QUERY_FORMS];
	} cases[] = {
		{"", {"", "", ""}},
		{"b=2&a=1", {"a=1&b=2", "a=1&b=2", "a=1&b=2"}},
		{"a=2&a=1&a", {"a=&a=1&a=2", "a=&a=1&a=2", "a=&a=1&a=2"}},
		{"a-b=1&a=2", {"a=2&a-b=1", "a=2&a-b=1", "a=2&a-b=1"}},
		{"x=a+b%20c", {"x=a%2Bb%20c", "x=a+b%20c", "x=a%20b%20c"}},
		{"x=%2f%7E", {"x=%2F~", "x=%2f%7E", "x=%2F~"}},
		{"&&=v&x", {"=v&x=", "=&=&=v&x=", "=v&x="}},
		{"b=a=b", {"b=a%3Db", "b=a=b", "b=a%3Db"}},
	};
	struct aws_query_options o = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (o.form = 0; o.form < AWS_QUERY_FORMS; o.form++) {
			_cleanup_(buf_donep) struct buf out = BUF_INIT(AWS_CANONICAL_MAX);

			check_int(aws_canonical_query(&out, str_from(cases[i].query), &o), 0);
			if (!str_eq(buf_str(&out), str_from(cases[i].want[o.form])))
				tap_fail("%s as %d: %.*s", cases[i].query, (int)o.form,
					STR_FMT(buf_str(&out)));
		}
}

static void test_too_many_parameters(void)
{
	_cleanup_(buf_donep) struct buf query = BUF_INIT(8192), out = BUF_INIT(8192);
	const struct aws_query_options o = {0};

	for (int i = 0; i < AWS_PARAMS_MAX; i++)
		must(buf_add_str(&query, STR("&")) == 0);
	check_int(aws_canonical_query(&out, buf_str(&query), &o), -E2BIG);
}

static void test_found(void)
{
	struct request r;
	struct aws_auth a;
	const char *why;

	MAKE(&r, "/?a=b", "host:h", "Authorization:  " AUTH(SERVICE, "host;x-amz-date") " ",
		"X-Amz-Date:" TIME, "x-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
	must(aws_auth_find(&r.req, &a, &why) == 1);
	check(a.place == AWS_IN_HEADER && a.kind == AWS_PAYLOAD_CHUNKS && a.field == 1);
	check_str(a.key_id, "AKIAROOM");
	check_str(a.scope.service, "service");
	check_str(a.region, "eu-1");
	check_str(a.time, TIME);
	check(aws_auth_signs(&a, STR("host")) && !aws_auth_signs(&a, STR("amz-date")));
	aws_auth_done(&a);
	MAKE(&r, "/", "host:h", "date:Sat, 31 Jan 2026 12:00:00 GMT",
		"authorization:AWS4-HMAC-SHA256\tSignature=" SIG ",Credential=AKIAROOM/" SCOPE
		",SignedHeaders=date;host");
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL); /* a tab is not a space */
	MAKE(&r, "/", "host:h", "date:Sat, 31 Jan 2026 12:00:00 GMT",
		"authorization:AWS4-HMAC-SHA256 Signature=" SIG ",Credential=AKIAROOM/" SCOPE
		",SignedHeaders=date;host");
	must(aws_auth_find(&r.req, &a, &why) == 1);
	check_str(a.time, TIME);
	aws_auth_done(&a);
	MAKE(&r,
		"/?X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256&X-Amz-Credential=AKIAROOM%2F20260131%2F"
		"s3%2Faws4_request&X-Amz-Date=" TIME
		"&X-Amz-SignedHeaders=host&X-Amz-Region-Set=a%2Cb&X-Amz-Signature=3044"
		"&X-Amz-Security-Token=x%2F",
		"host:h");
	must(aws_auth_find(&r.req, &a, &why) == 1);
	check(a.place == AWS_IN_QUERY && a.kind == AWS_PAYLOAD_ABSENT);
	check_str(a.region, "a,b");
	check_str(a.token, "x/");
	aws_auth_done(&a);
	MAKE(&r, "/?a=b", "host:h", "authorization:Bearer x");
	check_int(aws_auth_find(&r.req, &a, &why), 0);
	MAKE(&r, "/", "host:h", "authorization:AWS AKIA:x");
	check_int(aws_auth_find(&r.req, &a, &why), 0);
}

static void test_malformed(void)
{
	static const char *const bad[] = {
		"AWS4-HMAC-SHA256 Credential=AKIAROOM/" SCOPE,
		"AWS4-HMAC-SHA256 Credential=AKIAROOM/" SCOPE ", SignedHeaders=host, Signature=",
		AUTH(SCOPE, "host") ", Extra=1",
		AUTH(SCOPE, "host") ", Signature=" SIG,
		AUTH(SCOPE, "x-amz-date"),
		AUTH(SCOPE, "host;host"),
		AUTH(SCOPE, "host;:authority"),
		AUTH(SCOPE, "host;"),
		AUTH(SCOPE, "Host"),
		AUTH(SCOPE, "ho st"),
		AUTH("20260130/eu-1/s3/aws4_request", "host"),
		AUTH("20260131/eu-1/s3/aws4_requesT", "host"),
		AUTH("20260131/s3/aws4_request", "host"),
		"AWS4-HMAC-SHA256 Credential=AKIA%52/" SCOPE ", SignedHeaders=host, Signature=" SIG,
		"AWS4-HMAC-SHA256 Credential=AKIAROOM/" SCOPE
		", SignedHeaders=host, Signature=0" SIG,
		"AWS4-HMAC-SHA256 Credential=AKIAROOM/" SCOPE
		", SignedHeaders=host, Signature=Z" SIG,
	};
	char line[1024];
	struct request r;
	struct aws_auth a;
	const char *why;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "authorization:%s", bad[i]);
		MAKE(&r, "/", "host:h", "x-amz-date:" TIME, line);
		if (aws_auth_find(&r.req, &a, &why) != -EINVAL)
			tap_fail("accepted %s", bad[i]);
	}
	/* What could be read in two ways. */
	MAKE(&r, "/", "host:h", "x-amz-date:" TIME, "authorization:" AUTH(SCOPE, "host"),
		"authorization:Bearer x");
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
	MAKE(&r, "/?X-Amz-Signature=x", "host:h", "x-amz-date:" TIME,
		"authorization:" AUTH(SCOPE, "host"));
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
	MAKE(&r, "/", "host:h", "x-amz-date:" TIME, "x-amz-date:" TIME,
		"authorization:" AUTH(SCOPE, "host"));
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
	MAKE(&r, "/?X-Amz-Credential=a&X-Amz-Credentia%6C=b", "host:h");
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
	check(strstr(why, "twice"));
	MAKE(&r, "/k?AWSAccessKeyId=AKIAROOM&Signature=x&Expires=1", "host:h");
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
	check(strstr(why, "version 2"));
	MAKE(&r, "/?X-Amz-credential=a", "host:h");
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
	MAKE(&r, "/", "host:h", "x-amz-date:" TIME, "authorization:" AUTH(SCOPE, "host"),
		"x-amz-content-sha256:STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD");
	check_int(aws_auth_find(&r.req, &a, &why), -EINVAL);
}

static void test_foreign(void)
{
	check(aws_is_scheme(STR("AWS AKIA:x")) && aws_is_scheme(STR(" aws4-hmac-sha512 x")));
	check(!aws_is_scheme(STR("Bearer AWS")) && !aws_is_scheme(STR("AWSome x")));
	check(aws_query_has_credential(STR("a=b&AWSAccessKeyId=x")));
	check(aws_query_has_credential(STR("a=b&x%2Damz%2Dsignature")));
	check(aws_query_has_credential(
		STR("%58%2D%41%6D%7A%2D%53%65%63%75%72%69%74%79%2D%54%6F%6B%65%6E=x")));
	check(!aws_query_has_credential(STR("a=X-Amz-Signature&Signature=x")));
	check(!aws_query_has_credential(STR_NULL));
}

static void test_services(void)
{
	static const struct {
		const char *host, *service;
		bool fits;
	} cases[] = {
		{"a1b2.execute-api.eu-1.amazonaws.com", "execute-api", true},
		{"a1b2.execute-api.eu-1.amazonaws.com", "iam", false},
		{"a1b2.execute-api.eu-1.amazonaws.com", "", false},
		{"a1b2.appsync-api.eu-1.amazonaws.com", "appsync", true},
		{"a1b2.appsync-realtime-api.eu-1.amazonaws.com", "s3", false},
		{"a1b2.lambda-url.eu-1.on.aws", "lambda", true},
		{"a1b2.lambda-url.eu-1.on.aws", "lambda-url", false},
		{"a-1.x.vpc-lattice-svcs.eu-1.on.aws", "dynamodb", false},
		{"bucket.s3.eu-1.amazonaws.com", "s3", true},
		{"runtime.sagemaker.eu-1.amazonaws.com", "sagemaker", true},
		{"my-execute-api.s3.amazonaws.com", "s3", true},
		{"localhost", "s3", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (aws_service_fits(str_from(cases[i].host), str_from(cases[i].service)) !=
			cases[i].fits)
			tap_fail("%s for %s", cases[i].host, cases[i].service);
}

/* Signs a request with the room's credentials as a client would in this form, takes it through, and
 * says whether the form was found again. */
static void through(const char *target, const char *scope, const struct aws_form *form)
{
	_cleanup_(aws_signer_freep) struct aws_signer *room = aws_signer_new(STR("AKIAROOM"),
							      STR("room"), STR_NULL),
						      *real = aws_signer_new(STR("AKIAREAL"),
							      STR("real"), STR_NULL);
	char line[512];
	struct request r;
	struct aws_auth a;
	struct aws_form got;
	struct aws_signed made, out;
	const char *why;

	snprintf(line, sizeof(line),
		"authorization:AWS4-HMAC-SHA256 Credential=AKIAROOM/%s, "
		"SignedHeaders=content-length;expect;host;x-amz-date, Signature=" SIG,
		scope);
	MAKE(&r, target, "host:h", "x-amz-date:" TIME, line, "content-length:5",
		"expect:100-continue");
	must(aws_auth_find(&r.req, &a, &why) == 1);
	must(aws_sign(&r.req, &a, form, room, STR(AWS_EMPTY_HASH), &made) == 0);
	aws_auth_done(&a);
	r.fields[2].value = buf_str(&made.value);
	must(aws_auth_find(&r.req, &a, &why) == 1);
	if (form->hash == AWS_HASH_BODY)
		check_int(aws_verify(&r.req, &a, room, STR_NULL, &got, &why), AWS_NEEDS_BODY);
	check_int(aws_verify(&r.req, &a, room, STR(AWS_EMPTY_HASH), &got, &why), 0);
	check_int(got.hash, form->hash);
	/* The origin does not see Expect: it is not signed. */
	r.req.n_fields--;
	check_int(aws_sign(&r.req, &a, &got, real, STR(AWS_EMPTY_HASH), &out), 0);
	check(str_find(buf_str(&out.value), STR("SignedHeaders=content-length;host;x-amz-date,")) <
		buf_len(&out.value));
	/* Whoever has another key, or another request, has another signature. */
	r.req.n_fields++;
	check_int(aws_verify(&r.req, &a, real, STR(AWS_EMPTY_HASH), &got, &why), -EACCES);
	r.req.method = STR("PUT");
	check_int(aws_verify(&r.req, &a, room, STR(AWS_EMPTY_HASH), &got, &why), -EACCES);
	r.req.n_fields--;
	check_int(aws_verify(&r.req, &a, room, STR(AWS_EMPTY_HASH), &got, &why), -EACCES);
	aws_signed_done(&made);
	aws_signed_done(&out);
	aws_auth_done(&a);
}

static void test_forms(void)
{
	static const char *const targets[] = {"/", "/a%2Fb//../c?x=a+b&x=%2f&y", "/(x)?b&a&&"};
	struct aws_form f;

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		for (f.path = 0; f.path < AWS_PATH_FORMS; f.path++)
			for (f.query = 0; f.query < AWS_QUERY_FORMS; f.query++)
				for (int body = 0; body < 2; body++) {
					f.without_token = false;
					f.hash = body ? AWS_HASH_BODY : AWS_HASH_UNSIGNED;
					through(targets[i], SCOPE, &f);
					through(targets[i], SERVICE, &f);
				}
}

/* All but the parameters that are swapped stays byte for byte. */
static void test_presigned_target(void)
{
	_cleanup_(aws_signer_freep) struct aws_signer *real =
		aws_signer_new(STR("AKIAREAL"), STR("real"), STR("t/=="));
	const struct aws_form form = {.path = AWS_PATH_WIRE, .hash = AWS_HASH_UNSIGNED};
	struct request r;
	struct aws_auth a;
	struct aws_signed made;
	const char *why;

	MAKE(&r,
		"/a//b%2f?z&z=&&%41=b+c&X%2DAmz-Credential=AKIAROOM%2f20260131/"
		"eu-1%2Fs3%2Faws4_request"
		"&X-Amz-Date=" TIME "&X-Amz-SignedHeaders=host&X-Amz-Signature=" SIG
		"&X-Amz-Security-Token=old&X-Amz-Algorithm=AWS4-HMAC-SHA256&z=1",
		"host:h");
	must(aws_auth_find(&r.req, &a, &why) == 1);
	must(aws_sign(&r.req, &a, &form, real, STR_NULL, &made) == 0);
	check(str_starts(buf_str(&made.value),
		STR("/a//b%2f?z&z=&&%41=b+c&X%2DAmz-Credential=AKIAREAL%2f20260131/eu-1%2Fs3%2F"
		    "aws4_request&X-Amz-Date=" TIME "&X-Amz-SignedHeaders=host&X-Amz-Signature=")));
	check(str_ends(buf_str(&made.value),
		STR("&X-Amz-Security-Token=t%2F%3D%3D&X-Amz-Algorithm=AWS4-HMAC-SHA256&z=1")));
	aws_signed_done(&made);
	aws_auth_done(&a);
}

static void test_token(void)
{
	_cleanup_(aws_signer_freep) struct aws_signer *with = aws_signer_new(STR("AKIAROOM"),
							      STR("room"), STR("token")),
						      *without = aws_signer_new(STR("AKIAROOM"),
							      STR("room"), STR_NULL);
	struct request r;
	struct aws_auth a;
	struct aws_form form;
	const char *why = "";

	MAKE(&r, "/", "host:h", "x-amz-date:" TIME, "authorization:" AUTH(SCOPE, "host"),
		"x-amz-security-token:other");
	must(aws_auth_find(&r.req, &a, &why) == 1);
	check_int(aws_verify(&r.req, &a, with, STR_NULL, &form, &why), -EACCES);
	check(strstr(why, "session token"));
	check_int(aws_verify(&r.req, &a, without, STR_NULL, &form, &why), -EACCES);
	check(strstr(why, "session token"));
	r.fields[3].value = STR("token");
	check_int(aws_verify(&r.req, &a, with, STR(AWS_EMPTY_HASH), &form, &why), -EACCES);
	check(!strstr(why, "session token"));
	aws_auth_done(&a);
}

int main(void)
{
	run_test(test_canonical_paths);
	run_test(test_canonical_queries);
	run_test(test_too_many_parameters);
	run_test(test_found);
	run_test(test_malformed);
	run_test(test_foreign);
	run_test(test_services);
	run_test(test_forms);
	run_test(test_presigned_target);
	run_test(test_token);
	return tap_done();
}
