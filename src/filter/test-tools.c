/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/tools.h"

#include "tap.h"

static const char yaml[] = "domains: [open.test, '*.wide.test']\n"
			   "url_prefixes:\n"
			   "- {host: get.test, methods: [GET]}\n"
			   "- {host: post.test, methods: [POST]}\n"
			   "- {host: both.test, path_prefix: /mcp, methods: [GET, POST]}\n"
			   "- {host: path.test, path: '/public/*'}\n"
			   "- {host: plain.test, schemes: [http]}\n"
			   "- {host: port.test, ports: [8443]}\n"
			   "- {host: query.test, query: none}\n"
			   "- {host: tunnel.test, tunnel: true}\n"
			   "- {host: gql.test, graphql: {queries: ['*']}}\n";

static struct allowlist *policy;

static void replace(char *s, char from, char to)
{
	for (; *s; s++)
		*s = *s == from ? to : *s;
}

/* Text with ' for ". What comes of it: "same", the changed body, or "ERROR DETAIL"; then, behind a
 * space, the tag in brackets if there is one. */
static const char *trim(const char *text)
{
	static char out[4096];
	struct filter_result res;
	struct buf *tag = &res.tag[FILTER_PLACE_TOOLS];
	bool changed;
	_cleanup_(buf_donep) struct buf json = BUF_INIT(1 << 20);
	_cleanup_json_ json_t *body = NULL;
	char source[4096];
	size_t n;

	snprintf(source, sizeof(source), "%s", text);
	replace(source, '\'', '"');
	must(json_text_read(str_from(source), JSON_DECODE_ANY, &body, NULL) == 0);
	filter_result_init(&res);
	must(tools_trim(body, policy, &res, &changed) == 0);
	must(json_text_write(&json, body, JSON_TEXT_COMPACT) == 0);
	if (res.error)
		n = (size_t)snprintf(
			out, sizeof(out), "%s %.*s", res.error, STR_FMT(buf_str(&res.detail)));
	else
		n = (size_t)snprintf(
			out, sizeof(out), "%.*s", STR_FMT(changed ? buf_str(&json) : STR("same")));
	if (buf_len(tag) > 0)
		snprintf(out + n, sizeof(out) - n, " [%.*s]", STR_FMT(buf_str(tag)));
	replace(out, '"', '\'');
	filter_result_done(&res);
	return out;
}

static void test_fetch(void)
{
	check_z(trim("{'tools':[{'type':'web_fetch_20250910','allowed_domains':['open.test',"
		     "'a.wide.test','get.test','OPEN.test','open.test/docs']}]}"),
		"same");
	check_z(trim("{'tools':[{'type':'web_fetch_20250910','allowed_domains':['open.test',"
		     "'evil.test']}]}"),
		"{'tools':[{'type':'web_fetch_20250910','allowed_domains':['open.test']}]} "
		"[web_fetch_20250910: dropped 1 of 2 domains: evil.test]");
	check_z(trim("{'tools':[{'type':'web_fetch_1','allowed_domains':['a.test','b.test']}]}"),
		"{'tools':[{'type':'web_fetch_1','allowed_domains':[]}]} "
		"[web_fetch_1: cleared allowed_domains (2 outside allowlist: a.test,b.test)]");
	check_z(trim("{'tools':[{'type':'web_fetch_1'}]}"),
		"{'tools':[{'type':'web_fetch_1','allowed_domains':[]}]} "
		"[web_fetch_1: forced empty allowed_domains]");
	check_z(trim("{'tools':[{'type':'Web_Fetch_1','allowed_domains':'open.test'}]}"),
		"{'tools':[{'type':'Web_Fetch_1','allowed_domains':[]}]} "
		"[Web_Fetch_1: forced empty allowed_domains]");
	check_z(trim("{'tools':[{'type':'web_fetch_1','allowed_domains':[]}]}"), "same");
}

/* What is no host is not open, but nothing that could stand for many hosts. */
static void test_no_hosts(void)
{
	check_z(trim("{'tools':[{'type':'web_fetch_1','allowed_domains':['open.test/simple',"
		     "'https://open.test','[o]pen.test']}]}"),
		"{'tools':[{'type':'web_fetch_1','allowed_domains':['open.test/simple']}]} "
		"[web_fetch_1: dropped 2 of 3 domains: https://open.test,[o]pen.test]");
}

static void test_search(void)
{
	check_z(trim("{'tools':[{'type':'web_search_1'}]}"), "same");
	check_z(trim("{'tools':[{'type':'web_search_1','allowed_domains':[]}]}"),
		"{'tools':[{'type':'web_search_1'}]} "
		"[web_search_1: removed empty allowed_domains]");
	check_z(trim("{'tools':[{'type':'web_search_1','allowed_domains':['x.test']}]}"),
		"{'tools':[{'type':'web_search_1'}]} "
		"[web_search_1: cleared allowed_domains (1 outside allowlist: x.test)]");
}

static void test_tools_without_the_key(void)
{
	check_z(trim("{'tools':[{'type':'bash_20250124'},{'type':'computer_20250124'},"
		     "{'type':'code_execution_20250825'},{'type':'custom'},{'name':'x'},1,null]}"),
		"same");
	check_z(trim("{'tools':[{'type':'code_execution_20990101'}]}"),
		"{'tools':[{'type':'code_execution_20990101','allowed_domains':[]}]} "
		"[code_execution_20990101: forced empty allowed_domains]");
	check_z(trim("{'tools':[{'type':'bash_20250124','allowed_domains':['x.test']}]}"),
		"{'tools':[{'type':'bash_20250124','allowed_domains':[]}]} "
		"[bash_20250124: cleared allowed_domains (1 outside allowlist: x.test)]");
	check_z(trim("{'tools':[{'type':'my_tool','allowed_domains':['x.test']}]}"), "same");
	check_z(trim("{'tools':{'type':'web_fetch_1'}}"), "same");
}

static void test_blocklists(void)
{
	check_z(trim("{'tools':[{'type':'web_search_1','blocked_domains':['x.test']}]}"),
		"blocklist_tool_config_unsupported web_search_1");
	check_z(trim("{'tools':[{'type':'web_fetch_1','blocked_domains':{}}]}"),
		"blocklist_tool_config_unsupported web_fetch_1");
	check_z(trim("{'tools':[{'type':'bash_20250124','blocked_domains':'x'}]}"),
		"blocklist_tool_config_unsupported bash_20250124");
	check_z(trim("{'tools':[{'type':'web_search_1','blocked_domains':[]},"
		     "{'type':'web_search_1','blocked_domains':null}]}"),
		"same");
}

static void test_wildcards(void)
{
	static const char *const domains[] = {
		"''", "'*.test'", "'a?.test'", "'.open.test'", "'open.test '", "'open\\ttest'"};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		snprintf(text, sizeof(text),
			"{'tools':[{'type':'web_fetch_1','allowed_domains':['open.test',%s]}]}",
			domains[i]);
		check(strncmp(trim(text), "wildcard_tool_domain_unsupported ", 33) == 0);
	}
	check_z(trim("{'tools':[{'type':'web_fetch_1','allowed_domains':[7]}]}"),
		"wildcard_tool_domain_unsupported <not-a-string>");
}

static void test_what_is_open(void)
{
	static const char *const open[] = {"open.test", "x.wide.test", "get.test", "open.test."};
	static const char *const closed[] = {"wide.test", "post.test", "both.test", "path.test",
		"plain.test", "port.test", "query.test", "tunnel.test", "gql.test", "open.test:443",
		"a@open.test", "https://open.test", "open.test\\x", "10.0.0.1", "/"};

	for (size_t i = 0; i < ARRAY_SIZE(open); i++)
		check_int(tools_host_is_open(policy, str_from(open[i])), 1);
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		if (tools_host_is_open(policy, str_from(closed[i])) != 0)
			tap_fail("%s is open", closed[i]);
}

static void test_many_domains_are_counted(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1024);

	must(buf_add_str(&text, STR("{'tools':[{'type':'web_fetch_1','allowed_domains':"
				    "['open.test'")) == 0);
	for (unsigned i = 0; i < 12; i++)
		must(buf_printf(&text, ",'x%u.test'", i) == 0);
	must(buf_add_str(&text, STR("]}]}")) == 0);
	check_z(strchr(trim(buf_cstr(&text)), ' '),
		" [web_fetch_1: dropped 12 of 13 domains: "
		"x0.test,x1.test,x2.test,x3.test,x4.test,x5.test,x6.test,x7.test,x8.test,x9.test "
		"+2 more]");
}

static void test_nested(void)
{
	check_z(trim("{'requests':[{'params':{'tools':[{'type':'web_fetch_1'}]}},"
		     "{'params':{'tools':[{'type':'web_fetch_2'}]}}]}"),
		"{'requests':[{'params':{'tools':[{'type':'web_fetch_1','allowed_domains':[]}]}},"
		"{'params':{'tools':[{'type':'web_fetch_2','allowed_domains':[]}]}}]} "
		"[web_fetch_1: forced empty allowed_domains; "
		"web_fetch_2: forced empty allowed_domains]");
	check_z(trim("[[{'tools':[{'type':'web_fetch_1','blocked_domains':[1]}]}]]"),
		"blocklist_tool_config_unsupported web_fetch_1");
	check_z(trim("17"), "same");
}

static void test_url_sources(void)
{
	static const struct {
		const char *url;
		bool open;
	} cases[] = {
		{"'https://open.test/a?b#c'", true},
		{"'HTTPS://Open.Test'", true},
		{"'https://open.test?q'", true},
		{"'http://open.test/'", true},
		{"'https://get.test/x'", true},
		{"'https://path.test/public/a'", true},
		{"'https://port.test:8443/'", true},
		{"'http://plain.test/'", true},
		{"'https://path.test/private'", false},
		{"'https://path.test/public/../private'", false},
		{"'https://post.test/'", false},
		{"'https://gql.test/'", false},
		{"'https://plain.test/'", false},
		{"'https://port.test/'", false},
		{"'https://open.test:444/'", false},
		{"'https://evil.test/'", false},
		{"'https://open.test@evil.test/'", false},
		{"'https://evil.test\\\\@open.test/'", false},
		{"'https://open.test\\\\.evil.test/'", false},
		{"'https://open.test/\\n'", false},
		{"' https://open.test/'", false},
		{"'https:/open.test/'", false},
		{"'https:open.test/'", false},
		{"'//open.test/'", false},
		{"'data:text/plain,x'", false},
		{"'ftp://open.test/'", false},
		{"'https://'", false},
		{"''", false},
		{"5", false},
		{"['https://open.test/']", false},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text),
			"{'messages':[{'content':[{'type':'image','source':"
			"{'type':'url','url':%s}}]}]}",
			cases[i].url);
		if ((strcmp(trim(text), "same") == 0) != cases[i].open)
			tap_fail("%s: %s", cases[i].url, trim(text));
	}
	check_z(trim("{'source':{'type':'url','url':'https://evil.test/'}}"),
		"tool_url_blocked https://evil.test/");
	check_z(trim("{'source':{'type':'url'}}"), "same");
	check_z(trim("{'source':{'type':'base64','url':'https://evil.test/'}}"), "same");
}

static void test_tool_use_is_not_looked_at(void)
{
	check_z(trim("{'messages':[{'content':[{'type':'tool_use','input':{'source':"
		     "{'type':'url','url':'https://evil.test/'},'tools':[{'type':'web_fetch_1'}]}}"
		     "]}]}"),
		"same");
	check_z(trim("{'type':'tool_use','input':1,"
		     "'x':{'type':'url','url':'https://evil.test/'}}"),
		"tool_url_blocked https://evil.test/");
	check_z(trim("{'type':'other','input':{'type':'url','url':'https://evil.test/'}}"),
		"tool_url_blocked https://evil.test/");
}

static void test_mcp_servers(void)
{
	check_z(trim("{'mcp_servers':[{'type':'url','url':'https://both.test/mcp/x'},"
		     "{'url':'https://open.test/'}]}"),
		"same");
	check_z(trim("{'mcp_servers':[{'type':'url','url':'https://get.test/'}]}"),
		"tool_url_blocked https://get.test/");
	check_z(trim("{'mcp_servers':[{'type':'stdio','url':'https://post.test/'}]}"),
		"tool_url_blocked https://post.test/");
	check_z(trim("{'mcp_servers':{'url':'https://evil.test/'}}"),
		"tool_url_blocked https://evil.test/");
	check_z(trim("{'mcp_servers':[{'name':'x'},'https://evil.test/']}"), "same");
}

static void test_complexity(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4 << 20);

	for (unsigned i = 1; i < TOOLS_VALUES_MAX; i++)
		must(buf_add_char(&text, ',') == 0);
	must(buf_add_str(&text, STR("\",,[[\\\",{\"")) == 0);
	check(!tools_is_too_complex(buf_str(&text)));
	must(buf_add_char(&text, '[') == 0);
	check(tools_is_too_complex(buf_str(&text)));
	check(!tools_is_too_complex(STR("\"\\")));
}

/* Many hosts and many rules: nobody waits for that. */
static void test_work_is_bounded(void)
{
	_cleanup_(allowlist_freep) struct allowlist *many = allowlist_new();
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);
	struct filter_result res;
	bool changed;
	_cleanup_json_ json_t *body = NULL;

	must(many && buf_add_str(&text, STR("domains:\n")) == 0);
	for (unsigned i = 0; i < ALLOWLIST_MAX_RULES; i++)
		must(buf_printf(&text, "- d%u.test\n", i) == 0);
	must(allowlist_add_yaml(many, buf_str(&text), "t", NULL) == 0);
	buf_clear(&text);
	must(buf_add_str(&text, STR("{\"tools\":[{\"type\":\"web_fetch_1\",\"allowed_domains\":["
				    "\"d1.test\"")) == 0);
	for (unsigned i = 0; i < 1000; i++)
		must(buf_printf(&text, ",\"x%u.test\"", i) == 0);
	must(buf_add_str(&text, STR("]}]}")) == 0);
	must(json_text_read(buf_str(&text), 0, &body, NULL) == 0);
	filter_result_init(&res);
	must(tools_trim(body, many, &res, &changed) == 0);
	check_z(res.error, "tool_config_too_large");
	check_str(buf_str(&res.detail), "<too-complex>");
	filter_result_done(&res);
}

int main(void)
{
	policy = allowlist_new();
	must(policy && allowlist_add_yaml(policy, str_from(yaml), "t", NULL) == 0);
	run_test(test_fetch);
	run_test(test_no_hosts);
	run_test(test_search);
	run_test(test_tools_without_the_key);
	run_test(test_blocklists);
	run_test(test_wildcards);
	run_test(test_what_is_open);
	run_test(test_many_domains_are_counted);
	run_test(test_nested);
	run_test(test_url_sources);
	run_test(test_tool_use_is_not_looked_at);
	run_test(test_mcp_servers);
	run_test(test_complexity);
	run_test(test_work_is_bounded);
	allowlist_free(policy);
	return tap_done();
}
