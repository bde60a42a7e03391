/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide.h"
#include "policy/proposal.h"

#include "tap.h"
#include "torture.h"
#include <errno.h>

static const char text[] = "domains: [a.com, '*.b.com', 10.0.0.1]\n"
			   "url_prefixes:\n"
			   "- {host: c.com, path: '/s?q=*', methods: [GET, PUT], ports: [1, 2],\n"
			   "   allow_private: [10.0.0.0/8], graphql: {queries: [a, b]}}\n"
			   "- {host: d.com, path_prefix: /x}\n"
			   "- {host: c.com, path: /S, graphql: {queries: [a]}}\n"
			   "- {host: c.com, ports: [1]}\n";

static void read_and_decide(void)
{
	_cleanup_(allowlist_freep) struct allowlist *list = allowlist_new();
	_cleanup_(buf_donep) struct buf out = BUF_INIT(8192), yaml = BUF_INIT(8192);
	struct policy_request req = {.scheme = POLICY_HTTPS,
		.host = STR("c.com"),
		.port = 1,
		.method = STR("GET"),
		.target = STR("/s?q=%41")};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct verdict v = {0};
	int r;

	if (!list) {
		check(torture_failed);
		return;
	}
	r = allowlist_add_yaml(list, str_from(text), "f", &err);
	check_int(r, torture_failed ? -E_NO_MEMORY : 0);
	check_int(allowlist_count(list), r < 0 ? 0 : 7);
	if (r == 0) {
		r = allowlist_add_host(list, STR("https://e.com:8443/p"), &err);
		check_int(r, torture_failed ? -E_NO_MEMORY : 0);
		check_int(allowlist_count(list), r < 0 ? 7 : 8);
	}
	r = policy_decide(list, &req, &v);
	check(!v.allow);
	check(r == 0 || (r == -ENOMEM && torture_failed));
	if (r == 0) {
		r = policy_explain(&req, &v, &out);
		check(r == 0 || (r == -ENOMEM && torture_failed));
	}
	if (r == 0)
		r = policy_suggest(list, &req, &v, &yaml);
	check(r == 0 || (r == -ENOMEM && torture_failed));
}

static void propose(void)
{
	_cleanup_(proposal_freep) struct proposal *p = proposal_new();
	_cleanup_(buf_donep) struct buf out = BUF_INIT(8192);
	struct policy_request req = {.scheme = POLICY_HTTPS,
		.host = STR("c.com"),
		.port = 443,
		.method = STR("GET"),
		.target = STR("/a")};
	size_t left_out = 0;
	const char *why;
	int r = p ? proposal_add(p, &req, false, &why) : -ENOMEM;

	if (r > 0)
		r = proposal_keep_filtered(p, &req);
	req.target = STR("/b");
	if (r == 0)
		r = proposal_add(p, &req, false, &why);
	if (r > 0)
		r = proposal_merge(p, &left_out);
	if (r == 0)
		r = proposal_write(p, &out);
	check(r == 0 || (r == -ENOMEM && torture_failed));
	if (r == 0)
		check(proposal_count(p) == 1 && str_find(buf_str(&out), STR("/b")) < buf_len(&out));
}

static void test_torture(void)
{
	torture(read_and_decide);
	torture(propose);
}

int main(void)
{
	run_test(test_torture);
	return tap_done();
}
