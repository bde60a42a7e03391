/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "secrets/replace.h"

#include "seeded.h"
#include "tap.h"

/* A: Authorization at api.x.com. B: x-api-key and x-* at *.x.com. C: Authorization at api.x.com and
 * foreign ones are fine. D: only by pattern at pattern.com. */
#define REAL_A "ghp_realAAAAAAAAAAAA"
#define FAKE_A "ghp_fakeAAAAAAAAAAAA"
#define REAL_B "sk-ant-realBBBBBBBB"
#define FAKE_B "sk-ant-fakeBBBBBBBB"
#define REAL_C "real-c+/="
#define FAKE_C "fake-c+/0"
#define REAL_D "real-ddd"
#define FAKE_D "fake-ddd"

static struct secret_set *set;

static void add(const char *text, const char *value, const char *surrogate, bool foreign)
{
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};

	must(secret_spec_parse(str_from(text), &spec, NULL) == 0);
	spec.allow_foreign_credentials = foreign;
	must(secret_set_add(set, &spec, str_from(value), str_from(surrogate), NULL) == 0);
}

struct scenario {
	const char *what, *host;
	const char *in[8];  /* "Name: value" */
	const char *out[8]; /* what is sent */
	unsigned masked, dropped, collapsed;
	const char *withheld; /* why of the first such note */
	bool plaintext;
};

static const struct scenario scenarios[] = {
	{"bearer", "api.x.com", {"Accept: */*", "Authorization: Bearer " FAKE_A},
		{"Accept: */*", "Authorization: Bearer " REAL_A}, 1, 0, 0, NULL, false},
	{"token", "api.x.com", {"authorization: token " FAKE_A}, {"authorization: token " REAL_A},
		1, 0, 0, NULL, false},
	{"bare", "api.x.com", {"AUTHORIZATION: " FAKE_A}, {"AUTHORIZATION: " REAL_A}, 1, 0, 0, NULL,
		false},
	{"twice in one value", "api.x.com", {"Authorization: " FAKE_A "," FAKE_A},
		{"Authorization: " REAL_A "," REAL_A}, 1, 0, 0, NULL, false},
	{"two secrets in one value", "api.x.com", {"Authorization: " FAKE_A ":" FAKE_C},
		{"Authorization: " REAL_A ":" REAL_C}, 2, 0, 0, NULL, false},
	{"two headers", "api.x.com", {"Authorization: " FAKE_A, "x-api-key: " FAKE_B},
		{"Authorization: " REAL_A, "x-api-key: " REAL_B}, 2, 0, 0, NULL, false},
	/* never elsewhere */
	{"host not in scope", "evil.com", {"Authorization: Bearer " FAKE_A},
		{"Authorization: Bearer " FAKE_A}, 0, 0, 0, "host not in scope", false},
	{"parent of the scope", "x.com", {"x-api-key: " FAKE_B}, {"x-api-key: " FAKE_B}, 0, 0, 0,
		"host not in scope", false},
	{"header not listed", "api.x.com", {"Cookie: t=" FAKE_A}, {"Cookie: t=" FAKE_A}, 0, 0, 0,
		"header not listed", false},
	{"host header", "a.x.com", {"Host: " FAKE_B}, {"Host: " FAKE_B}, 0, 0, 0,
		"header not listed", false},
	{"content-length", "a.x.com", {"Content-Length: " FAKE_B}, {"Content-Length: " FAKE_B}, 0,
		0, 0, "header not listed", false},
	/* no surrogate goes if the connection is not verified; and nothing else either */
	{"plaintext", "api.x.com", {"Accept: x", "Authorization: Bearer " FAKE_A}, {"Accept: x"}, 0,
		1, 0, "not over verified TLS", true},
	{"plaintext by pattern", "pattern.com", {"x-d: " FAKE_D}, {"x-d: " FAKE_D}, 0, 0, 0,
		"not over verified TLS", true},
	/* whole tokens only */
	{"longer in front", "pattern.com", {"x-d: a" FAKE_D}, {"x-d: a" FAKE_D}, 0, 0, 0,
		"part of a longer token", false},
	{"longer behind", "pattern.com", {"x-d: " FAKE_D "1"}, {"x-d: " FAKE_D "1"}, 0, 0, 0,
		"part of a longer token", false},
	{"longer by a dash", "pattern.com", {"x-d: " FAKE_D "-"}, {"x-d: " FAKE_D "-"}, 0, 0, 0,
		"part of a longer token", false},
	{"quoted", "pattern.com", {"x-d: k=\"" FAKE_D "\";"}, {"x-d: k=\"" REAL_D "\";"}, 1, 0, 0,
		NULL, false},
	{"one whole and one longer", "pattern.com", {"x-d: " FAKE_D "x " FAKE_D},
		{"x-d: " FAKE_D "x " REAL_D}, 1, 0, 0, NULL, false},
	{"overlapping", "pattern.com", {"x-d: fake-dfake-ddd"}, {"x-d: fake-dfake-ddd"}, 0, 0, 0,
		"part of a longer token", false},
	/* names that some read as the listed one */
	{"underscore", "a.x.com", {"x_api_key: me", "x-api-key: " FAKE_B}, {"x-api-key: " REAL_B},
		1, 1, 0, NULL, false},
	{"underscore in part", "a.x.com", {"X_Api-Key: " FAKE_B}, {NULL}, 0, 1, 0,
		"header not listed", false},
	{"underscore elsewhere", "evil.com", {"x_api_key: me"}, {"x_api_key: me"}, 0, 0, 0, NULL,
		false},
	{"underscore of a pattern", "pattern.com", {"x_d: me"}, {"x_d: me"}, 0, 0, 0, NULL, false},
	/* duplicates */
	{"foreign first", "api.x.com",
		{"Authorization: Bearer foreign", "A: b", "authorization: Bearer " FAKE_A},
		{"Authorization: Bearer " REAL_A, "A: b"}, 1, 0, 1, NULL, false},
	{"foreign second", "api.x.com",
		{"Authorization: Bearer " FAKE_A, "AUTHORIZATION: Bearer foreign"},
		{"Authorization: Bearer " REAL_A}, 1, 0, 1, NULL, false},
	{"same twice", "api.x.com", {"Authorization: " FAKE_A, "Authorization: " FAKE_A},
		{"Authorization: " REAL_A}, 1, 0, 1, NULL, false},
	{"unlisted duplicates stay", "api.x.com", {"Via: a", "Via: b"}, {"Via: a", "Via: b"}, 0, 0,
		0, NULL, false},
	/* foreign credentials */
	{"foreign", "api.x.com", {"Authorization: Bearer foreign", "A: b"}, {"A: b"}, 0, 1, 0, NULL,
		false},
	{"foreign twice", "api.x.com", {"Authorization: f1", "Authorization: f2"}, {NULL}, 0, 1, 0,
		NULL, false},
	{"foreign basic", "api.x.com", {"Authorization: Basic dXNlcjpwYXNz"}, {NULL}, 0, 1, 0, NULL,
		false},
	{"foreign elsewhere", "other.com", {"Authorization: Bearer foreign"},
		{"Authorization: Bearer foreign"}, 0, 0, 0, NULL, false},
	{"foreign where all allow it", "c.com", {"Authorization: Bearer foreign"},
		{"Authorization: Bearer foreign"}, 0, 0, 0, NULL, false},
	{"foreign by pattern only", "pattern.com", {"x-d: foreign"}, {"x-d: foreign"}, 0, 0, 0,
		NULL, false},
	{"foreign over plaintext", "api.x.com", {"Authorization: Bearer foreign"}, {NULL}, 0, 1, 0,
		NULL, true},
	/* Basic: ghp_fakeAAAAAAAAAAAA:x and x:ghp_fakeAAAAAAAAAAAA and so on */
	{"basic user", "api.x.com", {"Authorization: Basic Z2hwX2Zha2VBQUFBQUFBQUFBQUE6eA=="},
		{"Authorization: Basic Z2hwX3JlYWxBQUFBQUFBQUFBQUE6eA=="}, 1, 0, 0, NULL, false},
	{"basic password", "api.x.com", {"Authorization: Basic eDpnaHBfZmFrZUFBQUFBQUFBQUFBQQ=="},
		{"Authorization: Basic eDpnaHBfcmVhbEFBQUFBQUFBQUFBQQ=="}, 1, 0, 0, NULL, false},
	{"basic without padding", "api.x.com",
		{"Authorization: BASIC eDpnaHBfZmFrZUFBQUFBQUFBQUFBQQ"},
		{"Authorization: Basic eDpnaHBfcmVhbEFBQUFBQUFBQUFBQQ=="}, 1, 0, 0, NULL, false},
	{"basic in lower case", "api.x.com",
		{"authorization: basic  eDpnaHBfZmFrZUFBQUFBQUFBQUFBQQ== "},
		{"authorization: Basic eDpnaHBfcmVhbEFBQUFBQUFBQUFBQQ=="}, 1, 0, 0, NULL, false},
	/* ???:fake-c+/0 in the URL-safe alphabet */
	{"basic url-safe", "c.com", {"Authorization: Basic Pz8_OmZha2UtYysvMA=="},
		{"Authorization: Basic Pz8/OnJlYWwtYysvPQ=="}, 1, 0, 0, NULL, false},
	/* x:y:ghp_fakeAAAAAAAAAAAA: the password is all behind the first colon */
	{"basic with two colons", "api.x.com",
		{"Authorization: Basic eDp5OmdocF9mYWtlQUFBQUFBQUFBQUFB"},
		{"Authorization: Basic eDp5OmdocF9yZWFsQUFBQUFBQUFBQUFB"}, 1, 0, 0, NULL, false},
	/* ghp_fakeAAAAAAAAAAAA without a colon */
	{"basic without colon", "api.x.com", {"Authorization: Basic Z2hwX2Zha2VBQUFBQUFBQUFBQUE="},
		{NULL}, 0, 1, 0, "part of a longer token", false},
	{"basic garbage", "api.x.com", {"Authorization: Basic !!!eDpnaHBfZmFrZUFBQQ=="}, {NULL}, 0,
		1, 0, NULL, false},
	{"basic that is empty", "api.x.com", {"Authorization: Basic "}, {NULL}, 0, 1, 0, NULL,
		false},
	{"proxy-authorization", "proxy.com", {"Proxy-Authorization: Basic eDpmYWtlLWVlZQ=="},
		{"Proxy-Authorization: Basic eDpyZWFsLWRkZA=="}, 1, 0, 0, NULL, false},
	/* only Authorization is looked into */
	{"basic elsewhere", "pattern.com", {"x-d: Basic eDpmYWtlLWRkZA=="},
		{"x-d: Basic eDpmYWtlLWRkZA=="}, 0, 0, 0, NULL, false},
	{"nothing to do", "api.x.com", {"Accept: */*", "User-Agent: curl"},
		{"Accept: */*", "User-Agent: curl"}, 0, 0, 0, NULL, false},
	{"no headers", "api.x.com", {NULL}, {NULL}, 0, 0, 0, NULL, false},
};

static struct header_view split(const char *line)
{
	const char *colon = strstr(line, ": ");

	must(colon != NULL);
	return (struct header_view){str_make(line, (size_t)(colon - line)), str_from(colon + 2)};
}

static void check_output(const struct scenario *s, const struct header_view *in, size_t n,
	const struct replace_result *res)
{
	size_t out = 0;

	must(res->n_edits == n);
	for (size_t i = 0; i < n; i++) {
		struct str value = res->edits[i].action == REPLACE_SET
					   ? buf_str(&res->edits[i].value)
					   : in[i].value;
		struct header_view want;

		if (res->edits[i].action == REPLACE_DROP)
			continue;
		if (!s->out[out]) {
			tap_fail("%s: more than expected", s->what);
			return;
		}
		want = split(s->out[out++]);
		if (!str_eq(in[i].name, want.name) || !str_eq(value, want.value))
			tap_fail(
				"%s: got %.*s: %.*s", s->what, STR_FMT(in[i].name), STR_FMT(value));
	}
	if (s->out[out])
		tap_fail("%s: less than expected", s->what);
}

static void check_notes(const struct scenario *s, const struct replace_result *res)
{
	const char *why = NULL;
	unsigned stripped = 0, collapsed = 0;

	for (size_t i = 0; i < res->n_notes; i++) {
		stripped += res->notes[i].kind == REPLACE_NOTE_STRIPPED;
		collapsed += res->notes[i].kind == REPLACE_NOTE_COLLAPSED;
		if (res->notes[i].kind == REPLACE_NOTE_WITHHELD && !why)
			why = res->notes[i].why;
		for (size_t j = 0; j < res->notes[i].header.n; j++)
			check(res->notes[i].header.p[j] < 'A' || res->notes[i].header.p[j] > 'Z');
	}
	if (res->masked != s->masked || res->dropped != s->dropped ||
		res->collapsed != s->collapsed)
		tap_fail("%s: masked %u, dropped %u, collapsed %u", s->what, res->masked,
			res->dropped, res->collapsed);
	check_int(stripped, s->dropped);
	check_int(collapsed, s->collapsed);
	if ((why == NULL) != (s->withheld == NULL) || (why && strcmp(why, s->withheld) != 0))
		tap_fail("%s: withheld: %s", s->what, why ? why : "no");
}

static void test_scenarios(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		const struct scenario *s = &scenarios[i];
		struct header_view in[8];
		struct replace_request req = {.verified_tls = !s->plaintext, .headers = in};
		struct replace_result res;
		struct host host;

		must(host_parse(str_from(s->host), &host) == 0);
		req.host = &host;
		while (req.n_headers < 8 && s->in[req.n_headers]) {
			in[req.n_headers] = split(s->in[req.n_headers]);
			req.n_headers++;
		}
		must(replace_headers(set, &req, &res) == 0);
		check_output(s, in, req.n_headers, &res);
		check_notes(s, &res);
		replace_result_done(&res);
	}
}

static void test_empty_set(void)
{
	_cleanup_(secret_set_freep) struct secret_set *empty = secret_set_new();
	struct header_view h = {STR("Authorization"), STR("x")};
	struct host host;
	struct replace_request req = {true, &host, &h, 1};
	struct replace_result res;

	must(host_parse(STR("api.x.com"), &host) == 0);
	must(replace_headers(empty, &req, &res) == 0);
	check(res.n_edits == 1 && res.edits[0].action == REPLACE_KEEP);
	replace_result_done(&res);
}

static void test_limits(void)
{
	static struct header_view many[1025];
	static char long_name[5000];
	struct host host;
	struct replace_request req = {true, &host, many, 1025};
	struct replace_result res;

	must(host_parse(STR("api.x.com"), &host) == 0);
	for (size_t i = 0; i < 1025; i++)
		many[i] = (struct header_view){STR("X-Fill"), STR("v")};
	check(replace_headers(set, &req, &res) < 0);
	replace_result_done(&res);
	memset(long_name, 'x', sizeof(long_name));
	long_name[1] = '-';
	many[0] = (struct header_view){str_make(long_name, sizeof(long_name)), STR(FAKE_B)};
	req.n_headers = 1024;
	check(replace_headers(set, &req, &res) == 0);
	check_int(res.edits[0].action, REPLACE_KEEP);
	replace_result_done(&res);
}

/* Whatever is thrown at it: a real value only ever leaves in a listed header over verified TLS to a
 * host in scope, and what is kept is kept byte for byte. */
static void test_random(void)
{
	static const char *const names[] = {"Authorization", "x-api-key", "Cookie", "x-d", "Host"};
	static const char *const hosts[] = {"api.x.com", "x.com", "evil.com", "pattern.com"};
	static const char *const parts[] = {FAKE_A, FAKE_B, FAKE_D, "Basic ", "Bearer ", "a", "-",
		" ", "eDpmYWtlLWRkZA==", "\xff", ":", "="};

	for (int round = 0; round < 20000; round++) {
		struct header_view in[4];
		char text[4][128] = {{0}};
		struct host host;
		struct replace_request req = {rand_below(2), &host, in, 1 + rand_below(4)};
		struct replace_result res;

		must(host_parse(str_from(hosts[rand_below(4)]), &host) == 0);
		for (size_t i = 0; i < req.n_headers; i++) {
			size_t used = 0;

			for (uint32_t j = rand_below(5); j > 0; j--)
				used += (size_t)snprintf(text[i] + used, sizeof(text[i]) - used,
					"%s", parts[rand_below(12)]);
			in[i] = (struct header_view){
				str_from(names[rand_below(5)]), str_from(text[i])};
		}
		must(replace_headers(set, &req, &res) == 0);
		for (size_t i = 0; i < res.n_edits; i++) {
			struct str v = buf_str(&res.edits[i].value);
			bool a = str_find(v, STR(REAL_A)) < v.n, b = str_find(v, STR(REAL_B)) < v.n;

			check((v.n > 0) == (res.edits[i].action == REPLACE_SET));
			if (v.n > 0)
				check(req.verified_tls && strcmp(host.text, "x.com") != 0 &&
					strcmp(host.text, "evil.com") != 0);
			if (a)
				check(str_ieq(in[i].name, STR("authorization")));
			if (b)
				check(str_starts(in[i].name, STR("x-")));
		}
		replace_result_done(&res);
	}
}

/* What goes out for one header of a request to git.test. */
static struct replace_result put(struct secret_set *live, const char *value)
{
	static struct host host;
	static struct header_view h;
	struct replace_request req = {
		.verified_tls = true, .host = &host, .headers = &h, .n_headers = 1};
	struct replace_result res;

	h = (struct header_view){STR("authorization"), str_from(value)};
	must(host_parse(STR("git.test"), &host) == 0);
	must(replace_headers(live, &req, &res) == 0);
	return res;
}

static void test_live_values(void)
{
	static const char longer[] = "ghs_longer0123456789012345678901234567890123456789x.y.z";
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};
	struct secret_set *live = secret_set_new();
	struct replace_result res;

	must(secret_spec_parse(STR("GIT@git.test"), &spec, NULL) == 0);
	must(secret_set_add_live(live, &spec, STR("ghs_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3a"),
		     STR("ghs_fakefakefakefakefakefakefakefakefa"), NULL) == 0);
	check(secret_set_get(live, 0)->live && !secret_set_get(live, 0)->known);
	res = put(live, "Bearer ghs_fakefakefakefakefakefakefakefakefa");
	check(res.unknown == secret_set_get(live, 0) && !res.live);
	replace_result_done(&res);
	res = put(live, "Bearer other");
	check(!res.unknown && res.dropped == 1);
	replace_result_done(&res);
	must(secret_set_renew(live, 0, secret_new(longer, strlen(longer)), NULL) == 0);
	res = put(live,
		"ghs_fakefakefakefakefakefakefakefakefa,ghs_fakefakefakefakefakefakefakefakefa");
	check(!res.unknown && res.live == secret_set_get(live, 0));
	check(buf_len(&res.edits[0].value) == 2 * strlen(longer) + 1);
	check(str_ends(buf_str(&res.edits[0].value), str_from(longer)));
	replace_result_done(&res);
	/* x:SURROGATE */
	res = put(live, "Basic eDpnaHNfZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2VmYQ==");
	check(res.live && res.edits[0].action == REPLACE_SET);
	replace_result_done(&res);
	must(secret_set_renew(live, 0, NULL, NULL) == 0);
	res = put(live, "Bearer ghs_fakefakefakefakefakefakefakefakefa");
	check(res.unknown && !res.live);
	replace_result_done(&res);
	secret_set_free(live);
}

int main(void)
{
	seeded_begin();
	set = secret_set_new();
	add("A@api.x.com", REAL_A, FAKE_A, false);
	add("B@*.x.com:x-api-key,x-*", REAL_B, FAKE_B, false);
	add("C@api.x.com,c.com", REAL_C, FAKE_C, true);
	add("D@pattern.com:x-?", REAL_D, FAKE_D, false);
	add("E@proxy.com:proxy-authorization", REAL_D, "fake-eee", false);
	run_test(test_scenarios);
	run_test(test_empty_set);
	run_test(test_limits);
	run_test(test_random);
	run_test(test_live_values);
	set = secret_set_free(set);
	return tap_done();
}
