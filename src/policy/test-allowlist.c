/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/rand.h"
#include "base/strv.h"
#include "policy/allowlist.h"

#include "seeded.h"
#include "tap.h"

static const char common_format[] = "# what the sandbox may reach\n"
				    "domains:\n"
				    "  - \"*.example.com\"\n"
				    "  - pypi.org\n"
				    "\n"
				    "url_prefixes:\n"
				    "  - host: api.github.com\n"
				    "    path: /graphql\n"
				    "    methods: [POST]\n"
				    "    graphql:\n"
				    "      queries: [\"*\"]\n"
				    "      mutations: [createIssue, \"update*\"]\n"
				    "      subscriptions: []\n"
				    "  - host: api.anthropic.com\n"
				    "    path: /v1/messages*\n"
				    "  - host: \"*\"\n"
				    "    path: \"\"\n"
				    "    methods: [GET, head]\n";

static void test_common_format(void)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	const struct allow_rule *r;

	must(allowlist_add_yaml(list, str_from(common_format), "net.yaml", NULL) == 0);
	check_int(allowlist_count(list), 5);
	r = allowlist_rule(list, 0);
	check(r->is_domain && r->line == 3 && r->index == 0);
	check_z(r->host, "*.example.com");
	check_z(r->label, "domains[0] *.example.com (net.yaml:3)");
	check_int(r->schemes, POLICY_HTTPS | POLICY_HTTP);
	check(r->websocket && r->scrub && !r->tunnel && !r->encoded_slash && !r->allow_private);
	r = allowlist_rule(list, 2);
	check(!r->is_domain && r->has_graphql && r->line == 7);
	check_z(r->label, "url_prefixes[0] api.github.com /graphql POST (net.yaml:7)");
	check_int(strv_count(r->graphql_queries), 1);
	check_int(strv_count(r->graphql_mutations), 2);
	check_z(r->graphql_mutations[1], "update*");
	check_int(strv_count(r->graphql_subscriptions), 0);
	r = allowlist_rule(list, 4);
	check(r->path == NULL && strv_count(r->methods) == 2);
	check_z(r->methods[1], "HEAD");
}

static void test_extensions(void)
{
	static const char text[] =
		"url_prefixes:\n"
		"  - {host: reg.internal, ports: [443, 8443], schemes: [https],\n"
		"     allow_private: [10.0.0.0/8, 'fd00::/8'], path_prefix: /npm/,\n"
		"     encoded_slash: true, websocket: false, scrub: false, query: none}\n"
		"  - host: pinned.example.org\n"
		"    tunnel: true\n"
		"  - host: 127.0.0.1\n"
		"    ports: [8080]\n"
		"  - host: '[::1]'\n"
		"    allow_private: true\n";
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	struct address_policy addresses;
	const struct allow_rule *r;

	must(allowlist_add_yaml(list, str_from(text), "x", NULL) == 0);
	r = allowlist_rule(list, 0);
	check_int(r->schemes, POLICY_HTTPS);
	check_int(r->n_ports, 2);
	check_int(r->ports[1], 8443);
	check_z(r->path_prefix, "/npm");
	check(r->encoded_slash && !r->websocket && !r->scrub && r->no_query);
	addresses = allow_rule_addresses(r);
	check_int(addresses.n_allow, 2);
	check(!addresses.allow_private);
	r = allowlist_rule(list, 1);
	check(r->tunnel && r->schemes == POLICY_HTTPS);
	/* an address that is written out is named */
	check_int(allowlist_rule(list, 2)->n_private_ranges, 1);
	check_int(allowlist_rule(list, 2)->private_ranges[0].bits, 128);
	check_int(allowlist_rule(list, 3)->n_private_ranges, 1);
	check(allow_rule_addresses(allowlist_rule(list, 3)).allow_private);
}

static void test_empty(void)
{
	static const char *const texts[] = {"", "\n\n", "# nothing\n", "---\n", "--- ~\n", "null\n",
		"{}\n", "domains:\n", "domains: []\nurl_prefixes: []\n",
		"domains: ~\nurl_prefixes:\n",
		("\xef\xbb\xbf"
		 "domains: []\n"),
		"---\ndomains: []\n...\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
		struct cloche_err err = CLOCHE_ERR_INIT;

		if (allowlist_add_yaml(list, str_from(texts[i]), "e", &err) < 0)
			tap_fail("text %zu: %s", i, err.message);
		check_int(allowlist_count(list), 0);
	}
}

static const struct {
	const char *text, *message; /* how the message begins */
} errors[] = {
	{"domains: x.com\n", "f:1:10: expected a list of host patterns, not \"x.com\""},
	{"domains: {a: b}\n", "f:1:10: expected a list of host patterns"},
	{"- x.com\n", "f:1:1: expected a mapping with domains and url_prefixes"},
	{"x.com\n", "f:1:1: expected a mapping"},
	{"domain:\n  - x.com\n", "f:1:1: expected the key domains or url_prefixes, not \"domain\""},
	{"domains:\n  - x.com\ndomains:\n  - y.com\n", "f:3:1: expected each key once"},
	{"domains:\n  - x.com:443\n", "f:2:5: expected a host name or host pattern"},
	{"domains:\n  - https://x.com\n", "f:2:5: expected a host name"},
	{"domains:\n  - x.com/path\n", "f:2:5: expected a host name"},
	{"domains:\n  - ''\n", "f:2:5: expected a host name"},
	{"domains:\n  -\n", "f:2:4: expected a host name"},
	{"domains:\n  - ~\n", "f:2:5: expected a host name"},
	{"domains:\n  - true\n", "f:2:5: expected a host name"},
	{"domains:\n  - 127.1\n", "f:2:5: expected a host name"},
	{"domains:\n  - 2130706433\n", "f:2:5: expected a host name"},
	{"domains:\n  - 0x7f.1\n", "f:2:5: expected a host name"},
	{"domains:\n  - [x.com]\n", "f:2:5: expected a host name"},
	{"domains:\n  - {host: x.com}\n", "f:2:5: expected a host name"},
	{"domains:\n  - \"a b\"\n", "f:2:5: expected a host name"},
	{"domains:\n  - \"a\\0b\"\n", "f:2:5: expected a host name"},
	{"domains:\n  - b\xc3\xbc"
	 "cher.de\n",
		"f:2:5: expected a host in ASCII (an international name in its xn-- form)"},
	{"domains: [a.com, *x]\n", "f:1:18: expected no alias"},
	{"domains: &a [a.com]\n", "f:1:10: expected no anchor"},
	{"domains: [&a a.com, *a]\n", "f:1:11: expected no anchor"},
	{"domains: [!!str a.com]\n", "f:1:11: expected no anchor and no tag"},
	{"domains: !!set {a.com}\n", "f:1:10: expected no anchor and no tag"},
	{"domains: []\n---\ndomains: []\n", "f:2:1: expected one document"},
	{"domains: [\n", "f:2:1: not YAML"},
	{"domains: ]\n", "f:1:10: not YAML"},
	{"domains:\n\t- x\n", "f:2:1: not YAML"},
	{"a: b: c\n", "f:1:"},
	{"\"\n", "f:"},
	{"domains: [\"\xff\"]\n", "f:"},
	{"url_prefixes:\n  - x.com\n", "f:2:5: expected an entry with the keys"},
	{"url_prefixes:\n  - path: /x\n", "f:2:5: expected a `host` in this entry"},
	{"url_prefixes:\n  - {}\n", "f:2:5: expected a `host` in this entry"},
	{"url_prefixes:\n  - host: x.com\n    pth: /x\n", "f:3:5: expected path, not \"pth\""},
	{"url_prefixes:\n  - host: x.com\n    method: [GET]\n", "f:3:5: expected methods, not"},
	{"url_prefixes:\n  - host: x.com\n    zzz: /x\n", "f:3:5: expected an entry with the keys"},
	{"url_prefixes:\n  - host: x.com\n    host: y.com\n", "f:3:5: expected each key once"},
	{"url_prefixes:\n  - host: x.com\n    path: x\n", "f:3:11: expected a path that begins"},
	{"url_prefixes:\n  - host: x.com\n    path: [/x]\n", "f:3:11: expected a path"},
	{"url_prefixes:\n  - host: x.com\n    path: ~\n", "f:3:11: expected a path"},
	{"url_prefixes:\n  - host: x.com\n    path:\n", "f:3:10: expected a path"},
	{"url_prefixes:\n  - host: x.com\n    methods:\n", "f:3:13: expected a list of methods"},
	{"url_prefixes:\n  - host: x.com\n    path: /a%2fb\n", "f:3:11: expected a path with the"},
	{"url_prefixes:\n  - host: x.com\n    path: \"/a\\\\b\"\n",
		"f:3:11: expected a path without"},
	{"url_prefixes:\n  - host: x.com\n    path: \"/a\\nb\"\n",
		"f:3:11: expected a path without"},
	{"url_prefixes:\n  - host: x.com\n    path_prefix: /a*\n",
		"f:3:18: expected a path without `*`"},
	{"url_prefixes:\n  - host: x.com\n    path_prefix: ''\n", "f:3:18: expected a path"},
	{"url_prefixes:\n  - host: x.com\n    path: /a\n    path_prefix: /b\n",
		"f:2:5: expected `path` or"},
	{"url_prefixes:\n  - host: x.com\n    methods: POST\n",
		"f:3:14: expected a list of methods"},
	{"url_prefixes:\n  - host: x.com\n    methods: [\"GET \"]\n",
		"f:3:15: expected an HTTP method"},
	{"url_prefixes:\n  - host: x.com\n    methods: [\"*\"]\n",
		"f:3:15: expected an HTTP method"},
	{"url_prefixes:\n  - host: x.com\n    methods:\n", "f:3:13: expected a list of methods"},
	{"url_prefixes:\n  - host: x.com\n    ports: 443\n", "f:3:12: expected a list of ports"},
	{"url_prefixes:\n  - host: x.com\n    ports: [0]\n", "f:3:13: expected a port from"},
	{"url_prefixes:\n  - host: x.com\n    ports: [65536]\n", "f:3:13: expected a port from"},
	{"url_prefixes:\n  - host: x.com\n    ports: [https]\n", "f:3:13: expected a port from"},
	{"url_prefixes:\n  - host: x.com\n    ports: ['443']\n",
		"f:3:13: expected a list of ports"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [ftp]\n",
		"f:3:15: expected https, http, tcp or ssh"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [http, http]\n",
		"f:3:21: expected https, http, tcp or ssh"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [tcp]\n", "f:2:5: expected tcp with a port"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [tcp, https]\n    ports: [1]\n",
		"f:2:5: expected tcp without https, http and ssh"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [tcp]\n    ports: [1]\n    path: /\n",
		"f:2:5: expected tcp without path"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [tcp]\n    ports: [1]\n    methods: [GET]\n",
		"f:2:5: expected tcp without path"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [tcp]\n    ports: [1]\n    tunnel: true\n",
		"f:2:5: expected tcp without path"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [ssh, https]\n",
		"f:2:5: expected ssh without https, http and tcp"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [ssh]\n    methods: [GET]\n",
		"f:2:5: expected the methods FETCH and PUSH with ssh"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [ssh]\n    query: none\n",
		"f:2:5: expected ssh without query"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [ssh]\n    user: a b\n",
		"f:4:11: expected a user of ssh"},
	{"url_prefixes:\n  - host: x.com\n    user: git\n", "f:2:5: expected `user` with schemes"},
	{"url_prefixes:\n  - host: x.com\n    schemes: [tcp]\n    ports: [1, 53]\n",
		"f:2:5: expected tcp on another port than those of DNS"},
	{"url_prefixes:\n  - host: x.com\n    query: some\n", "f:3:12: expected any or none"},
	{"url_prefixes:\n  - host: x.com\n    tunnel: yes\n", "f:3:13: expected true or false"},
	{"url_prefixes:\n  - host: x.com\n    tunnel: 'true'\n", "f:3:13: expected true or false"},
	{"url_prefixes:\n  - host: x.com\n    tunnel: true\n    path: /x\n",
		"f:2:5: expected a tunnel without"},
	{"url_prefixes:\n  - host: x.com\n    tunnel: true\n    schemes: [http]\n",
		"f:2:5: expected a tunnel"},
	{"url_prefixes:\n  - host: 10.0.0.1\n    tunnel: true\n",
		"f:2:5: expected a tunnel to a host name"},
	{"url_prefixes:\n  - host: '[::1]'\n    tunnel: true\n",
		"f:2:5: expected a tunnel to a host name"},
	{"url_prefixes:\n  - host: x.com\n    allow_private: [10.0.0.1/8]\n",
		"f:3:21: expected an address range"},
	{"url_prefixes:\n  - host: x.com\n    allow_private: {a: b}\n",
		"f:3:20: expected true, false or a list"},
	{"url_prefixes:\n  - host: x.com\n    graphql: true\n",
		"f:3:14: expected a mapping with queries"},
	{"url_prefixes:\n  - host: x.com\n    graphql: {query: []}\n",
		"f:3:15: expected queries, not \"query\""},
	{"url_prefixes:\n  - host: x.com\n    graphql: {queries: ['a b']}\n",
		"f:3:25: expected a GraphQL field"},
	{"url_prefixes:\n  - host: x.com\n    <<: {path: /x}\n", "f:3:5: expected an entry"},
	{"url_prefixes:\n  - ? [a]\n    : b\n", "f:2:7: expected an entry"},
};

static void test_errors(void)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
		struct cloche_err err = CLOCHE_ERR_INIT;
		int r = allowlist_add_yaml(list, str_from(errors[i].text), "f", &err);

		check_int(r, -E_CONFIG);
		check_int(err.code, E_CONFIG);
		if (strncmp(err.message, errors[i].message, strlen(errors[i].message)) != 0)
			tap_fail("%s gives: %s", errors[i].text, err.message);
		check_int(allowlist_count(list), 0);
	}
}

/* A file with a mistake at its end adds nothing. */
static void test_all_or_nothing(void)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();

	must(allowlist_add_yaml(list, STR("domains: [a.com]"), "1", NULL) == 0);
	check(allowlist_add_yaml(list, STR("domains: [b.com, c.com, 'd e']"), "2", NULL) < 0);
	check_int(allowlist_count(list), 1);
	check_z(allowlist_rule(list, 0)->host, "a.com");
}

static void add_entries(struct buf *b, int n)
{
	must(buf_add_str(b, STR("domains:\n")) == 0);
	for (int i = 0; i < n; i++)
		must(buf_printf(b, "- h%d.com\n", i) == 0);
}

static void test_limits(void)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4U << 20);
	struct cloche_err err = CLOCHE_ERR_INIT;

	add_entries(&b, ALLOWLIST_MAX_RULES + 1);
	check_int(allowlist_add_yaml(list, buf_str(&b), "f", &err), -E_CONFIG);
	check(strstr(err.message, "at most 10000 rules") != NULL);
	buf_clear(&b);
	add_entries(&b, ALLOWLIST_MAX_RULES);
	check_int(allowlist_add_yaml(list, buf_str(&b), "f", NULL), 0);
	check_int(allowlist_count(list), ALLOWLIST_MAX_RULES);
	check(allowlist_add_host(list, STR("one.more"), NULL) < 0);

	buf_clear(&b);
	must(buf_add_str(&b, STR("#")) == 0);
	for (int i = 0; i < 1 << 20; i++)
		must(buf_add_char(&b, 'x') == 0);
	check_int(allowlist_add_yaml(list, buf_str(&b), "f", &err), -E_CONFIG);
	check(strstr(err.message, "1 MiB") != NULL);

	/* depth costs nothing */
	buf_clear(&b);
	for (int i = 0; i < 1 << 20; i++)
		must(buf_add_char(&b, '[') == 0);
	check(allowlist_add_yaml(list, buf_str(&b), "f", NULL) < 0);
}

static void test_shorthand(void)
{
	static const struct {
		const char *in, *label;
	} good[] = {
		{"Example.COM", "--allow example.com"},
		{"*.example.com", "--allow *.example.com"},
		{"example.com:8443", "--allow example.com:8443"},
		{"[::1]:8080", "--allow [::1]:8080"},
		{"[::1]", "--allow [::1]"},
		{"10.0.0.1:80", "--allow 10.0.0.1:80"},
		{"https://example.com", "--allow example.com"},
		{"https://example.com/", "--allow example.com"},
		{"http://example.com:8080/a/b", "--allow example.com:8080 /a/b/..."},
		{"https://example.com/a*", "--allow example.com /a*"},
	};
	static const char *const bad[] = {"", "example.com:", "example.com:x", "example.com:0",
		"ftp://example.com", "https://", "https:///x", "https://u@example.com", "a b",
		"[::1", "example.com/path", "https://example.com/a%2fb", "2130706433",
		"https://a.com\\b", "HTTPS://x.com", "a.com,b.com", "--json", "-a.com",
		"https://-a.com/x", "::1", "http://http://x"};
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	size_t n = sizeof(good) / sizeof(good[0]);

	for (size_t i = 0; i < n; i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		bool found = false;

		if (allowlist_add_host(list, str_from(good[i].in), &err) < 0)
			tap_fail("%s: %s", good[i].in, err.message);
		for (size_t j = 0; j < allowlist_count(list); j++)
			found |= strcmp(allowlist_rule(list, j)->label, good[i].label) == 0;
		if (!found)
			tap_fail("%s: no rule %s", good[i].in, good[i].label);
	}
	check_int(allowlist_count(list), n);
	check(allowlist_rule(list, 0)->is_domain && allowlist_rule(list, 0)->line == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;

		if (allowlist_add_host(list, str_from(bad[i]), &err) != -E_USAGE)
			tap_fail("accepted %s", bad[i]);
		check(strncmp(err.message, "--allow", 7) == 0);
	}
	check_int(allowlist_count(list), n);
}

/* Domains come first, whatever the order of the sources. */
static void test_order(void)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();

	must(allowlist_add_host(list, STR("https://a.com/x"), NULL) == 0);
	must(allowlist_add_yaml(
		     list, STR("url_prefixes: [{host: b.com}]\ndomains: [c.com]"), "f", NULL) == 0);
	must(allowlist_add_host(list, STR("d.com"), NULL) == 0);
	check_z(allowlist_rule(list, 0)->host, "c.com");
	check_z(allowlist_rule(list, 1)->host, "d.com");
	check_z(allowlist_rule(list, 2)->host, "a.com");
	check_z(allowlist_rule(list, 3)->host, "b.com");
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < i; k++)
			check(allowlist_rule(list, i)->number != allowlist_rule(list, k)->number);
}

/* Damaged text is refused or read, and never more. */
static void test_damage(void)
{
	char text[sizeof(common_format)];

	for (int i = 0; i < 3000; i++) {
		_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
		size_t n = rand_below(sizeof(text));

		memcpy(text, common_format, sizeof(text));
		for (uint32_t j = rand_below(4); j > 0; j--)
			text[rand_below(sizeof(text))] = (char)rand_below(256);
		if (allowlist_add_yaml(list, str_make(text, n), "f", NULL) < 0)
			check_int(allowlist_count(list), 0);
		else
			check(allowlist_count(list) <= 5);
	}
}

int main(void)
{
	seeded_begin();
	run_test(test_common_format);
	run_test(test_extensions);
	run_test(test_empty);
	run_test(test_errors);
	run_test(test_all_or_nothing);
	run_test(test_limits);
	run_test(test_shorthand);
	run_test(test_order);
	run_test(test_damage);
	return tap_done();
}
