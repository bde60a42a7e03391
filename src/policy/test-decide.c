/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "policy/decide.h"

#include "seeded.h"
#include "tap.h"

static const char rules[] = "domains:\n"
			    "  - open.com\n"
			    "  - \"*.wild.com\"\n"
			    "  - 10.1.2.3\n"
			    "url_prefixes:\n"
			    "  - host: api.github.com\n" /* 0 */
			    "    path: /repos/org/repo/*\n"
			    "    methods: [GET]\n"
			    "  - host: api.github.com\n" /* 1 */
			    "    path: /repos/org/repo\n"
			    "  - host: api.github.com\n" /* 2 */
			    "    path: /graphql\n"
			    "    methods: [POST]\n"
			    "    graphql: {queries: ['*']}\n"
			    "  - host: api.anthropic.com\n" /* 3 */
			    "    path: /v1/messages*\n"
			    "    schemes: [https]\n"
			    "  - host: registry.npmjs.org\n" /* 4 */
			    "    path_prefix: /@scope\n"
			    "    encoded_slash: true\n"
			    "  - host: registry.npmjs.org\n" /* 5 */
			    "    path: /left-pad\n"
			    "    query: none\n"
			    "  - host: ports.com\n" /* 6 */
			    "    ports: [8443]\n"
			    "  - host: pinned.com\n" /* 7 */
			    "    tunnel: true\n"
			    "  - host: \"read.only\"\n" /* 8 */
			    "    methods: [GET, HEAD]\n"
			    "  - host: api.github.com\n" /* 9 */
			    "    path: /repos/org/repo/issues\n"
			    "    methods: [POST]\n";

static struct allowlist *list;

struct decision {
	const char *method, *url_host, *target;
	uint16_t port; /* 443: https, 80: http, other: https */
	enum policy_reason reason;
	int line; /* of the rule, 0: none */
};

static struct policy_request request(const struct decision *d)
{
	return (struct policy_request){
		.scheme = d->port == 80 ? POLICY_HTTP : POLICY_HTTPS,
		.host = str_from(d->url_host),
		.port = d->port,
		.method = str_from(d->method),
		.target = str_from(d->target),
	};
}

static const struct decision decisions[] = {
	/* hosts */
	{"GET", "open.com", "/", 443, POLICY_ALLOWED, 2},
	{"BREW", "open.com", "/any?thing", 443, POLICY_ALLOWED, 2},
	{"GET", "OPEN.com.", "/", 443, POLICY_ALLOWED, 2},
	{"GET", "open.com", "/", 80, POLICY_ALLOWED, 2},
	{"GET", "open.com", "/", 444, POLICY_PORT, 2},
	{"GET", "a.wild.com", "/", 443, POLICY_ALLOWED, 3},
	{"GET", "a.b.wild.com", "/", 443, POLICY_ALLOWED, 3},
	{"GET", "wild.com", "/", 443, POLICY_HOST, 0},
	{"GET", "evilwild.com", "/", 443, POLICY_HOST, 0},
	{"GET", "a.wild.com.evil.com", "/", 443, POLICY_HOST, 0},
	{"GET", "sub.open.com", "/", 443, POLICY_HOST, 0},
	{"GET", "evil.com", "/", 443, POLICY_HOST, 0},
	{"GET", "evil.com#.wild.com", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "evil.com%2f.wild.com", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "evil.com/.wild.com", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "x@open.com", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "open.com:443", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "127.1", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "0x7f000001", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "2130706433", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "[::ffff:169.254.169.254]", "/", 443, POLICY_BAD_HOST, 0},
	{"GET", "169.254.169.254", "/", 80, POLICY_HOST_ADDRESS, 0},
	{"GET", "[::1]", "/", 443, POLICY_HOST_ADDRESS, 0},
	{"GET", "10.1.2.3", "/", 443, POLICY_ALLOWED, 4},
	/* paths: every spelling of leaving /repos/org/repo */
	{"GET", "api.github.com", "/repos/org/repo/pulls", 443, POLICY_ALLOWED, 6},
	{"GET", "api.github.com", "/repos/org/repo/pulls?x=/../", 443, POLICY_ALLOWED, 6},
	{"GET", "api.github.com", "/repos/org/repo/..?x", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/../other", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/%2e%2e/other", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/%252e%252e/other", 443, POLICY_PATH_UNDECIDABLE,
		6},
	{"GET", "api.github.com", "/repos/org/repo/..;/other", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/..%5cother", 443, POLICY_PATH_UNDECIDABLE, 6},
	{"GET", "api.github.com", "/repos/org/repo/\\..\\other", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/.%09./other", 443, POLICY_PATH_UNDECIDABLE, 6},
	{"GET", "api.github.com", "/repos/org/repo//other", 443, POLICY_PATH_UNDECIDABLE, 6},
	{"GET", "api.github.com", "/repos/org/repo/./other", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/..#f", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo/a%2fb", 443, POLICY_PATH_UNDECIDABLE, 6},
	{"GET", "api.github.com", "/repos/org/repo/%c0%ae%c0%ae/x", 443, POLICY_PATH_UNDECIDABLE,
		6},
	{"GET", "api.github.com", "/repos/org/repo/%ef%bc%8e/x", 443, POLICY_PATH_UNDECIDABLE, 6},
	{"GET", "api.github.com", "/x%00", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/x%0d%0aX:%20y", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/repo\x80", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "/repos/org/other", 443, POLICY_PATH, 6},
	{"GET", "api.github.com", "/repos/org/repo-evil", 443, POLICY_PATH, 6},
	{"GET", "api.github.com", "/repos/org/repo", 443, POLICY_ALLOWED, 9},
	{"GET", "api.github.com", "/repos/org/repo?x=1", 443, POLICY_ALLOWED, 9},
	{"GET", "api.github.com", "*", 443, POLICY_BAD_TARGET, 0},
	{"GET", "api.github.com", "http://evil.com/", 443, POLICY_BAD_TARGET, 0},
	/* methods, and a later entry that allows what an earlier one did not */
	{"POST", "api.github.com", "/repos/org/repo/pulls", 443, POLICY_METHOD, 6},
	{"POST", "api.github.com", "/repos/org/repo/issues", 443, POLICY_ALLOWED, 30},
	{"get", "api.github.com", "/repos/org/repo/pulls", 443, POLICY_ALLOWED, 6},
	{"GETX", "api.github.com", "/repos/org/repo/pulls", 443, POLICY_METHOD, 6},
	{"DELETE", "read.only", "/x", 443, POLICY_METHOD, 28},
	{"HEAD", "read.only", "/x", 443, POLICY_ALLOWED, 28},
	/* graphql is refused until its body filter is there */
	{"POST", "api.github.com", "/graphql", 443, POLICY_BODY, 11},
	{"POST", "api.github.com", "/graphq%6c?x=1", 443, POLICY_BODY, 11},
	{"GET", "api.github.com", "/graphql", 443, POLICY_METHOD, 11},
	/* scheme and port */
	{"POST", "api.anthropic.com", "/v1/messages?beta=true", 443, POLICY_ALLOWED, 15},
	{"POST", "api.anthropic.com", "/v1/messag%65s", 443, POLICY_ALLOWED, 15},
	{"POST", "api.anthropic.com", "/v1/messages", 80, POLICY_SCHEME, 15},
	{"POST", "api.anthropic.com", "/v1/messages", 8443, POLICY_PORT, 15},
	{"GET", "ports.com", "/", 8443, POLICY_ALLOWED, 24},
	{"GET", "ports.com", "/", 443, POLICY_PORT, 24},
	/* encoded slashes if the rule takes them */
	{"GET", "registry.npmjs.org", "/@scope%2fpkg", 443, POLICY_ALLOWED, 18},
	{"GET", "registry.npmjs.org", "/@scope/pkg", 443, POLICY_ALLOWED, 18},
	{"GET", "registry.npmjs.org", "/@scopex/pkg", 443, POLICY_PATH, 18},
	{"GET", "registry.npmjs.org", "/@scope%2f..%2fother", 443, POLICY_BAD_TARGET, 0},
	{"GET", "registry.npmjs.org", "/@scope%252fpkg", 443, POLICY_PATH_UNDECIDABLE, 18},
	{"GET", "registry.npmjs.org", "/left-pad", 443, POLICY_ALLOWED, 21},
	{"GET", "registry.npmjs.org", "/left-pad?data=x", 443, POLICY_QUERY, 21},
	{"GET", "registry.npmjs.org", "/left-pad?", 443, POLICY_QUERY, 21},
	/* a whole host has no path to decide about, but what is malformed stays refused */
	{"GET", "open.com", "/web/http://other.com//x", 443, POLICY_ALLOWED, 2},
	{"GET", "open.com", "/@a%2fb", 443, POLICY_ALLOWED, 2},
	{"GET", "open.com", "/a%2520b", 443, POLICY_ALLOWED, 2},
	{"GET", "open.com", "/%e9", 443, POLICY_ALLOWED, 2},
	{"GET", "open.com", "/../x", 443, POLICY_BAD_TARGET, 0},
	{"GET", "open.com", "/x%00", 443, POLICY_BAD_TARGET, 0},
	{"GET", "open.com", "/a b", 443, POLICY_BAD_TARGET, 0},
	/* a tunnel entry is for tunnels */
	{"GET", "pinned.com", "/", 443, POLICY_TUNNEL, 26},
	{"GET", "pinned.com", "/", 80, POLICY_SCHEME, 26},
};

static void test_decisions(void)
{
	for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
		const struct decision *d = &decisions[i];
		struct policy_request req = request(d);
		struct verdict v;

		must(policy_decide(list, &req, &v) == 0);
		if (v.reason != d->reason || (v.rule ? (int)v.rule->line : 0) != d->line)
			tap_fail("%s %s:%u%s: %s, rule at line %u", d->method, d->url_host, d->port,
				d->target, policy_reason_word(v.reason), v.rule ? v.rule->line : 0);
		check_int(v.allow, d->reason == POLICY_ALLOWED);
		check((v.path_problem != PATH_OK) ==
			(v.reason == POLICY_BAD_TARGET || v.reason == POLICY_PATH_UNDECIDABLE));
	}
}

/* A header that changes method or path at some origins counts if the rule limits just that. */
static void test_override(void)
{
	static const struct {
		const char *host, *target, *other_method;
		bool other_path;
		enum policy_reason reason;
	} cases[] = {
		{"read.only", "/x", "DELETE", false, POLICY_OVERRIDE},
		{"read.only", "/x", "HEAD", false, POLICY_ALLOWED},
		{"read.only", "/x", "", true, POLICY_ALLOWED},
		{"api.github.com", "/repos/org/repo/pulls", "", true, POLICY_OVERRIDE},
		{"api.github.com", "/repos/org/repo/pulls", "DELETE", false, POLICY_OVERRIDE},
		{"api.github.com", "/repos/org/repo/pulls", "GET", false, POLICY_ALLOWED},
		{"open.com", "/x", "DELETE", true, POLICY_ALLOWED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req = {.scheme = POLICY_HTTPS,
			.port = 443,
			.method = STR("GET"),
			.host = str_from(cases[i].host),
			.target = str_from(cases[i].target),
			.other_method = str_from(cases[i].other_method),
			.other_path = cases[i].other_path};
		_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
		struct verdict v;

		must(policy_decide(list, &req, &v) == 0);
		check_int(v.reason, cases[i].reason);
		check_int(v.allow, cases[i].reason == POLICY_ALLOWED);
		/* another path is never suggested */
		must(v.allow || policy_suggest(list, &req, &v, &text) == 0);
		check_int(buf_len(&text) > 0, !v.allow && !cases[i].other_path);
	}
}

static void test_nul_in_host(void)
{
	struct policy_request req = {.scheme = POLICY_HTTPS,
		.port = 443,
		.method = STR("GET"),
		.target = STR("/"),
		.host = STR("open.com\0.evil.com")};
	struct verdict v;

	must(policy_decide(list, &req, &v) == 0);
	check_int(v.reason, POLICY_BAD_HOST);
	req.host = STR("evil.com\0.wild.com");
	must(policy_decide(list, &req, &v) == 0);
	check_int(v.reason, POLICY_BAD_HOST);
}

static void test_tunnel(void)
{
	struct policy_request req = {
		.scheme = POLICY_HTTPS, .host = STR("pinned.com"), .port = 443, .tunnel = true};
	struct verdict v;

	must(policy_decide(list, &req, &v) == 0);
	check(v.allow && v.rule->tunnel);
	req.host = STR("open.com");
	must(policy_decide(list, &req, &v) == 0);
	check_int(v.reason, POLICY_TUNNEL);
	req.host = STR("evil.com");
	must(policy_decide(list, &req, &v) == 0);
	check_int(v.reason, POLICY_HOST);
	req.host = STR("pinned.com");
	req.port = 22;
	must(policy_decide(list, &req, &v) == 0);
	check_int(v.reason, POLICY_PORT);
}

/* Plain TCP is judged by name and port, and its rules let nothing else pass. */
static void test_tcp(void)
{
	static const struct {
		const char *host;
		uint16_t port;
		enum policy_scheme scheme;
		enum policy_reason reason;
	} cases[] = {
		{"db.test", 5432, POLICY_TCP, POLICY_ALLOWED},
		{"DB.test.", 5432, POLICY_TCP, POLICY_ALLOWED},
		{"db.test", 5433, POLICY_TCP, POLICY_PORT},
		{"db.test", 5432, POLICY_HTTPS, POLICY_SCHEME},
		{"db.test", 5432, POLICY_HTTP, POLICY_SCHEME},
		{"web.test", 443, POLICY_TCP, POLICY_SCHEME},
		{"a.more.test", 6379, POLICY_TCP, POLICY_ALLOWED},
		{"10.0.0.5", 6379, POLICY_TCP, POLICY_ALLOWED},
		{"10.0.0.6", 6379, POLICY_TCP, POLICY_HOST_ADDRESS},
		{"x.test", 22, POLICY_TCP, POLICY_HOST},
		{"closed.test", 22, POLICY_TCP, POLICY_DENIED},
		{"closed.test", 23, POLICY_TCP, POLICY_ALLOWED},
		{"gone.test", 22, POLICY_TCP, POLICY_DENIED},
	};
	static const char *const shorthands[] = {"tcp://db.test:5432", "web.test",
		"tcp://*.more.test:6379", "tcp://10.0.0.5:6379", "tcp://closed.test:22",
		"tcp://closed.test:23", "tcp://gone.test:22", "!tcp://closed.test:22",
		"!gone.test"};
	_cleanup_(allowlist_freep) struct allowlist *tcp_rules = allowlist_new();
	uint8_t ports[ALLOWLIST_PORT_BYTES];

	check(!allowlist_tcp_ports(tcp_rules, ports));
	for (size_t i = 0; i < ARRAY_SIZE(shorthands); i++)
		must(allowlist_add_host(tcp_rules, str_from(shorthands[i]), NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req = {.scheme = cases[i].scheme,
			.host = str_from(cases[i].host),
			.port = cases[i].port,
			.method = STR("GET"),
			.target = STR("/")};
		struct verdict v;

		must(policy_decide(tcp_rules, &req, &v) == 0);
		printf("# %s:%u\n", cases[i].host, cases[i].port);
		check_int(v.reason, cases[i].reason);
		check_int(v.allow, cases[i].reason == POLICY_ALLOWED);
	}
	check(allowlist_tcp_ports(tcp_rules, ports));
	for (unsigned port = 0; port < 65536; port++)
		if ((ports[port / 8] >> port % 8 & 1) !=
			(port == 5432 || port == 6379 || port == 22 || port == 23))
			tap_fail("port %u", port);
}

/* An entry that opens addresses does so, whatever other entries allow the same. */
static void test_addresses(void)
{
	static const char yaml[] = "domains: [a.test, c.test]\n"
				   "url_prefixes:\n"
				   "  - host: a.test\n" /* 3 */
				   "    path: /mine/*\n"
				   "    allow_private: [10.0.0.0/8]\n"
				   "  - host: b.test\n" /* 6 */
				   "    path: /graphql\n"
				   "    methods: [POST]\n"
				   "    graphql: {queries: ['*']}\n"
				   "  - host: \"*.test\"\n" /* 10 */
				   "    path_prefix: /\n"
				   "    methods: [GET]\n"
				   "  - host: b.test\n" /* 13 */
				   "    path: /graphql\n"
				   "    methods: [POST]\n"
				   "    graphql: {queries: ['*']}\n"
				   "    allow_private: true\n"
				   "  - host: c.test\n" /* 18 */
				   "    scrub: false\n"
				   "    allow_private: true\n"
				   "  - host: c.test\n" /* 21 */
				   "    path: /x\n"
				   "    allow_private: true\n";
	static const struct {
		const char *method, *host, *target;
		unsigned line; /* 0: a domain */
	} cases[] = {
		{"GET", "a.test", "/mine/x", 3},
		{"POST", "a.test", "/mine/x", 3},
		{"GET", "a.test", "/other", 0},
		{"GET", "d.test", "/mine/x", 10},
		/* Its filter may refuse what the other's lets pass. */
		{"POST", "b.test", "/graphql", 6},
		/* What comes back is not scrubbed there. */
		{"GET", "c.test", "/y", 0},
		{"GET", "c.test", "/x", 21},
	};
	_cleanup_(allowlist_freep) struct allowlist *private_rules = allowlist_new(), *all = NULL;
	struct allowlist *more = allowlist_new();
	struct verdict v;

	must(allowlist_add_yaml(private_rules, str_from(yaml), "y", NULL) == 0);
	check(allowlist_opens_addresses(private_rules));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req = {.scheme = POLICY_HTTPS,
			.host = str_from(cases[i].host),
			.port = 443,
			.method = str_from(cases[i].method),
			.body_filtered = true,
			.target = str_from(cases[i].target)};

		must(policy_decide(private_rules, &req, &v) == 0);
		printf("# %s %s%s\n", cases[i].method, cases[i].host, cases[i].target);
		check(v.allow && v.reason == POLICY_ALLOWED);
		check_int(v.rule->line, cases[i].line ? cases[i].line : 1);
	}
	check(!allowlist_opens_addresses(more));
	must(allowlist_add_host(more, STR("e.test"), NULL) == 0 &&
		allowlist_extend(more, private_rules, &all, NULL) == 0);
	check(!allowlist_opens_addresses(more) && allowlist_opens_addresses(all));
	allowlist_free(more);
}

/* What is said of a refused connection, and what is proposed. */
static void test_tcp_told(void)
{
	_cleanup_(allowlist_freep) struct allowlist *tcp_rules = allowlist_new();
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	struct policy_request req = {.scheme = POLICY_TCP, .host = STR("db.test"), .port = 5432};
	struct verdict v;

	must(allowlist_add_host(tcp_rules, STR("tcp://db.test:22"), NULL) == 0);
	must(policy_decide(tcp_rules, &req, &v) == 0 && policy_explain(&req, &v, &text) == 0);
	check_str(buf_str(&text), "db.test is listed, but not for tcp on port 5432 (nearest rule: "
				  "--allow tcp://db.test:22)");
	buf_clear(&text);
	must(policy_suggest(tcp_rules, &req, &v, &text) == 0);
	check_str(buf_str(&text), "url_prefixes:\n  - host: \"db.test\"\n    schemes: [tcp]\n"
				  "    ports: [5432]\n");
	must(allowlist_add_yaml(tcp_rules, buf_str(&text), "y", NULL) == 0);
	must(policy_decide(tcp_rules, &req, &v) == 0);
	check(v.allow);
	buf_clear(&text);
	must(policy_explain(&req, &v, &text) == 0);
	check_str(buf_str(&text), "db.test is allowed on port 5432, whatever is in it (tcp) (rule: "
				  "url_prefixes[0] tcp://db.test:5432 (y:2))");
	req.host = STR("10.0.0.5");
	must(policy_decide(tcp_rules, &req, &v) == 0);
	buf_clear(&text);
	must(policy_suggest(tcp_rules, &req, &v, &text) == 0);
	check_int(buf_len(&text), 0);
}

/* This machine is reached by its own name alone, and by no pattern. */
static void test_machine(void)
{
	static const char *const patterns[] = {"*", "*.internal", "*.cloche.internal",
		"http://*:8080", "tcp://*.cloche.internal:8080", "?ost.cloche.internal"};
	static const struct {
		uint16_t port;
		enum policy_scheme scheme;
		enum policy_reason reason;
	} cases[] = {
		{8080, POLICY_HTTP, POLICY_ALLOWED},
		{8080, POLICY_TCP, POLICY_PORT},
		{5432, POLICY_TCP, POLICY_ALLOWED},
		{22, POLICY_TCP, POLICY_PORT},
		{80, POLICY_HTTP, POLICY_PORT},
		{443, POLICY_HTTPS, POLICY_SCHEME},
	};
	_cleanup_(allowlist_freep) struct allowlist *wide = allowlist_new();
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	struct policy_request req = {.scheme = POLICY_HTTP,
		.host = STR("Host.Cloche.Internal."),
		.port = 80,
		.method = STR("GET"),
		.target = STR("/")};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct verdict v;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		must(allowlist_add_host(wide, str_from(patterns[i]), NULL) == 0);
	must(policy_decide(wide, &req, &v) == 0);
	check_int(v.reason, POLICY_HOST);
	must(policy_suggest(wide, &req, &v, &text) == 0);
	check(strstr(buf_cstr(&text), "    ports: [80]\n"));
	must(allowlist_add_yaml(wide, buf_str(&text), "y", &err) == 0);
	must(policy_decide(wide, &req, &v) == 0);
	check(v.allow && allow_rule_names_machine(v.rule));
	check_int(allowlist_add_host(wide, STR(POLICY_MACHINE), &err), -E_USAGE);
	check(strstr(err.message, "expected a port with host.cloche.internal"));
	check_int(allowlist_add_host(wide, STR("!" POLICY_MACHINE), &err), 0);
	must(policy_decide(wide, &req, &v) == 0);
	check_int(v.reason, POLICY_DENIED);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(allowlist_freep) struct allowlist *list_of = allowlist_new();

		must(allowlist_add_host(list_of, STR("http://" POLICY_MACHINE ":8080"), NULL) == 0);
		must(allowlist_add_host(list_of, STR("tcp://" POLICY_MACHINE ":5432"), NULL) == 0);
		req.port = cases[i].port;
		req.scheme = cases[i].scheme;
		must(policy_decide(list_of, &req, &v) == 0);
		check_int(v.reason, cases[i].reason);
	}
}

static void test_websocket(void)
{
	static const char text[] =
		"domains: [open.com]\n"
		"url_prefixes:\n"
		"  - {host: ws.com, path: /off, websocket: false}\n"
		"  - {host: ws.com, path: /on}\n"
		"  - {host: ws.com, path: /post, methods: [POST]}\n"
		"  - {host: ws.com, path: /graphql, graphql: {queries: ['*']}}\n";
	static const struct {
		const char *host, *target;
		enum policy_reason reason;
	} cases[] = {
		{"open.com", "/", POLICY_ALLOWED},
		{"ws.com", "/on", POLICY_ALLOWED},
		{"ws.com", "/off", POLICY_WEBSOCKET},
		{"ws.com", "/post", POLICY_METHOD},
		{"ws.com", "/graphql", POLICY_WEBSOCKET},
	};
	_cleanup_(allowlist_freep) struct allowlist *rules_ws = allowlist_new();

	must(allowlist_add_yaml(rules_ws, str_from(text), "ws.yaml", NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req = {.scheme = POLICY_HTTPS,
			.host = str_from(cases[i].host),
			.port = 443,
			.method = STR("GET"),
			.target = str_from(cases[i].target),
			.websocket = true,
			.body_filtered = true};
		struct verdict v;

		must(policy_decide(rules_ws, &req, &v) == 0);
		check_int(v.reason, cases[i].reason);
		check_int(v.allow, cases[i].reason == POLICY_ALLOWED);
		req.websocket = false;
		must(policy_decide(rules_ws, &req, &v) == 0);
		check_int(v.allow, cases[i].reason != POLICY_METHOD);
	}
}

static void test_body_filter(void)
{
	struct policy_request req = {.scheme = POLICY_HTTPS,
		.host = STR("api.github.com"),
		.port = 443,
		.method = STR("POST"),
		.target = STR("/graphql"),
		.body_filtered = true};
	struct verdict v;

	must(policy_decide(list, &req, &v) == 0);
	check(v.allow && v.rule->has_graphql);
}

/* An entry with graphql for one path stands for every spelling and method of it, and a later entry
 * does not let those through that it does not. */
static void test_guarded_path(void)
{
	static const char text[] =
		"url_prefixes:\n"
		"  - {host: first.com, path: /graphql}\n"                             /* 2 */
		"  - {host: gql.com, path: /graphql, methods: [POST],\n"              /* 3 */
		"     graphql: {queries: [viewer]}}\n"                                /* 4 */
		"  - {host: gql.com, path: /other/*}\n"                               /* 5 */
		"  - {host: gql.com}\n"                                               /* 6 */
		"  - {host: prefix.com, path_prefix: /api/graphql, graphql: {}}\n"    /* 7 */
		"  - {host: prefix.com}\n"                                            /* 8 */
		"  - {host: first.com, path: /graphql, graphql: {}}\n"                /* 9 */
		"  - {host: two.com, path: /graphql, methods: [POST], graphql: {}}\n" /* 10 */
		"  - {host: two.com, graphql: {queries: [viewer]}}\n"                 /* 11 */
		"  - {host: wild.com, path: '/g*', methods: [POST], graphql: {}}\n"   /* 12 */
		"  - {host: wild.com}\n"                                              /* 13 */
		"  - {host: root.com, path: /, methods: [POST], graphql: {}}\n"       /* 14 */
		"  - {host: root.com}\n";                                             /* 15 */
	static const struct {
		const char *method, *host, *target;
		enum policy_reason reason;
		unsigned line;
	} cases[] = {
		{"POST", "gql.com", "/graphql", POLICY_ALLOWED, 3},
		{"POST", "gql.com", "/graph%71l?a", POLICY_ALLOWED, 3},
		{"GET", "gql.com", "/graphql?query={search}", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql/", POLICY_GRAPHQL, 3},
		{"POST", "GQL.com.", "/GraphQL", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "//graphql", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql;x", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql%2F", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/a%252fb", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "//x", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/%ff", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql.json", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql.", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql%20", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/%20graphql", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql%09", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql%23a", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql%3fa", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql%C2%A0", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/x%5Cgraphql", POLICY_GRAPHQL, 3},
		{"POST", "prefix.com", "/api%20/graphql.json", POLICY_GRAPHQL, 7},
		{"POST", "gql.com", "/graphql-docs", POLICY_ALLOWED, 6},
		{"POST", "gql.com", "/graphql_docs.html", POLICY_ALLOWED, 6},
		{"POST", "gql.com", "/a%20b.json", POLICY_ALLOWED, 6},
		{"POST", "gql.com", "/graphql.json/x", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphql/x", POLICY_GRAPHQL, 3},
		{"GET", "gql.com", "/GraphQL//x/y", POLICY_GRAPHQL, 3},
		{"POST", "gql.com", "/graphqlx", POLICY_ALLOWED, 6},
		{"POST", "gql.com", "/other/graphql", POLICY_ALLOWED, 5},
		{"GET", "prefix.com", "/api/graphql/x", POLICY_ALLOWED, 7},
		{"GET", "prefix.com", "/API/graphql", POLICY_GRAPHQL, 7},
		{"GET", "prefix.com", "/API/graphql/x", POLICY_GRAPHQL, 7},
		{"GET", "root.com", "//", POLICY_GRAPHQL, 14},
		{"GET", "root.com", "/x", POLICY_ALLOWED, 15},
		/* What stands before the entry was meant to be allowed, and another with graphql
		 * has a filter of its own. */
		{"GET", "first.com", "/graphql", POLICY_ALLOWED, 2},
		{"POST", "two.com", "/GraphQL", POLICY_ALLOWED, 11},
		/* One with wildcards does not say which path it means. */
		{"GET", "wild.com", "/graphql", POLICY_ALLOWED, 13},
	};
	_cleanup_(allowlist_freep) struct allowlist *guarded = allowlist_new();

	must(allowlist_add_yaml(guarded, str_from(text), "g.yaml", NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req = {.scheme = POLICY_HTTPS,
			.port = 443,
			.method = str_from(cases[i].method),
			.host = str_from(cases[i].host),
			.target = str_from(cases[i].target),
			.body_filtered = true};
		struct verdict v;

		must(policy_decide(guarded, &req, &v) == 0);
		if (v.reason != cases[i].reason || v.rule->line != cases[i].line)
			tap_fail("%s %s%s: %s, line %u", cases[i].method, cases[i].host,
				cases[i].target, policy_reason_word(v.reason), v.rule->line);
		check_int(v.allow, cases[i].reason == POLICY_ALLOWED);
		req.websocket = true;
		must(policy_decide(guarded, &req, &v) == 0);
		check(!v.allow || !v.rule->has_graphql);
		check(v.allow == (cases[i].reason == POLICY_ALLOWED && cases[i].line != 3 &&
					 cases[i].line != 7 && cases[i].line != 11));
		/* A header may lead to the path. */
		req.websocket = false;
		req.other_path = true;
		must(policy_decide(guarded, &req, &v) == 0);
		if (cases[i].line <= 8 && cases[i].line > 2)
			check(!v.allow);
	}
}

static void test_empty_list_blocks(void)
{
	_cleanup_(allowlist_freep) struct allowlist *empty = allowlist_new();

	for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
		struct policy_request req = request(&decisions[i]);
		struct verdict v;

		must(policy_decide(empty, &req, &v) == 0);
		check(!v.allow && !v.rule);
	}
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((s.p[i] < 0x20 && s.p[i] != '\n') || s.p[i] > 0x7e)
			return false;
	return true;
}

/* Following the suggestion allows the request, and not its neighbour. */
static void test_suggestions(void)
{
	int suggested = 0;

	for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
		_cleanup_(allowlist_freep) struct allowlist *fixed = allowlist_new();
		_cleanup_(buf_donep) struct buf yaml = BUF_INIT(8192), text = BUF_INIT(8192);
		struct policy_request req = request(&decisions[i]), other;
		struct cloche_err err = CLOCHE_ERR_INIT;
		struct verdict v;

		must(policy_decide(list, &req, &v) == 0);
		check(policy_explain(&req, &v, &text) == 0);
		check(buf_len(&text) > 15 && is_printable(buf_str(&text)));
		check(policy_suggest(list, &req, &v, &yaml) == 0);
		check(is_printable(buf_str(&yaml)));
		if (buf_len(&yaml) == 0)
			continue;
		suggested++;
		if (allowlist_add_yaml(fixed, buf_str(&yaml), "s", &err) < 0)
			tap_fail("%s: %.*s", err.message, (int)buf_len(&yaml), buf_data(&yaml));
		must(policy_decide(fixed, &req, &v) == 0);
		check(v.allow);
		other = req;
		other.target = STR("/something/else");
		must(policy_decide(fixed, &other, &v) == 0);
		check(!v.allow);
		other = req;
		other.method = STR("OTHER");
		must(policy_decide(fixed, &other, &v) == 0);
		check(!v.allow);
		other = req;
		other.scheme = req.scheme == POLICY_HTTP ? POLICY_HTTPS : POLICY_HTTP;
		other.port = req.port == 80 ? 443 : req.port == 443 ? 80 : req.port;
		must(policy_decide(fixed, &other, &v) == 0);
		check(!v.allow);
	}
	check(suggested > 15);
}

/* Hostile requests cannot put a second rule into the suggestion. */
static void test_hostile_suggestions(void)
{
	static const char bytes[] = "/a\"\\:\n-{}[]*?#&!%25%22%0A%5b'\t\x80";
	int suggested = 0;

	for (int i = 0; i < 20000; i++) {
		_cleanup_(allowlist_freep) struct allowlist *fixed = allowlist_new();
		_cleanup_(buf_donep) struct buf yaml = BUF_INIT(8192), text = BUF_INIT(8192);
		char target[24] = "/", method[4];
		uint32_t n = 1 + rand_below(sizeof(target) - 1), m = rand_below(sizeof(method));
		struct policy_request req = {.scheme = POLICY_HTTPS,
			.host = STR("evil.com"),
			.port = 443,
			.target = str_make(target, n),
			.method = str_make(method, m)};
		struct verdict v;

		for (uint32_t j = 1; j < n; j++)
			target[j] = bytes[rand_below(sizeof(bytes) - 1)];
		for (uint32_t j = 0; j < m; j++)
			method[j] = rand_below(4) ? 'A' : bytes[rand_below(sizeof(bytes) - 1)];
		must(policy_decide(list, &req, &v) == 0);
		check(!v.allow);
		check(policy_explain(&req, &v, &text) == 0 && is_printable(buf_str(&text)));
		check(policy_suggest(list, &req, &v, &yaml) == 0);
		if (buf_len(&yaml) == 0)
			continue;
		suggested++;
		must(allowlist_add_yaml(fixed, buf_str(&yaml), "s", NULL) == 0);
		check_int(allowlist_count(fixed), 1);
		must(policy_decide(fixed, &req, &v) == 0);
		if (!v.allow)
			tap_fail("%.*s", (int)buf_len(&yaml), buf_data(&yaml));
	}
	check(suggested > 100);
}

/* A decision does not depend on how the host is spelled. */
static void test_host_spelling(void)
{
	for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
		struct policy_request req = request(&decisions[i]);
		struct verdict first, second;
		struct host host;

		if (host_parse(req.host, &host) < 0)
			continue;
		must(policy_decide(list, &req, &first) == 0);
		req.host = host_str(&host);
		must(policy_decide(list, &req, &second) == 0);
		check(first.reason == second.reason && first.rule == second.rule);
	}
}

/* Each step is added to those before it; the last word counts. */
static void test_denials(void)
{
	static const struct {
		const char *add; /* NULL: as before */
		struct decision d;
	} steps[] = {
		{"open.com", {"GET", "open.com", "/a", 443, POLICY_ALLOWED, 0}},
		{"!open.com", {"GET", "open.com", "/a", 443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/a", 80, POLICY_DENIED, 0}},
		{NULL, {"GET", "other.com", "/", 443, POLICY_HOST, 0}},
		{"http://open.com/x", {"GET", "open.com", "/x/y", 80, POLICY_ALLOWED, 0}},
		{NULL, {"GET", "open.com", "/y", 80, POLICY_DENIED, 0}},
		{"open.com:8443", {"GET", "open.com", "/y", 8443, POLICY_ALLOWED, 0}},
		{"open.com", {"GET", "open.com", "/y", 443, POLICY_ALLOWED, 0}},
		{"!https://open.com/secret", {"GET", "open.com", "/y", 443, POLICY_ALLOWED, 0}},
		{NULL, {"GET", "open.com", "/secret", 443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/secret/a", 443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/SECRET;v=1", 443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/%73ecret", 443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/a%2fb", 443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/secret", 80, POLICY_ALLOWED, 0}},
		{"!*.com:8443", {"GET", "open.com", "/y", 8443, POLICY_DENIED, 0}},
		{NULL, {"GET", "open.com", "/y", 443, POLICY_ALLOWED, 0}},
	};
	struct allowlist *all = allowlist_new();
	struct verdict v;

	must(all);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct policy_request req = request(&steps[i].d);

		if (steps[i].add) {
			_cleanup_(allowlist_freep) struct allowlist *more = allowlist_new();
			struct allowlist *next;

			must(more && allowlist_add_host(more, str_from(steps[i].add), NULL) == 0);
			must(allowlist_extend(all, more, &next, NULL) == 0);
			check_int(allowlist_count(more) + allowlist_denials(more), 0);
			allowlist_free(all);
			all = next;
		}
		must(policy_decide(all, &req, &v) == 0);
		if (v.reason != steps[i].d.reason)
			tap_fail("step %zu: %s", i, policy_reason_word(v.reason));
		check(v.allow == (v.reason == POLICY_ALLOWED));
	}
	check_int(allowlist_count(all), 4);
	check_int(allowlist_denials(all), 3);
	allowlist_free(all);
}

/* A list that was extended stays as it was, whichever of the two ends first. */
static void test_extended(void)
{
	struct allowlist *old = allowlist_new(), *more = allowlist_new(), *all;
	const struct decision d = {"GET", "a.com", "/", 443, POLICY_ALLOWED, 0};
	struct policy_request req = request(&d);
	struct verdict v;

	must(old && more && allowlist_add_host(old, STR("a.com"), NULL) == 0);
	must(allowlist_add_host(more, STR("!a.com"), NULL) == 0);
	must(allowlist_extend(old, more, &all, NULL) == 0);
	allowlist_free(more);
	must(policy_decide(old, &req, &v) == 0 && v.allow);
	must(policy_decide(all, &req, &v) == 0 && !v.allow);
	allowlist_free(all);
	must(policy_decide(old, &req, &v) == 0 && v.allow);
	check_z(v.rule->label, "--allow a.com");
	allowlist_free(old);
}

int main(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	seeded_begin();
	list = allowlist_new();
	if (allowlist_add_yaml(list, str_from(rules), "net.yaml", &err) < 0)
		printf("# %s\n", err.message);
	must(allowlist_count(list) == 13);
	run_test(test_decisions);
	run_test(test_override);
	run_test(test_nul_in_host);
	run_test(test_tunnel);
	run_test(test_tcp);
	run_test(test_tcp_told);
	run_test(test_addresses);
	run_test(test_machine);
	run_test(test_websocket);
	run_test(test_body_filter);
	run_test(test_guarded_path);
	run_test(test_empty_list_blocks);
	run_test(test_suggestions);
	run_test(test_hostile_suggestions);
	run_test(test_host_spelling);
	list = allowlist_free(list);
	run_test(test_denials);
	run_test(test_extended);
	return tap_done();
}
