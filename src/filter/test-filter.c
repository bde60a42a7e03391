/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/filter.h"
#include "filter/graphql.h"

#include "tap.h"

static const char yaml[] = "domains: [api.anthropic.com, open.test]\n"
			   "url_prefixes:\n"
			   "- {host: gql.test, path: /graphql, methods: [POST],\n"
			   "   graphql: {queries: [viewer]}}\n"
			   "- {host: gql.test, path: /other/*}\n"
			   "- {host: gql.test}\n"
			   "- {host: all.test, graphql: {queries: [viewer]}}\n";

enum {
	FILTER_GRAPHQL = 1 << FILTER_PLACE_GRAPHQL,
	FILTER_TOOLS = 1 << FILTER_PLACE_TOOLS,
};

static struct allowlist *policy;

struct world {
	struct http_head head;
	struct policy_request asked;
	struct verdict verdict;
	struct filter_request req;
	unsigned set;
	struct filter_result result;
};

static void set_up(struct world *w, const char *method, const char *host, const char *target)
{
	*w = (struct world){.head = HTTP_HEAD_INIT};
	w->asked = (struct policy_request){.scheme = POLICY_HTTPS,
		.host = str_from(host),
		.port = 443,
		.method = str_from(method),
		.target = str_from(target),
		.body_filtered = true};
	must(policy_decide(policy, &w->asked, &w->verdict) == 0);
	w->req = (struct filter_request){
		.policy = policy, .rule = w->verdict.rule, .asked = &w->asked, .head = &w->head};
	filter_result_init(&w->result);
	if (w->verdict.allow)
		must(filter_select(&w->req, &w->set) == 0);
}

static void tear_down(struct world *w)
{
	filter_result_done(&w->result);
	http_head_done(&w->head);
}

static void add_field(struct world *w, const char *name, const char *value)
{
	must(http_fields_add(&w->head.fields, str_from(name), str_from(value)) == 0);
}

static unsigned selected(const char *method, const char *host, const char *target)
{
	struct world w;

	set_up(&w, method, host, target);
	if (!w.verdict.allow)
		tap_fail("%s %s%s is refused by policy", method, host, target);
	tear_down(&w);
	return w.set;
}

static void test_selection_of_tools(void)
{
	static const char *const yes[] = {"/v1/messages", "/v1/messages/", "/v1/messages?beta=true",
		"/v1/messages/batches", "/v1/messages/count_tokens", "/v1/messag%65s",
		"/V1/Messages", "//v1/messages", "/v1//messages", "/v1/messages;x=1",
		"/v1;a/messages", "/v1%2Fmessages", "/v1%252fmessages", "/v1/m%ffessages",
		"/v1/messages%20", "/v1/messages.", "/v1/messages.json/batches", "/v1%5Cmessages",
		"/v1%09/messages"};
	static const char *const no[] = {"/", "/v1/models", "/v1/messages-x", "/v1/messagesx",
		"/v1/files", "/x/v1/messages", "/?/v1/messages"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (selected("POST", "api.anthropic.com", yes[i]) != FILTER_TOOLS)
			tap_fail("%s is not looked at", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (selected("POST", "api.anthropic.com", no[i]) != 0)
			tap_fail("%s is looked at", no[i]);
	check_int(selected("GET", "API.Anthropic.com.", "/v1/messages"), FILTER_TOOLS);
	check_int(selected("POST", "open.test", "/v1/messages"), 0);
}

static void test_selection_of_graphql(void)
{
	check_int(selected("POST", "gql.test", "/graphql"), FILTER_GRAPHQL);
	check_int(selected("POST", "gql.test", "/graphql?a"), FILTER_GRAPHQL);
	check_int(selected("POST", "gql.test", "/graph%71l"), FILTER_GRAPHQL);
	check_int(selected("POST", "gql.test", "/graphqlx"), 0);
	check_int(selected("POST", "gql.test", "/other/graphql"), 0);
	check_int(selected("POST", "all.test", "/anything"), FILTER_GRAPHQL);
	check_int(selected("POST", "open.test", "/graphql"), 0);
}

/* A header may ask for another path than the one that is looked at. */
static void test_selection_with_other_path(void)
{
	struct world w;

	set_up(&w, "POST", "api.anthropic.com", "/v1/models");
	w.asked.other_path = true;
	must(filter_select(&w.req, &w.set) == 0);
	check_int(w.set, FILTER_TOOLS);
	tear_down(&w);
}

/* "ok [TAG]", "ERROR DETAIL [TAG]". */
static const char *run(struct world *w, struct str body)
{
	static char text[4096];
	const struct filter_result *r = &w->result;
	struct str tag = buf_str(&r->tag[w->set == FILTER_TOOLS ? 1 : 0]);

	filter_run(&w->req, w->set, body, &w->result);
	tag = buf_str(&r->tag[w->set == FILTER_TOOLS ? 1 : 0]);
	check(!r->error == !r->message);
	snprintf(text, sizeof(text), "%s%s%.*s [%.*s]", r->error ? r->error : "ok",
		r->error ? " " : "", STR_FMT(buf_str(&r->detail)), STR_FMT(tag));
	return text;
}

static void test_graphql(void)
{
	static const char good[] = "{\"query\":\"{viewer{login}}\"}";
	static const struct {
		const char *method, *target, *type, *encoding, *body, *want;
	} cases[] = {
		{"POST", "/graphql", "application/json", NULL, good, "ok [query/viewer]"},
		{"POST", "/graph%71l", "Application/JSON ; charset=UTF-8", NULL, good,
			"ok [query/viewer]"},
		{"POST", "/graphql", "application/json", NULL, "{\"query\":\"{search}\"}",
			"graphql_operation_blocked query/search [query/search]"},
		{"POST", "/graphql", "application/json", NULL, "{\"query\":\"mutation{a}\"}",
			"graphql_operation_blocked mutation:<blocked> [mutation/a]"},
		{"POST", "/graphql", "application/json", NULL,
			"{\"query\":\"{viewer}\",\"variables\":{\"a\":\"\\ud83d\\u0000\","
			"\"b\":18446744073709552000,\"c\":1e400}}",
			"ok [query/viewer]"},
		{"POST", "/graphql", "application/json", NULL,
			"{\"query\":\"{viewer}\",\"variables\":{\"\\ud83d\":1}}",
			"graphql_operation_blocked <unparseable> [<unparseable>]"},
		{"POST", "/graphql", "application/json", NULL, "{\"query\":\"{viewer}#\\u0000\"}",
			"graphql_operation_blocked <unparseable> [<unparseable>]"},
		{"POST", "/graphql", "application/json", NULL, "",
			"graphql_operation_blocked <unparseable> [<unparseable>]"},
		{"POST", "/graphql", NULL, NULL, good,
			"graphql_operation_blocked <content-type> [<content-type>]"},
		{"POST", "/graphql", "text/plain", NULL, good,
			"graphql_operation_blocked <content-type> [<content-type>]"},
		{"POST", "/graphql", "multipart/form-data; boundary=x", NULL, good,
			"graphql_operation_blocked <content-type> [<content-type>]"},
		{"POST", "/graphql", "application/graphql", NULL, "{viewer}",
			"graphql_operation_blocked <content-type> [<content-type>]"},
		{"POST", "/graphql", "application/json; charset=utf-16", NULL, good,
			"graphql_operation_blocked <content-type> [<content-type>]"},
		{"POST", "/graphql?query={search}", "application/json", NULL, good,
			"graphql_operation_blocked <query-in-url> [<query-in-url>]"},
		{"POST", "/graphql?", "application/json", NULL, good,
			"graphql_operation_blocked <query-in-url> [<query-in-url>]"},
		{"POST", "/graphql", "application/json", "compress", good,
			"graphql_operation_blocked <content-encoding> []"},
		{"POST", "/graphql", "application/json", "gzip", good,
			"graphql_operation_blocked <content-encoding> []"},
		{"POST", "/graphql", "application/json", "identity", good, "ok [query/viewer]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world w;

		set_up(&w, cases[i].method, "gql.test", cases[i].target);
		if (cases[i].type)
			add_field(&w, "Content-Type", cases[i].type);
		if (cases[i].encoding)
			add_field(&w, "Content-Encoding", cases[i].encoding);
		check_z(run(&w, str_from(cases[i].body)), cases[i].want);
		check(!w.result.changed);
		tear_down(&w);
	}
}

static void test_graphql_head(void)
{
	static const char good[] = "{\"query\":\"{viewer{login}}\"}";
	struct world w;

	set_up(&w, "POST", "gql.test", "/graphql");
	add_field(&w, "Content-Type", "application/json");
	add_field(&w, "Content-Type", "text/plain");
	check_z(run(&w, str_from(good)),
		"graphql_operation_blocked <content-type> [<content-type>]");
	tear_down(&w);
	set_up(&w, "POST", "gql.test", "/graphql");
	add_field(&w, "Content-Type", "application/json");
	w.asked.other_method = STR("GET");
	check_z(run(&w, str_from(good)), "graphql_operation_blocked <method> [<method>]");
	tear_down(&w);
	set_up(&w, "POST", "all.test", "/x");
	add_field(&w, "Content-Type", "application/json");
	w.asked.other_path = true;
	check_z(run(&w, str_from(good)), "graphql_operation_blocked <path> [<path>]");
	tear_down(&w);
	set_up(&w, "GET", "all.test", "/x");
	check_z(run(&w, STR("")), "graphql_operation_blocked <method> [<method>]");
	tear_down(&w);
}

static void test_long_names_are_cut(void)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(1 << 20);
	struct world w;

	must(buf_add_str(&body, STR("{\"query\":\"{")) == 0);
	for (unsigned i = 0; i < 5000; i++)
		must(buf_add_char(&body, 'x') == 0);
	must(buf_add_str(&body, STR("}\"}")) == 0);
	set_up(&w, "POST", "gql.test", "/graphql");
	add_field(&w, "Content-Type", "application/json");
	run(&w, buf_str(&body));
	check_z(w.result.error, "graphql_operation_blocked");
	check_int(buf_len(&w.result.detail), FILTER_DETAIL_MAX);
	check(str_ends(buf_str(&w.result.tag[0]), STR("x... (truncated)")));
	check_int(buf_len(&w.result.tag[0]), FILTER_TAG_MAX + 15);
	tear_down(&w);
}

static void test_tools(void)
{
	struct world w;

	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	check_z(run(&w, STR("{\"a\": [1, 0.1], \"tools\": [{\"type\": \"web_fetch_1\"}]}")),
		"ok [web_fetch_1: forced empty allowed_domains]");
	check(w.result.changed);
	check_str(buf_str(&w.result.body), "{\"a\": [1, 0.1], \"tools\": [{\"type\": "
					   "\"web_fetch_1\",\"allowed_domains\":[]}]}");
	tear_down(&w);
}

/* The history of a client that cut an emoji in two, and counts in doubles. */
static void test_what_javascript_writes(void)
{
	static const char history[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"half \\ud83d\"},{\"role\":"
		"\"assistant\",\"content\":[{\"type\":\"tool_use\",\"input\":{\"n\":"
		"18446744073709552000,\"x\":-0,\"y\":1.7976931348623157e+308}}]}],\"tools\":[";
	static const char body[] = "{\"type\":\"web_search_1\",\"allowed_domains\":[\"x.test\"]}]}";
	static const char want[] = "{\"type\":\"web_search_1\"}]}";
	char text[512], changed[512];
	struct world w;

	snprintf(text, sizeof(text), "%s]}", history);
	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	check_z(run(&w, str_from(text)), "ok []");
	check(!w.result.changed);
	tear_down(&w);
	snprintf(text, sizeof(text), "%s%s", history, body);
	snprintf(changed, sizeof(changed), "%s%s", history, want);
	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	check_z(run(&w, str_from(text)),
		"ok [web_search_1: cleared allowed_domains (1 outside allowlist: x.test)]");
	check(w.result.changed);
	check_str(buf_str(&w.result.body), changed);
	tear_down(&w);
}

/* What would come behind the handshake is no body. */
static void test_websockets(void)
{
	struct world w;

	set_up(&w, "GET", "api.anthropic.com", "/v1/messages");
	w.asked.websocket = true;
	check_z(run(&w, STR_NULL), "tool_config_invalid <websocket> []");
	tear_down(&w);
}

static void test_tools_unreadable(void)
{
	static const struct {
		const char *type, *body, *want;
	} cases[] = {
		{NULL, "", "ok []"},
		{NULL, "{\"tools\":[]}", "ok []"},
		{"application/json; charset=utf-8", "{\"x\":\"\\u0000\"}", "ok []"},
		{NULL, "17", "ok []"},
		{NULL, "{", "tool_config_invalid <invalid-json> []"},
		{NULL, "{\"a\":1e999,\"b\":18446744073709552000}", "ok []"},
		{NULL, "{\"a\":\"\\ud83d\"}", "ok []"},
		{NULL, "{\"\\ud83d\":1}", "tool_config_invalid <invalid-json> []"},
		{NULL, "{\"tools\":[{\"type\":\"web_\\ud83dfetch_1\"}]}",
			"tool_config_invalid web_\xef\xbf\xbd"
			"fetch_1 []"},
		{NULL, "{\"a\":\"\xff\"}", "tool_config_invalid <invalid-json> []"},
		{NULL, "\xef\xbb\xbf{}", "tool_config_invalid <invalid-json> []"},
		{NULL, "{\"tools\":[],\"tools\":[{\"type\":\"web_fetch_1\"}]}",
			"tool_config_invalid <duplicate-key> []"},
		{NULL, "{\"tools\":[],\"tool\\u0073\":[{\"type\":\"web_fetch_1\"}]}",
			"tool_config_invalid <duplicate-key> []"},
		{"application/json; charset=utf-7", "{}", "tool_config_invalid <content-type> []"},
		{NULL, "{\"tools\":[{\"type\":\"web_fetch_1\",\"blocked_domains\":[1]}]}",
			"blocklist_tool_config_unsupported web_fetch_1 []"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world w;

		set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
		if (cases[i].type)
			add_field(&w, "Content-Type", cases[i].type);
		check_z(run(&w, str_from(cases[i].body)), cases[i].want);
		check(!w.result.changed);
		tear_down(&w);
	}
}

static void put_le(unsigned char **at, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*(*at)++ = (unsigned char)(value >> 8 * i);
}

/* RFC 1952, in blocks that are stored as they are (RFC 1951 3.2.4). */
static struct str gzip(struct str plain, unsigned char *out)
{
	unsigned char *at = out;
	uint32_t crc = ~0U;

	memcpy(at, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
	at += 10;
	for (size_t i = 0; i < plain.n; i++) {
		crc ^= (unsigned char)plain.p[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	for (size_t done = 0, n; done < plain.n; done += n) {
		n = plain.n - done < 65535 ? plain.n - done : 65535;
		*at++ = done + n == plain.n;
		put_le(&at, (uint32_t)n, 2);
		put_le(&at, ~(uint32_t)n, 2);
		memcpy(at, plain.p + done, n);
		at += n;
	}
	put_le(&at, ~crc, 4);
	put_le(&at, (uint32_t)plain.n, 4);
	return str_make(out, (size_t)(at - out));
}

static void test_coded_bodies(void)
{
	static const char plain[] = "{\"tools\":[{\"type\":\"web_search_1\"}]}";
	unsigned char coded[1024];
	struct str body = gzip(str_from(plain), coded);
	struct world w;

	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	add_field(&w, "Content-Encoding", "gzip");
	check_z(run(&w, body), "ok []");
	/* What was judged is what goes on. */
	check(w.result.changed);
	check_str(buf_str(&w.result.body), plain);
	tear_down(&w);
	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	add_field(&w, "Content-Encoding", "gzip");
	check_z(run(&w, str_prefix(body, body.n - 1)), "tool_config_invalid <content-encoding> []");
	tear_down(&w);
}

/* RFC 8878: blocks of 128 KiB that are one byte each. */
static struct str zstd_bomb(unsigned char *out, unsigned blocks)
{
	unsigned char *at = out;

	memcpy(at, "\x28\xb5\x2f\xfd\x00\x50", 6);
	at += 6;
	for (unsigned i = 0; i < blocks; i++) {
		put_le(&at, 131072U << 3 | 1U << 1 | (i + 1 == blocks), 3);
		*at++ = ' ';
	}
	return str_make(out, (size_t)(at - out));
}

/* How long it gets by decoding counts, and what was given by then goes nowhere. */
static void test_decoding_is_bounded(void)
{
	unsigned char coded[256];
	struct world w;

	set_up(&w, "POST", "gql.test", "/graphql");
	add_field(&w, "Content-Type", "application/json");
	add_field(&w, "Content-Encoding", "zstd");
	check_z(run(&w, zstd_bomb(coded, 8)),
		"graphql_operation_blocked <unparseable> [<unparseable>]");
	tear_down(&w);
	set_up(&w, "POST", "gql.test", "/graphql");
	add_field(&w, "Content-Type", "application/json");
	add_field(&w, "Content-Encoding", "zstd");
	check_z(run(&w, zstd_bomb(coded, 9)), "graphql_operation_blocked <too-large> []");
	tear_down(&w);
}

/* Whether a Messages API request that was let pass may go on under another policy. */
static int stands(const char *body, const char *other)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	struct filter_request now;
	struct world w;
	int r;

	must(list && allowlist_add_yaml(list, str_from(other), "b.yaml", NULL) == 0);
	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	filter_run(&w.req, w.set, str_from(body), &w.result);
	check(!w.result.error);
	now = w.req;
	now.policy = list;
	r = filter_stands(&w.req, &now, w.set, &w.result.relies);
	tear_down(&w);
	return r;
}

static void test_another_policy(void)
{
#define FETCH(domains) "{\"tools\":[{\"type\":\"web_fetch_1\",\"allowed_domains\":[" domains "]}]}"
#define SOURCE(url) "{\"source\":{\"type\":\"url\",\"url\":\"" url "\"}}"
#define SERVER(url) "{\"mcp_servers\":[{\"url\":\"" url "\"}]}"
	static const char same[] = "domains: [open.test]", none[] = "domains: []",
			  get[] = "url_prefixes: [{host: open.test, methods: [GET]}]",
			  path[] = "url_prefixes: [{host: open.test, path: /a}]";
	struct buf many = BUF_INIT(4096);

	check_int(stands("{}", none), 1);
	check_int(stands("{\"tools\":[{\"type\":\"web_search_1\"}]}", none), 1);
	check_int(stands(FETCH("\"open.test\""), same), 1);
	check_int(stands(FETCH("\"open.test\""), get), 1);
	check_int(stands(FETCH("\"open.test\""), path), 0);
	check_int(stands(FETCH("\"open.test/a\""), none), 0);
	check_int(stands(FETCH("\"other.test\""), none), 1); /* it was taken out */
	check_int(stands(FETCH("\"open.test\", \"other.test\""), none), 0);
	check_int(stands(SOURCE("https://open.test/a"), path), 1);
	check_int(stands(SOURCE("https://open.test/b"), path), 0);
	check_int(stands(SERVER("https://open.test/a"), same), 1);
	check_int(stands(SERVER("https://open.test/a"), get), 0);
	/* What is too much to be written down does not stand. */
	for (unsigned n = 64; n <= 65; n++) {
		buf_clear(&many);
		must(buf_printf(&many,
			     "{\"tools\":[{\"type\":\"web_fetch_1\",\"allowed_domains\":[") == 0);
		for (unsigned i = 0; i < n; i++)
			must(buf_printf(&many, "%s\"open.test\"", i ? "," : "") == 0);
		must(buf_printf(&many, "]}]}") == 0);
		check_int(stands(buf_cstr(&many), same), n == 64);
	}
	buf_done(&many);
}

static void test_limits(void)
{
	struct world w;

	check_int(filter_body_max(FILTER_GRAPHQL), 1 << 20);
	check_int(filter_body_max(FILTER_TOOLS), 32 << 20);
	check_int(filter_body_max(FILTER_TOOLS | FILTER_GRAPHQL), 1 << 20);
	set_up(&w, "POST", "api.anthropic.com", "/v1/messages");
	filter_too_large(w.set, &w.result);
	check_z(w.result.error, "tool_config_too_large");
	check_str(buf_str(&w.result.detail), "<too-large>");
	check_z(filter_name(0), "graphql");
	check_z(filter_name(1), "tools");
	tear_down(&w);
}

int main(void)
{
	policy = allowlist_new();
	must(policy && allowlist_add_yaml(policy, str_from(yaml), "t", NULL) == 0);
	run_test(test_selection_of_tools);
	run_test(test_selection_of_graphql);
	run_test(test_selection_with_other_path);
	run_test(test_graphql);
	run_test(test_graphql_head);
	run_test(test_long_names_are_cut);
	run_test(test_tools);
	run_test(test_what_javascript_writes);
	run_test(test_websockets);
	run_test(test_tools_unreadable);
	run_test(test_coded_bodies);
	run_test(test_decoding_is_bounded);
	run_test(test_another_policy);
	run_test(test_limits);
	allowlist_free(policy);
	return tap_done();
}
