/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused client is told: each reason's sentence, and whether what is suggested works. */
#include "policy/decide.h"

#include "tap.h"

static const char rules[] = "domains: [open.com]\n"                                /* 1 */
			    "url_prefixes:\n"                                      /* 2 */
			    "  - {host: a.com, path: /x*, methods: [GET, HEAD]}\n" /* 3 */
			    "  - {host: q.com, path: /x, query: none}\n"           /* 4 */
			    "  - {host: p.com, ports: [8443]}\n"                   /* 5 */
			    "  - {host: s.com, schemes: [https]}\n"                /* 6 */
			    "  - {host: t.com, tunnel: true}\n"                    /* 7 */
			    "  - {host: ws.com, websocket: false}\n"               /* 8 */
			    "  - {host: gql.com, path: /g, methods: [POST],\n"     /* 9 */
			    "     graphql: {queries: [me]}}\n"                     /* 10 */
			    "  - {host: gql.com, path: /open/*}\n"                 /* 11 */
			    "  - {host: gql.com, methods: [PUT]}\n"                /* 12 */
			    "  - {host: git.com, path: '/refs?s=up*'}\n"           /* 13 */
			    "  - {host: git.com, path: '/*', methods: [PUT]}\n"    /* 14 */
			    "  - {host: git2.com, path: '/refs?s=up*'}\n";         /* 15 */

enum asked { PLAIN, TUNNEL, WEBSOCKET, FILTERED };

static const struct {
	const char *method, *host, *target;
	uint16_t port; /* 443: https, 80: http, other: https */
	enum asked asked;
	const char *other_method;
	bool other_path;
	const char *word, *text, *yaml;
} cases[] = {
	{"GET", "open.com", "/", 443, PLAIN, "", false, "allowed",
		"open.com is allowed (rule: domains[0] open.com (net.yaml:1))", ""},
	{"POST", "gql.com", "/g", 443, FILTERED, "", false, "allowed",
		"gql.com is allowed if its body asks for what the graphql block of the rule "
		"lists (rule: url_prefixes[6] gql.com /g POST (net.yaml:9))",
		""},
	{"GET", "\x1b[31m", "/", 443, PLAIN, "", false, "bad_host",
		"%1B%5B31m is not a host name, so no rule can allow it", ""},
	{"GET", "open.com", "/..", 443, PLAIN, "", false, "bad_target",
		"open.com was not asked: the path holds a dot segment (. or ..), which no rule can "
		"allow",
		""},
	{"GET", "evil.com", "/x?y", 443, PLAIN, "", false, "host",
		"evil.com is not in the network allowlist",
		"url_prefixes:\n  - host: \"evil.com\"\n    path: \"/x\"\n    methods: "
		"[\"GET\"]\n"
		"    schemes: [https]\n"},
	{"GET", "10.0.0.1", "/", 80, PLAIN, "", false, "host_address",
		"10.0.0.1 is an address, and no rule of the network allowlist writes it out",
		"url_prefixes:\n  - host: \"10.0.0.1\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		"    schemes: [http]\n"},
	{"GET", "[2001:DB8::1]", "/", 80, PLAIN, "", false, "host_address",
		"[2001:DB8::1] is an address, and no rule of the network allowlist writes it out",
		"url_prefixes:\n  - host: \"[2001:db8::1]\"\n    path: \"/\"\n    methods: "
		"[\"GET\"]\n    schemes: [http]\n"},
	{"GET", "[fe80::1%eth0]", "/", 80, PLAIN, "", false, "bad_host",
		"%5Bfe80::1%25eth0%5D is not a host name, so no rule can allow it", ""},
	{"GET", "s.com", "/", 80, PLAIN, "", false, "scheme",
		"s.com is listed, but not for http (nearest rule: url_prefixes[3] s.com "
		"(net.yaml:6))",
		"url_prefixes:\n  - host: \"s.com\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		"    schemes: [http]\n"},
	{"GET", "p.com", "/", 443, PLAIN, "", false, "port",
		"p.com is listed, but not for https on port 443 (nearest rule: url_prefixes[2] "
		"p.com:8443 (net.yaml:5))",
		"url_prefixes:\n  - host: \"p.com\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"},
	{"", "open.com", "", 443, TUNNEL, "", false, "tunnel",
		"open.com is listed, but not for TLS that passes undecrypted (tunnel: true) "
		"(nearest rule: domains[0] open.com (net.yaml:1))",
		"url_prefixes:\n  - host: \"open.com\"\n    tunnel: true\n"},
	{"", "evil.com", "", 993, TUNNEL, "", false, "host",
		"evil.com is not in the network allowlist",
		"url_prefixes:\n  - host: \"evil.com\"\n    tunnel: true\n    ports: [993]\n"},
	{"GET", "t.com", "/", 443, PLAIN, "", false, "tunnel",
		"t.com is listed only for TLS that passes undecrypted (tunnel: true) (nearest "
		"rule: url_prefixes[4] t.com (net.yaml:7))",
		""},
	{"", "t.com", "", 443, TUNNEL, "", false, "allowed",
		"t.com is allowed: its TLS passes undecrypted (tunnel: true), whatever is in it "
		"(rule: url_prefixes[4] t.com (net.yaml:7))",
		""},
	{"", "10.0.0.1", "", 443, TUNNEL, "", false, "host_address",
		"10.0.0.1 is an address, and no rule of the network allowlist writes it out", ""},
	{"GET", "a.com", "/y\"", 443, PLAIN, "", false, "path",
		"a.com is listed, but not the path /y\" (nearest rule: url_prefixes[0] a.com /x* "
		"GET,HEAD (net.yaml:3))",
		"url_prefixes:\n  - host: \"a.com\"\n    path: \"/y\\\"\"\n    methods: "
		"[\"GET\"]\n"
		"    schemes: [https]\n"},
	{"GET", "a.com", "/x%2Fy", 443, PLAIN, "", false, "path_undecidable",
		"a.com is listed for some paths only, and the path holds an encoded slash (%2F): "
		"an entry with encoded_slash: true takes it as a slash (nearest rule: "
		"url_prefixes[0] a.com /x* GET,HEAD (net.yaml:3))",
		"url_prefixes:\n  - host: \"a.com\"\n    path: \"/x/y\"\n    methods: [\"GET\"]\n"
		"    encoded_slash: true\n    schemes: [https]\n"},
	{"GET", "a.com", "/x//y", 443, PLAIN, "", false, "path_undecidable",
		"a.com is listed for some paths only, and the path holds an empty segment (//): "
		"only an entry without a path can allow it (nearest rule: url_prefixes[0] a.com "
		"/x* GET,HEAD (net.yaml:3))",
		""},
	{"GET", "q.com", "/x?y", 443, PLAIN, "", false, "query",
		"q.com is listed, but this path only without a query (query: none) (nearest rule: "
		"url_prefixes[1] q.com /x (net.yaml:4))",
		"url_prefixes:\n  - host: \"q.com\"\n    path: \"/x\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"},
	{"GET", "git.com", "/refs?s=re[v]", 443, PLAIN, "", false, "method",
		"git.com is listed, but this path not for the method GET (nearest rule: "
		"url_prefixes[10] git.com /* PUT (net.yaml:14))",
		"url_prefixes:\n  - host: \"git.com\"\n    path: \"/refs?s=re[[]v]\"\n"
		"    methods: [\"GET\"]\n    schemes: [https]\n"},
	{"GET", "git2.com", "/refs?s=re", 443, PLAIN, "", false, "query",
		"git2.com is listed, but this path only with certain queries (nearest rule: "
		"url_prefixes[11] git2.com /refs?s=up* (net.yaml:15))",
		"url_prefixes:\n  - host: \"git2.com\"\n    path: \"/refs?s=re\"\n"
		"    methods: [\"GET\"]\n    schemes: [https]\n"},
	{"GET", "git2.com", "/refs", 443, PLAIN, "", false, "query",
		"git2.com is listed, but this path only with certain queries (nearest rule: "
		"url_prefixes[11] git2.com /refs?s=up* (net.yaml:15))",
		"url_prefixes:\n  - host: \"git2.com\"\n    path: \"/refs\"\n    query: none\n"
		"    methods: [\"GET\"]\n    schemes: [https]\n"},
	{"GET", "git2.com", "/refs?s=%75", 443, PLAIN, "", false, "query",
		"git2.com is listed, but this path only with certain queries (nearest rule: "
		"url_prefixes[11] git2.com /refs?s=up* (net.yaml:15))",
		""},
	{"GET", "git2.com", "/other?s=re", 443, PLAIN, "", false, "path",
		"git2.com is listed, but not the path /other (nearest rule: "
		"url_prefixes[11] git2.com /refs?s=up* (net.yaml:15))",
		"url_prefixes:\n  - host: \"git2.com\"\n    path: \"/other\"\n"
		"    methods: [\"GET\"]\n    schemes: [https]\n"},
	{"PO\nST", "a.com", "/x", 443, PLAIN, "", false, "method",
		"a.com is listed, but this path not for the method PO%0AST (nearest rule: "
		"url_prefixes[0] a.com /x* GET,HEAD (net.yaml:3))",
		""},
	{"GET", "ws.com", "/", 443, WEBSOCKET, "", false, "websocket",
		"ws.com is listed, but not for a WebSocket (websocket: false) (nearest rule: "
		"url_prefixes[5] ws.com (net.yaml:8))",
		"url_prefixes:\n  - host: \"ws.com\"\n    path: \"/\"\n    methods: [\"GET\"]\n"
		"    schemes: [https]\n"},
	{"POST", "gql.com", "/g", 443, WEBSOCKET, "", false, "websocket",
		"gql.com is listed with a graphql block, and a WebSocket cannot be looked into "
		"(nearest rule: url_prefixes[6] gql.com /g POST (net.yaml:9))",
		""},
	{"GET", "a.com", "/x", 443, PLAIN, "DELETE", false, "override",
		"a.com is listed for some methods only, and a header of the request (such as "
		"X-HTTP-Method-Override) asks for DELETE (nearest rule: url_prefixes[0] a.com /x* "
		"GET,HEAD (net.yaml:3))",
		"url_prefixes:\n  - host: \"a.com\"\n    path: \"/x\"\n    methods: [\"GET\", "
		"\"DELETE\"]\n"
		"    schemes: [https]\n"},
	{"GET", "a.com", "/x", 443, PLAIN, "*", false, "override",
		"a.com is listed for some methods only, and a header of the request (such as "
		"X-HTTP-Method-Override) asks for * (nearest rule: url_prefixes[0] a.com /x* "
		"GET,HEAD (net.yaml:3))",
		""},
	{"GET", "a.com", "/x", 443, PLAIN, "", true, "override",
		"a.com is listed for some paths only, and a header of the request (such as "
		"X-Original-URL) asks for another: only an entry without a path can allow it "
		"(nearest rule: url_prefixes[0] a.com /x* GET,HEAD (net.yaml:3))",
		""},
	{"PUT", "gql.com", "/G/", 443, FILTERED, "", false, "graphql",
		"gql.com is listed, but this may be another spelling or method of a path whose "
		"requests a graphql block judges, or lie below it, and no other entry goes around "
		"that: ask for the path as it is written there (nearest rule: url_prefixes[6] "
		"gql.com /g POST "
		"(net.yaml:9))",
		""},
	/* No entry beside it is of use. */
	{"DELETE", "gql.com", "/g", 443, FILTERED, "", false, "method",
		"gql.com is listed, but this path not for the method DELETE, only for what its "
		"graphql block judges (nearest rule: url_prefixes[6] gql.com /g POST (net.yaml:9))",
		""},
	{"DELETE", "gql.com", "/G", 443, FILTERED, "", false, "method",
		"gql.com is listed, but this path not for the method DELETE (nearest rule: "
		"url_prefixes[8] gql.com PUT (net.yaml:12))",
		""},
	{"DELETE", "gql.com", "/h", 443, FILTERED, "", false, "method",
		"gql.com is listed, but this path not for the method DELETE (nearest rule: "
		"url_prefixes[8] gql.com PUT (net.yaml:12))",
		"url_prefixes:\n  - host: \"gql.com\"\n    path: \"/h\"\n    methods: "
		"[\"DELETE\"]\n    schemes: [https]\n"},
	{"", "gql.com", "", 443, TUNNEL, "", false, "tunnel",
		"gql.com is listed, but not for TLS that passes undecrypted (tunnel: true) "
		"(nearest rule: url_prefixes[6] gql.com /g POST (net.yaml:9))",
		""},
	{"POST", "gql.com", "/g", 443, PLAIN, "", false, "body_filter",
		"gql.com is listed, but what the body asks for is not in the graphql block of the "
		"rule (nearest rule: url_prefixes[6] gql.com /g POST (net.yaml:9))",
		""},
};

/* Whether the suggestion, added to what there is, allows the request. */
static void check_helps(struct policy_request *req, struct str yaml)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	struct verdict v;

	must(allowlist_add_yaml(list, str_from(rules), "net.yaml", NULL) == 0);
	must(allowlist_add_yaml(list, yaml, "more", NULL) == 0);
	must(policy_decide(list, req, &v) == 0);
	check(v.allow);
}

static void test_each_reason(void)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	unsigned reasons = 0;

	must(allowlist_add_yaml(list, str_from(rules), "net.yaml", NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(4096), yaml = BUF_INIT(4096);
		struct policy_request req = {
			.scheme = cases[i].port == 80 ? POLICY_HTTP : POLICY_HTTPS,
			.host = str_from(cases[i].host),
			.port = cases[i].port,
			.method = str_from(cases[i].method),
			.target = str_from(cases[i].target),
			.other_method = str_from(cases[i].other_method),
			.other_path = cases[i].other_path,
			.tunnel = cases[i].asked == TUNNEL,
			.websocket = cases[i].asked == WEBSOCKET,
			.body_filtered = cases[i].asked == FILTERED};
		struct verdict v;

		must(policy_decide(list, &req, &v) == 0);
		must(policy_explain(&req, &v, &text) == 0 &&
			policy_suggest(list, &req, &v, &yaml) == 0);
		check_z(policy_reason_word(v.reason), cases[i].word);
		check_str(buf_str(&text), cases[i].text);
		check_str(buf_str(&yaml), cases[i].yaml);
		if (buf_len(&yaml) > 0)
			check_helps(&req, buf_str(&yaml));
		reasons |= 1U << v.reason;
	}
	/* None was left out; test-decide.c has what is of ssh alone. */
	check_int(reasons | 1U << POLICY_USER, (2U << POLICY_BODY) - 1);
}

/* What is suggested beside an entry for some queries does not open all of them. */
static void test_no_wider_than_the_query(void)
{
	static const char *const targets[] = {"/refs?s=re", "/refs"};

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
		_cleanup_(buf_donep) struct buf yaml = BUF_INIT(4096);
		struct policy_request req = {.scheme = POLICY_HTTPS,
			.host = STR("git2.com"),
			.port = 443,
			.method = STR("GET"),
			.target = str_from(targets[i])};
		struct verdict v;

		must(allowlist_add_yaml(list, str_from(rules), "net.yaml", NULL) == 0);
		must(policy_decide(list, &req, &v) == 0 && !v.allow);
		must(policy_suggest(list, &req, &v, &yaml) == 0);
		must(allowlist_add_yaml(list, buf_str(&yaml), "more", NULL) == 0);
		must(policy_decide(list, &req, &v) == 0);
		check(v.allow);
		req.target = STR("/refs?s=evil");
		must(policy_decide(list, &req, &v) == 0);
		check(!v.allow);
	}
}

int main(void)
{
	run_test(test_each_reason);
	run_test(test_no_wider_than_the_query);
	return tap_done();
}
