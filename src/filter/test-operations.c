/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/filter_internal.h"

#include "tap.h"

static const char yaml[] =
	"url_prefixes:\n"
	"- host: a.test\n"
	"  graphql: {queries: [viewer, 'repo*', __typename], mutations: [createIssue]}\n";

/* "ok TAG", "no TAG DETAIL", or the problem of what cannot be read. */
static const char *judge(const char *body)
{
	static char text[512];
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	_cleanup_(buf_donep) struct buf tag = BUF_INIT(4096), detail = BUF_INIT(4096);
	struct graphql_request req;
	const char *problem = NULL;
	int r;

	must(list && allowlist_add_yaml(list, str_from(yaml), "t", NULL) == 0);
	must(graphql_request_read(str_from(body), &req, &problem) == 0);
	if (problem) {
		graphql_request_done(&req);
		return problem;
	}
	r = graphql_operations_judge(allowlist_rule(list, 0), &req, &tag, &detail);
	must(r >= 0);
	snprintf(text, sizeof(text), r == 0 ? "ok %.*s" : "no %.*s %.*s", STR_FMT(buf_str(&tag)),
		STR_FMT(buf_str(&detail)));
	graphql_request_done(&req);
	return text;
}

static const char *judge_query(const char *query)
{
	static char body[4096];

	snprintf(body, sizeof(body), "{\"query\":\"%s\"}", query);
	return judge(body);
}

static void test_fields(void)
{
	check_z(judge_query("{viewer{login}}"), "ok query/viewer");
	check_z(judge_query("{repository{secret} viewer{a}}"), "ok query/repository");
	check_z(judge_query("{viewer{a} search(q:1){a}}"), "no query/search query/search");
	check_z(judge_query("{viewer:search{a}}"), "no query/search query/search");
	check_z(judge_query("{search:viewer{a}}"), "ok query/viewer");
	check_z(judge_query("{Viewer}"), "no query/Viewer query/Viewer");
	check_z(judge_query("{__schema{a}}"), "no query/__schema query/__schema");
	check_z(judge_query("{__typename}"), "ok query/__typename");
	check_z(judge_query("{viewer search @skip(if:true)}"), "no query/search query/search");
}

static void test_types(void)
{
	check_z(judge_query("mutation{createIssue(a:1){b}}"), "ok mutation/createIssue");
	check_z(judge_query("mutation{createIssues}"),
		"no mutation/createIssues mutation/createIssues");
	check_z(judge_query("mutation{viewer}"), "no mutation/viewer mutation/viewer");
	check_z(judge_query("subscription{viewer}"),
		"no subscription/viewer subscription:<blocked>");
}

static void test_fragments(void)
{
	check_z(judge_query("{... on Query{viewer}}"), "ok query/viewer");
	check_z(judge_query("{...{...{viewer}}}"), "ok query/viewer");
	check_z(judge_query("{...{...{search}}}"), "no query/search query/search");
	check_z(judge_query("{viewer ...{search}}"), "no query/search query/search");
	check_z(judge_query("{...{...{...{viewer}}}}"),
		"no query/<fragment-spread> <fragment-spread>");
	check_z(judge_query("{viewer ...F} fragment F on Query{search}"),
		"no query/<fragment-spread> <fragment-spread>");
	check_z(judge_query("{viewer{...F}} fragment F on User{search}"), "ok query/viewer");
}

static void test_operation_name(void)
{
	static const char two[] = "query A{viewer} mutation B{deleteRepo}";
	char body[256];
	static const struct {
		const char *rest, *want;
	} cases[] = {
		{"", "<operation-name-invalid>"},
		{",\"operationName\":null", "<operation-name-invalid>"},
		{",\"operationName\":\"\"", "<operation-name-invalid>"},
		{",\"operationName\":1", "<operation-name-invalid>"},
		{",\"operationName\":\"C\"", "<operation-name-invalid>"},
		{",\"operationName\":\"A\"", "ok query/viewer"},
		{",\"operationName\":\"B\"", "no mutation/deleteRepo mutation/deleteRepo"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(body, sizeof(body), "{\"query\":\"%s\"%s}", two, cases[i].rest);
		check_z(judge(body), cases[i].want);
	}
	check_z(judge("{\"query\":\"query A{viewer}\",\"operationName\":\"B\"}"),
		"ok query/viewer");
	check_z(judge("{\"query\":\"query A{viewer} query A{search}\",\"operationName\":\"A\"}"),
		"<operation-name-invalid>");
	check_z(judge_query("fragment F on Query{viewer}"), "<unparseable>");
}

static void test_unreadable(void)
{
	static const struct {
		const char *body, *want;
	} cases[] = {
		{"", "<unparseable>"},
		{"null", "<unparseable>"},
		{"\"{viewer}\"", "<unparseable>"},
		{"{}", "<unparseable>"},
		{"{\"query\":null}", "<unparseable>"},
		{"{\"query\":[\"{viewer}\"]}", "<unparseable>"},
		{"{\"query\":\"{viewer\"}", "<unparseable>"},
		{"{\"query\":\"{viewer}\"", "<unparseable>"},
		{"{\"query\":\"{viewer}\"}x", "<unparseable>"},
		{"{\"query\":\"{viewer}\\u0000\"}", "<unparseable>"},
		{"{\"query\":\"{viewer}\",\"variables\":\"{}\"}", "<unparseable>"},
		{"{\"query\":\"{viewer}\",\"variables\":{\"n\":1e999}}", "ok query/viewer"},
		{"[{\"query\":\"{viewer}\"}]", "<batched>"},
		{"[]", "<batched>"},
		{"{\"query\":\"{viewer}\",\"query\":\"{search}\"}", "<duplicate-key>"},
		{"{\"query\":\"{viewer}\",\"qu\\u0065ry\":\"{search}\"}", "<duplicate-key>"},
		{"{\"query\":\"{viewer}\",\"variables\":{\"a\":1,\"a\":2}}", "<duplicate-key>"},
		{"{\"query\":\"{viewer}\",\"Query\":\"{search}\"}", "<unknown-key>"},
		{"{\"query\":\"{viewer}\",\"id\":\"x\"}", "<unknown-key>"},
		{"{\"query\":\"{viewer}\",\"extensions\":{\"persistedQuery\":{}}}",
			"<persisted-query>"},
		{"{\"extensions\":{\"PersistedQuery\":{}}}", "<persisted-query>"},
		{"{\"query\":\"{viewer}\",\"extensions\":[]}", "<unparseable>"},
		{"{\"query\":\"{viewer}\",\"extensions\":{},\"variables\":null}",
			"ok query/viewer"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_z(judge(cases[i].body), cases[i].want);
}

static void test_too_large(void)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(2 << 20);

	must(buf_add_str(&body, STR("{\"query\":\"{viewer}\"")) == 0);
	while (buf_len(&body) < GQL_SOURCE_MAX - 1)
		must(buf_add_char(&body, ' ') == 0);
	must(buf_add_char(&body, '}') == 0);
	check_z(judge(buf_cstr(&body)), "ok query/viewer");
	must(buf_add_char(&body, ' ') == 0);
	check_z(judge(buf_cstr(&body)), "<too-large>");
}

int main(void)
{
	run_test(test_fields);
	run_test(test_types);
	run_test(test_fragments);
	run_test(test_operation_name);
	run_test(test_unreadable);
	run_test(test_too_large);
	return tap_done();
}
