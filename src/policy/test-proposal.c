/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "policy/proposal.h"

#include "seeded.h"
#include "tap.h"
#include <stdio.h>

enum { YAML_MAX = ALLOWLIST_MAX_TEXT };

static struct policy_request request(const char *method, const char *host, const char *target)
{
	return (struct policy_request){.scheme = POLICY_HTTPS,
		.port = 443,
		.method = str_from(method),
		.host = str_from(host),
		.target = str_from(target)};
}

static struct policy_request on_port(
	enum policy_scheme scheme, uint16_t port, const char *host, const char *target)
{
	struct policy_request req = request("GET", host, target);

	req.scheme = scheme;
	req.port = port;
	return req;
}

static int add(struct proposal *p, struct policy_request req, bool allowed)
{
	const char *why = NULL;
	int r = proposal_add(p, &req, allowed, &why);

	must(r >= 0);
	check((why != NULL) == (r == 0));
	return r;
}

static void write_it(struct proposal *p, struct buf *yaml)
{
	size_t left_out = 1;

	*yaml = BUF_INIT(YAML_MAX);
	must(proposal_merge(p, &left_out) == 0);
	check_int(left_out, 0);
	must(proposal_write(p, yaml) == 0);
}

/* Merges, writes and compares. Frees p. */
static void check_yaml(struct proposal *p, const char *want)
{
	_cleanup_(buf_donep) struct buf yaml = {0};
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();

	write_it(p, &yaml);
	check_str(buf_str(&yaml), want);
	check_int(allowlist_add_yaml(list, buf_str(&yaml), "p", NULL), 0);
	proposal_free(p);
}

static void test_empty(void)
{
	check_yaml(proposal_new(), "url_prefixes: []\n");
}

static void test_paths_and_methods(void)
{
	struct proposal *p = proposal_new();

	for (int i = 0; i < 3; i++) {
		check(add(p, request("GET", "b.test", "/x?a=1"), false));
		check(add(p, request("get", "B.test.", "/x?a=2"), true));
		check(add(p, request("POST", "b.test", "/x"), false));
		check(add(p, request("PUT", "b.test", "/y"), false));
		check(add(p, request("GET", "a.test", "/"), false));
	}
	check_yaml(p, "url_prefixes:\n"
		      "  - host: \"a.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"b.test\"\n    path: \"/x\"\n    methods: [\"GET\", \"POST\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"b.test\"\n    path: \"/y\"\n    methods: [\"PUT\"]\n"
		      "    schemes: [https]\n");
}

/* More than three below a common segment; the deepest that has them. */
static void test_prefix(void)
{
	static const char *const seen[] = {"/repos/me/a/issues", "/repos/me/a/pulls", "/repos/me/a",
		"/repos/me/a/pulls/7", "/repos/me/ab", "/user", "/v1/1", "/v1/2", "/v1/3"};
	struct proposal *p = proposal_new();

	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		check(add(p, request("GET", "a.test", seen[i]), false));
	check(add(p, request("POST", "a.test", "/repos/me/a/pulls"), false));
	check_yaml(p, "url_prefixes:\n"
		      "  - host: \"a.test\"\n    path_prefix: \"/repos/me/a\"\n"
		      "    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/repos/me/a/pulls\"\n"
		      "    methods: [\"POST\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/repos/me/ab\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/user\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/v1/1\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/v1/2\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/v1/3\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n");
}

/* Prefixes are counted as what they are further up; the root never becomes one. */
static void test_prefix_of_prefixes(void)
{
	struct proposal *p = proposal_new();
	char target[32];

	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 5; k++) {
			snprintf(target, sizeof(target), "/a/%d/%d", i, k);
			check(add(p, request("GET", "x.test", target), false));
			snprintf(target, sizeof(target), "/b%d/%d", i, k);
			check(add(p, request("GET", "x.test", target), false));
		}
	check_yaml(p, "url_prefixes:\n"
		      "  - host: \"x.test\"\n    path_prefix: \"/a\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"x.test\"\n    path_prefix: \"/b0\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"x.test\"\n    path_prefix: \"/b1\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"x.test\"\n    path_prefix: \"/b2\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"x.test\"\n    path_prefix: \"/b3\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n");
}

static void test_schemes_and_ports(void)
{
	struct proposal *p = proposal_new();
	struct policy_request tunnel = on_port(POLICY_HTTPS, 8443, "t.test", "");

	tunnel.tunnel = true;
	tunnel.method = STR_NULL;
	check(add(p, tunnel, true));
	tunnel.port = 443;
	check(add(p, tunnel, true));
	check(add(p, on_port(POLICY_TCP, 443, "t.test", ""), false));
	check(add(p, on_port(POLICY_TCP, 443, "t.test", ""), true));
	check(!add(p, on_port(POLICY_TCP, 22, "10.0.0.1", ""), false));
	check(add(p, on_port(POLICY_HTTP, 80, "h.test", "/"), false));
	check(add(p, on_port(POLICY_HTTP, 8080, "h.test", "/"), false));
	check(add(p, on_port(POLICY_HTTPS, 8443, "h.test", "/"), false));
	check(add(p, on_port(POLICY_HTTP, 443, "h.test", "/"), false));
	check(add(p, on_port(POLICY_HTTP, 80, "i.test", "/"), false));
	check(add(p, on_port(POLICY_HTTPS, 443, "i.test", "/"), false));
	check_yaml(p, "url_prefixes:\n"
		      "  - host: \"h.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "    schemes: [http]\n"
		      "  - host: \"h.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "    schemes: [http]\n    ports: [443]\n"
		      "  - host: \"h.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "    schemes: [http]\n    ports: [8080]\n"
		      "  - host: \"h.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n    ports: [8443]\n"
		      "  - host: \"i.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "  - host: \"t.test\"\n    tunnel: true\n"
		      "  - host: \"t.test\"\n    schemes: [tcp]\n    ports: [443]\n"
		      "  - host: \"t.test\"\n    tunnel: true\n    ports: [8443]\n");
}

static void test_odd_paths(void)
{
	struct proposal *p = proposal_new();

	check(add(p, request("GET", "a.test", "/a%2Fb"), false));
	check(add(p, request("GET", "a.test", "/a%2Fb*"), false));
	check(add(p, request("GET", "a.test", "/q%3Fx[1]%22"), false));
	check(add(p, request("GET", "a.test", "/s[1]"), false));
	check(add(p, request("GET", "a.test", "/%C3%B6"), false));
	check(add(p, request("GET", "a.test", "//x"), true));
	check_yaml(p,
		"url_prefixes:\n"
		"  - host: \"a.test\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"
		"  - host: \"a.test\"\n    path: \"/q[?]x[[]1]\\\"\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"
		"  - host: \"a.test\"\n    path: \"/s[1]\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"
		"  - host: \"a.test\"\n    path: \"/\\U000000F6\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"
		"  - host: \"a.test\"\n    path: \"/a/b\"\n    methods: [\"GET\"]\n"
		"    encoded_slash: true\n"
		"    schemes: [https]\n"
		"  - host: \"a.test\"\n    path: \"/a/b[*]\"\n    methods: [\"GET\"]\n"
		"    encoded_slash: true\n"
		"    schemes: [https]\n");
}

/* What a body filter judges gets no entry without one, by no method and in no spelling, and no
 * prefix or whole host that takes it in. */
static void test_filtered(void)
{
	struct proposal *p = proposal_new();
	struct policy_request filtered = request("POST", "A.test", "/api/graphql");
	char target[32];

	check(add(p, request("POST", "a.test", "/api/graphql"), true));
	check(add(p, request("GET", "a.test", "/api/GraphQL/"), false));
	check(add(p, request("GET", "a.test", "//x"), true));
	check(add(p, request("GET", "a.test", "/"), true));
	check(add(p, request("POST", "b.test", "/api/graphql"), true));
	check_int(proposal_keep_filtered(p, &filtered), 0);
	check_int(proposal_keep_filtered(p, &filtered), 0);
	filtered.target = STR("/..");
	check_int(proposal_keep_filtered(p, &filtered), 0);
	filtered.host = STR("no host");
	check_int(proposal_keep_filtered(p, &filtered), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(target, sizeof(target), "/api/%d", i);
		check(add(p, request("POST", "a.test", target), false));
	}
	check_yaml(p, "url_prefixes:\n"
		      "  - host: \"a.test\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/api/0\"\n    methods: [\"POST\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/api/1\"\n    methods: [\"POST\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/api/2\"\n    methods: [\"POST\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"a.test\"\n    path: \"/api/3\"\n    methods: [\"POST\"]\n"
		      "    schemes: [https]\n"
		      "  - host: \"b.test\"\n    path: \"/api/graphql\"\n    methods: [\"POST\"]\n"
		      "    schemes: [https]\n");
}

/* Nothing is proposed for these. */
static void test_refused(void)
{
	static const struct {
		const char *method, *host, *target;
		bool allowed_too; /* turned away in any case */
	} cases[] = {
		{"GET", "127.0.0.1", "/", false},
		{"GET", "[2001:db8::1]", "/", false},
		{"GET", "a.test", "//x", false},
		{"GET", "a.test", "/%2541", false},
		{"GET", "a.test", "/%FF", false},
		{"GET", "127.1", "/", true},
		{"GET", "a b", "/", true},
		{"GET", "", "/", true},
		{"GET", "*.test", "/", true},
		{"GET", "a.test", "", true},
		{"GET", "a.test", "*", true},
		{"GET", "a.test", "/../x", true},
		{"GET", "a.test", "/a b", true},
		{"GET", "a.test", "/\n", true},
		{"", "a.test", "/", true},
		{"G\"T", "a.test", "/", true},
		{"GET\n", "a.test", "/", true},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", "a.test", "/", true},
	};
	struct proposal *p = proposal_new();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req =
			request(cases[i].method, cases[i].host, cases[i].target);

		check_int(add(p, req, false), 0);
		if (cases[i].allowed_too)
			check_int(add(p, req, true), 0);
	}
	check_yaml(p, "url_prefixes: []\n");
}

/* One entry holds so many methods, one allowlist so many entries. */
static void test_limits(void)
{
	struct proposal *p = proposal_new();
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	_cleanup_(buf_donep) struct buf yaml = BUF_INIT(YAML_MAX);
	char text[64];
	size_t left_out = 0;

	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "M%d", i);
		check(add(p, request(text, "a.test", "/"), false));
	}
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "h%d.test", i);
		check(add(p, request("GET", text, "/a-path-that-is-longer-than-most/x"), false));
	}
	must(proposal_merge(p, &left_out) == 0);
	check_int(proposal_count(p) + left_out, 20000 + 4);
	check(left_out > 0);
	must(proposal_write(p, &yaml) == 0);
	check_int(allowlist_add_yaml(list, buf_str(&yaml), "p", NULL), 0);
	check_int(allowlist_count(list), proposal_count(p));
	proposal_free(p);
}

/* --- random logs --- */

struct seen {
	struct policy_request req;
	char method[8], host[24], target[96];
	bool taken;
};

static const char *pick(const char *const *v, size_t n)
{
	return v[rand_below((uint32_t)n)];
}

static void random_request(struct seen *s)
{
	static const char *const methods[] = {"GET", "POST", "get", "DELETE", "M-X", "A\"B"};
	static const char *const hosts[] = {
		"a.test", "b.test", "A.test", "x.b.test", "1.2.3.4", "[::1]", "*.test", "b.test."};
	static const char *const parts[] = {"a", "b", "a*", "%2F", "%3F", "c[1]", "%22", "%C3%B6",
		"%FF", "..", "", "-", "#", "'", ": x", "%0A", "%5B%5D", "%25", "\x80", "{}&!|"};
	static const uint16_t ports[] = {443, 80, 8080};
	uint32_t n = rand_below(6);
	size_t used = 0;

	*s = (struct seen){0};
	snprintf(s->method, sizeof(s->method), "%s", pick(methods, ARRAY_SIZE(methods)));
	snprintf(s->host, sizeof(s->host), "%s", pick(hosts, ARRAY_SIZE(hosts)));
	for (uint32_t i = 0; i <= n; i++)
		used += (size_t)snprintf(s->target + used, sizeof(s->target) - used, "%s%s",
			rand_below(8) ? "/" : "?", pick(parts, ARRAY_SIZE(parts)));
	s->req = (struct policy_request){
		.scheme = rand_below(2) ? POLICY_HTTPS : POLICY_HTTP,
		.port = ports[rand_below(ARRAY_SIZE(ports))],
		.method = str_from(s->method),
		.host = str_from(s->host),
		.target = str_from(s->target),
		.tunnel = rand_below(20) == 0,
	};
	if (s->req.tunnel)
		s->req.scheme = POLICY_HTTPS;
}

/* Whether some allowlist could allow it, as far as one is ever proposed. */
static void check_taken(const struct seen *s, bool allowed)
{
	_cleanup_(allowlist_freep) struct allowlist *all = allowlist_new();
	struct verdict v;

	if (s->taken || s->req.tunnel || !allowed || strchr(s->method, '"'))
		return;
	must(allowlist_add_yaml(all,
		     STR("url_prefixes: [{host: '*', ports: [80, 443, 8080]},"
			 "{host: 1.2.3.4, ports: [80, 443, 8080]},"
			 "{host: '[::1]', ports: [80, 443, 8080]}]"),
		     "a", NULL) == 0);
	must(policy_decide(all, &s->req, &v) == 0);
	if (v.allow)
		tap_fail("%s %s%s could be allowed", s->method, s->host, s->target);
}

/* Whether the host was asked for by that scheme on that port, too; entries may be joined. */
static bool was_seen(const struct seen *seen, int n, const struct policy_request *req)
{
	for (int i = 0; i < n; i++) {
		struct host a, b;

		if (seen[i].taken && seen[i].req.scheme == req->scheme &&
			host_parse(seen[i].req.host, &a) == 0 && host_parse(req->host, &b) == 0 &&
			str_eq(host_str(&a), host_str(&b)))
			return true;
	}
	return false;
}

static void check_list(const struct allowlist *list, const struct seen *seen, int n)
{
	for (int i = 0; i < n; i++) {
		struct policy_request other = seen[i].req;
		struct verdict v;

		if (!seen[i].taken)
			continue;
		must(policy_decide(list, &other, &v) == 0);
		if (!v.allow)
			tap_fail("%s %s:%u%s: %s", seen[i].method, seen[i].host, seen[i].req.port,
				seen[i].target, policy_reason_word(v.reason));
		other.host = STR("other.test");
		must(policy_decide(list, &other, &v) == 0);
		check(!v.allow && v.reason == POLICY_HOST);
		other = seen[i].req;
		other.port = 8443;
		must(policy_decide(list, &other, &v) == 0);
		check(!v.allow);
		other = seen[i].req;
		other.scheme = other.scheme == POLICY_HTTP ? POLICY_HTTPS : POLICY_HTTP;
		must(policy_decide(list, &other, &v) == 0);
		check(!v.allow || was_seen(seen, n, &other));
		other = seen[i].req;
		other.method = STR("OTHER");
		must(policy_decide(list, &other, &v) == 0);
		check(!v.allow || other.tunnel);
	}
}

static void test_random(void)
{
	enum { LOGS = 400, LONGEST = 120 };
	static struct seen seen[LONGEST];

	for (int k = 0; k < LOGS; k++) {
		_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
		_cleanup_(buf_donep) struct buf yaml = {0};
		struct proposal *p = proposal_new();
		struct cloche_err err = CLOCHE_ERR_INIT;
		int n = (int)rand_below(LONGEST);

		for (int i = 0; i < n; i++) {
			bool allowed = rand_below(2);

			random_request(&seen[i]);
			seen[i].taken = add(p, seen[i].req, allowed);
			check_taken(&seen[i], allowed);
		}
		write_it(p, &yaml);
		proposal_free(p);
		for (size_t i = 0; i < buf_len(&yaml); i++)
			check((buf_data(&yaml)[i] >= 0x20 && buf_data(&yaml)[i] <= 0x7e) ||
				buf_data(&yaml)[i] == '\n');
		if (allowlist_add_yaml(list, buf_str(&yaml), "p", &err) < 0)
			tap_fail("%s\n%.*s", err.message, STR_FMT(buf_str(&yaml)));
		check_list(list, seen, n);
	}
}

int main(void)
{
	seeded_begin();
	run_test(test_empty);
	run_test(test_paths_and_methods);
	run_test(test_prefix);
	run_test(test_prefix_of_prefixes);
	run_test(test_schemes_and_ports);
	run_test(test_odd_paths);
	run_test(test_filtered);
	run_test(test_refused);
	run_test(test_limits);
	run_test(test_random);
	return tap_done();
}
