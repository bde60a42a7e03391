/* SPDX-License-Identifier: Apache-2.0 */
#include "login/login.h"
#include "tap.h"

#include <string.h>

#define OLD "sk-ant-oat01-the-old-token-0123456789"
#define OLD_REFRESH "sk-ant-ort01-the-old-refresh-token-0123456789"
#define NEW "sk-ant-oat01-the-new-token-0123456789"
#define NEW_REFRESH "sk-ant-ort01-the-new-refresh-token-0123456789"

static char in[] = "oauth", token_name[] = "accessToken", refresh_name[] = "refreshToken",
	    expires_name[] = "expiresAt";
static char *token[] = {in, token_name, NULL};
static char *refresh[] = {in, refresh_name, NULL};
static char *expires[] = {in, expires_name, NULL};

static const char file[] = "{\"first\":{\"ü\":[1,2.5,null]},\"oauth\":{\"accessToken\":\"" OLD
			   "\",\"refreshToken\":\"" OLD_REFRESH
			   "\",\"expiresAt\":1700000000000,\"scopes\":[\"a\",\"b\"]},\"last\":0.1}";

static char url[] = "https://login.test:8443/v1/token?a=b", client_id[] = "9d1c-client";

static struct login_spec good(void)
{
	return (struct login_spec){.url = url,
		.client_id = client_id,
		.token = token,
		.refresh = refresh,
		.expires = expires};
}

static struct login *make(const struct login_spec *spec)
{
	struct login *l = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(login_new(spec, &l, &err) == 0);
	return l;
}

static void check_secret(const struct secret *got, const char *want)
{
	check(got != NULL);
	if (got)
		check_str(secret_reveal(got), want);
}

/* --- descriptions --- */

static void refused(const struct login_spec *spec)
{
	struct login *l = NULL;

	check_int(login_new(spec, &l, NULL), -E_CONFIG);
	check(!l);
}

static void test_description(void)
{
	struct login_spec spec = good();
	char plain[] = "https://login.test/t";
	struct login *l = make(&spec);

	check_str(host_str(login_host(l)), "login.test");
	check_int(login_port(l), 8443);
	check_str(login_target(l), "/v1/token?a=b");
	login_free(l);
	spec.url = plain;
	l = make(&spec);
	check_int(login_port(l), 443);
	login_free(l);
	login_free(NULL);
}

static void test_wrong_urls(void)
{
	static const char *const urls[] = {"", "login.test/t", "http://login.test/t",
		"https://login.test", "https:///t", "https://a@login.test/t",
		"https://login.test/t#f", "https://login.test/a b", "https://login.test:0/t",
		"https://login.test/\r\nX: y"};
	struct login_spec spec = good();

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		spec.url = (char *)(uintptr_t)urls[i];
		refused(&spec);
	}
}

static void test_wrong_members(void)
{
	char name[] = "a", empty[] = "", blank[] = "a b",
	     *many[] = {name, name, name, name, name, name, name, name, name, NULL},
	     *none[] = {empty, NULL};
	struct login_spec spec = good();

	spec.token = many;
	refused(&spec);
	spec.token = none;
	refused(&spec);
	spec.token = NULL;
	refused(&spec);
	spec = good();
	spec.refresh = NULL;
	refused(&spec);
	spec = good();
	spec.client_id = empty;
	refused(&spec);
	spec.client_id = blank;
	refused(&spec);
	spec.client_id = NULL;
	refused(&spec);
}

/* --- the file --- */

static void test_file(void)
{
	struct login_spec spec = good();
	struct login *l = make(&spec);
	struct login_tokens t;

	check_int(login_file_read(l, str_from(file), &t, NULL), 0);
	check_secret(t.access, OLD);
	check_secret(t.refresh, OLD_REFRESH);
	check_int(t.expires_msec, 1700000000000);
	login_tokens_done(&t);
	login_free(l);
}

/* What is missing, or is no token, is none; what is no object of JSON is refused. */
static void test_odd_files(void)
{
	static const struct {
		const char *text;
		int r;
	} rows[] = {{"", -E_CONFIG}, {"[1]", -E_CONFIG}, {"{\"oauth\":", -E_CONFIG},
		{"{\"oauth\":{},\"oauth\":{}}", -E_CONFIG}, {"{}", 0}, {"{\"oauth\":3}", 0},
		{"{\"oauth\":{\"accessToken\":7,\"refreshToken\":[\"x\"],\"expiresAt\":\"1\"}}", 0},
		{"{\"oauth\":{\"accessToken\":\"short\",\"refreshToken\":\"\",\"expiresAt\":-4}}",
			0},
		{"{\"oauth\":{\"accessToken\":\"with a blank in it\"}}", 0},
		{"{\"oauth\":{\"accessToken\":\"with\\r\\na line end\"}}", 0},
		{"{\"oauth\":{\"accessToken\":\"with\\u00fcumlaut\"}}", 0}};
	struct login_spec spec = good();
	struct login *l = make(&spec);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct login_tokens t;

		check_int(login_file_read(l, str_from(rows[i].text), &t, NULL), rows[i].r);
		check(!t.access && !t.refresh && t.expires_msec == 0);
		login_tokens_done(&t);
	}
	login_free(l);
}

static void check_written(
	struct login *l, const char *text, struct login_tokens *t, const char *want)
{
	struct buf out = BUF_INIT(4096);

	check_int(login_file_write(l, str_from(text), t, &out, NULL), 0);
	check_str(buf_str(&out), want);
	buf_done(&out);
}

/* The three members change; every other one, and the kind of lines, stays. */
static void test_file_written(void)
{
	struct login_spec spec = good();
	struct login *l = make(&spec);
	struct login_tokens t = {.access = secret_new(NEW, strlen(NEW)),
		.refresh = secret_new(NEW_REFRESH, strlen(NEW_REFRESH)),
		.expires_msec = 1800000000000};

	check_written(l, file, &t,
		"{\"first\":{\"ü\":[1,2.5,null]},\"oauth\":{\"accessToken\":\"" NEW
		"\",\"refreshToken\":\"" NEW_REFRESH
		"\",\"expiresAt\":1800000000000,\"scopes\":[\"a\",\"b\"]},\"last\":0.1}");
	t.refresh = secret_free(t.refresh);
	t.expires_msec = 0;
	check_written(l,
		"{\n  \"oauth\": {\n    \"refreshToken\": \"r\",\n    \"accessToken\": \"a\"\n  "
		"}\n}\n",
		&t,
		"{\n  \"oauth\": {\n    \"refreshToken\": \"r\",\n    \"accessToken\": \"" NEW
		"\"\n  }\n}\n");
	check_written(l, "{\"other\":1}", &t, "{\"other\":1}");
	login_tokens_done(&t);
	login_free(l);
}

/* --- the request --- */

static void test_request(void)
{
	struct login_spec spec = good();
	char public_secret[] = "not-so-secret";
	struct buf out = BUF_INIT(1024);
	struct login *l = make(&spec);

	check_int(login_request_body(l, STR("r\"\\+/="), &out), 0);
	check_str(buf_str(&out),
		"{\"grant_type\":\"refresh_token\",\"refresh_token\":\"r\\\"\\\\+/=\","
		"\"client_id\":\"9d1c-client\"}");
	check_str(login_request_type(l), "application/json");
	login_free(l);
	buf_clear(&out);
	spec.form = true;
	spec.client_secret = public_secret;
	l = make(&spec);
	check_int(login_request_body(l, STR("1//r+/=&~"), &out), 0);
	check_str(buf_str(&out), "grant_type=refresh_token&refresh_token=1%2F%2Fr%2B%2F%3D%26~&"
				 "client_id=9d1c-client&client_secret=not-so-secret");
	check_str(login_request_type(l), "application/x-www-form-urlencoded");
	login_free(l);
	buf_done(&out);
}

/* --- the answer --- */

static void test_answer(void)
{
	struct login_tokens t;

	check_int(login_answer_read(
			  STR("{\"access_token\":\"" NEW "\",\"refresh_token\":\"" NEW_REFRESH
			      "\",\"expires_in\":28800,\"scope\":\"a b\"}"),
			  1000, &t, NULL),
		0);
	check_secret(t.access, NEW);
	check_secret(t.refresh, NEW_REFRESH);
	check_int(t.expires_msec, 28801000);
	login_tokens_done(&t);
	check_int(login_answer_read(STR("{\"access_token\":\"" NEW "\"}"), 1000, &t, NULL), 0);
	check(!t.refresh && t.expires_msec == 0);
	login_tokens_done(&t);
	check_int(login_answer_read(STR("{\"access_token\":\"" NEW "\",\"expires_in\":1e300}"),
			  1000, &t, NULL),
		0);
	check(t.expires_msec > 1000 && t.expires_msec < INT64_C(1) << 50);
	login_tokens_done(&t);
}

static void test_wrong_answers(void)
{
	static const char *const texts[] = {"", "null", "[]", "{}", "<html>",
		"{\"access_token\":\"short\"}", "{\"access_token\":\"with a blank in it\"}",
		"{\"access_token\":\"with-a-line\\nX-Header: y\"}",
		"{\"access_token\":\"" NEW "\",\"access_token\":\"" NEW "\"}",
		"{\"access_token\":\"" NEW "\",\"refresh_token\":\"with a blank\"}",
		"{\"access_token\":\"" NEW "\",\"expires_in\":0}",
		"{\"access_token\":\"" NEW "\",\"expires_in\":-5}",
		"{\"access_token\":\"" NEW "\",\"expires_in\":\"soon\"}"};
	_cleanup_(freep) char *large = calloc(1, 2 * LOGIN_ANSWER_MAX);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct login_tokens t;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		check_int(login_answer_read(str_from(texts[i]), 1000, &t, &err), -E_PROTOCOL);
		check(!strstr(err.message, "token-"));
		login_tokens_done(&t);
	}
	must(large);
	memset(large, 'a', 2 * LOGIN_ANSWER_MAX - 1);
	memcpy(large, "{\"access_token\":\"", 17);
	check_int(login_answer_read(str_from(large), 1000, &t, NULL), -E_PROTOCOL);
	login_tokens_done(&t);
}

static void test_refusal(void)
{
	check(login_answer_refuses(
		STR("{\"error\":\"invalid_grant\",\"error_description\":\"x\"}")));
	check(!login_answer_refuses(STR("{\"error\":\"temporarily_unavailable\"}")));
	check(login_answer_refuses(STR("{\"error\":{\"type\":\"invalid_grant\"}}")));
	check(login_answer_refuses(STR("{\"error\":{\"code\":\"refresh_token_reused\"}}")));
	check(!login_answer_refuses(STR("{\"error\":{\"code\":\"server_error\"}}")));
	check(!login_answer_refuses(STR("{\"error\":[\"invalid_grant\"]}")));
	check(!login_answer_refuses(STR("invalid_grant")));
	check(!login_answer_refuses(STR("")));
}

/* {"exp":1700000000}, and others. */
static void test_end_of_a_token(void)
{
	static const struct {
		const char *token;
		uint64_t end;
	} rows[] = {{"eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMDAwMDB9.c2ln", 1700000000000},
		{"x.eyJleHAiOjE3MDAwMDAwMDB9", 1700000000000}, {"", 0}, {".", 0}, {"..", 0},
		{"eyJleHAiOjE3MDAwMDAwMDB9", 0}, {"x.!!!.y", 0}, {"x.W10.y", 0}, /* [] */
		{"x.eyJleHAiOi0xfQ.y", 0},                                       /* -1 */
		{"x.eyJleHAiOiIxIn0.y", 0},                                      /* "1" */
		{"x.eyJleHAiOjkyMjMzNzIwMzY4NTQ3NzU4MDd9.y", 0}}; /* 9223372036854775807 */
	char tokens[] = "tokens", access[] = "access_token", name[] = "refresh_token";
	struct login_spec spec = good();
	struct login_tokens t;
	struct login *l;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_int(login_token_end(str_from(rows[i].token)), rows[i].end);
	spec.token = (char *[]){tokens, access, NULL};
	spec.refresh = (char *[]){tokens, name, NULL};
	spec.expires = NULL;
	l = make(&spec);
	check_int(login_file_read(l,
			  STR("{\"tokens\":{\"access_token\":"
			      "\"x.eyJleHAiOjE3MDAwMDAwMDB9.y\"}}"),
			  &t, NULL),
		0);
	check_int(t.expires_msec, 1700000000000);
	login_tokens_done(&t);
	check_int(login_answer_read(
			  STR("{\"access_token\":\"x.eyJleHAiOjE3MDAwMDAwMDB9.y\"}"), 1, &t, NULL),
		0);
	check_int(t.expires_msec, 1700000000000);
	login_tokens_done(&t);
	login_free(l);
}

int main(void)
{
	run_test(test_description);
	run_test(test_wrong_urls);
	run_test(test_wrong_members);
	run_test(test_file);
	run_test(test_odd_files);
	run_test(test_file_written);
	run_test(test_request);
	run_test(test_answer);
	run_test(test_wrong_answers);
	run_test(test_refusal);
	run_test(test_end_of_a_token);
	return tap_done();
}
