/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/body_json.h"
#include "filter/filter.h"
#include "filter/graphql_scope.h"

#include "tap.h"
#include "torture.h"

#include <errno.h>

static struct allowlist *policy;

/* Without memory a request is refused, with one answer or another; never let through. */
static void run_filter(const char *host, const char *target, struct str body, const char *want)
{
	struct http_head head = HTTP_HEAD_INIT;
	struct policy_request asked = {.scheme = POLICY_HTTPS,
		.host = str_from(host),
		.port = 443,
		.method = STR("POST"),
		.target = str_from(target),
		.body_filtered = true};
	struct filter_request req = {.policy = policy, .asked = &asked, .head = &head};
	struct filter_result result;
	struct verdict v;
	unsigned set = 0;
	int r = policy_decide(policy, &asked, &v);

	filter_result_init(&result);
	req.rule = v.rule;
	if (r == 0 && v.allow)
		r = http_fields_add(&head.fields, STR("Content-Type"), STR("application/json"));
	if (r == 0)
		r = filter_select(&req, &set);
	check(r == 0 || torture_failed);
	if (r == 0) {
		check(set != 0);
		filter_run(&req, set, body, &result);
		if (!torture_failed)
			check_z(result.error, want);
		else if (result.error)
			check(result.message != NULL);
		else
			check(!want);
	}
	filter_result_done(&result);
	http_head_done(&head);
}

static void graphql(void)
{
	run_filter("a.test", "/graphql",
		STR("{\"query\":\"query A($x:I=\\\"\\\\n\\\"){viewer(a:$x)} query B{b}\","
		    "\"operationName\":\"A\"}"),
		NULL);
	run_filter(
		"a.test", "/graphql", STR("{\"query\":\"{search}\"}"), "graphql_operation_blocked");
}

static void tools(void)
{
	run_filter("api.anthropic.com", "/v1/messages",
		STR("{\"tools\":[{\"type\":\"web_fetch_1\",\"allowed_domains\":"
		    "[\"a.b\",\"api.anthropic.com\"]},{\"type\":\"web_fetch_2\"}],"
		    "\"source\":{\"type\":\"url\",\"url\":\"https://api.anthropic.com?x\"}}"),
		NULL);
	run_filter("api.anthropic.com", "/v1/messages",
		STR("{\"mcp_servers\":[{\"url\":\"https://evil.test/\"}]}"), "tool_url_blocked");
}

static void scope(void)
{
	_cleanup_(graphql_scope_freep) struct graphql_scope *s = graphql_scope_new();
	_cleanup_(buf_donep) struct buf detail = BUF_INIT(4096);
	struct graphql_request req;
	const char *problem = NULL;
	int r = s ? graphql_scope_add(s, STR("R_kgDORH34qw"), STR("Me/Mine"), 1149106347) : -ENOMEM;

	if (r == 0)
		r = graphql_request_read(
			STR("{\"query\":\"query($i:ID){repository(owner:\\\"me\\\",name:"
			    "\\\"mine\\\"){"
			    "a(id:$i)}}\",\"variables\":{\"i\":\"R_kgDORm2NDQ\"}}"),
			&req, &problem);
	else
		req = (struct graphql_request){0};
	if (r == 0 && !problem)
		r = graphql_scope_check(s, &req, &detail);
	check(!problem);
	check(torture_failed ? r == -ENOMEM : r == 1);
	graphql_request_done(&req);
}

static void body_json(void)
{
	static const char text[] = "{\"a\":\"\\ud83d\",\"b\":[18446744073709552000]}";
	struct buf out = BUF_INIT(512);
	_cleanup_json_ json_t *value = NULL;
	int r = body_json_read(str_from(text), &value);

	if (r == 0)
		r = json_object_set_new(value, "c", json_array()) < 0 ? -ENOMEM : 0;
	if (r == 0)
		r = body_json_write(&out, str_from(text), value);
	check(r == 0 || (r == -ENOMEM && torture_failed));
	if (r == 0)
		check_str(
			buf_str(&out), "{\"a\":\"\\ud83d\",\"b\":[18446744073709552000],\"c\":[]}");
	buf_done(&out);
}

static void test_graphql(void)
{
	torture(graphql);
}

static void test_tools(void)
{
	torture(tools);
}

static void test_scope(void)
{
	torture(scope);
}

static void test_body_json(void)
{
	torture(body_json);
}

int main(void)
{
	/* What belongs to the process, not to a request. */
	json_object_seed(1);
	policy = allowlist_new();
	must(policy &&
		allowlist_add_yaml(policy,
			STR("domains: [api.anthropic.com]\nurl_prefixes:\n"
			    "- {host: a.test, path: /graphql, graphql: {queries: [viewer]}}\n"),
			"t", NULL) == 0);
	run_test(test_graphql);
	run_test(test_tools);
	run_test(test_scope);
	run_test(test_body_json);
	allowlist_free(policy);
	return tap_done();
}
