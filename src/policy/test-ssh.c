/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide.h"

#include "tap.h"

/* Git over ssh is judged by user, path and method, and its rules let nothing else pass. */
static void test_ssh(void)
{
	static const struct {
		const char *host, *user, *target, *method;
		uint16_t port;
		enum policy_scheme scheme;
		enum policy_reason reason;
	} cases[] = {
		{"h.test", "git", "/org/repo", "FETCH", 22, POLICY_SSH, POLICY_ALLOWED},
		{"h.test", "git", "/org/repo.git", "FETCH", 22, POLICY_SSH, POLICY_ALLOWED},
		{"h.test", "git", "/org/repo.git.git", "FETCH", 22, POLICY_SSH, POLICY_PATH},
		{"h.test", "git", "/org/repo/below", "FETCH", 22, POLICY_SSH, POLICY_ALLOWED},
		{"h.test", "git", "/org/repo2", "FETCH", 22, POLICY_SSH, POLICY_PATH},
		{"h.test", "git", "/org", "FETCH", 22, POLICY_SSH, POLICY_PATH},
		{"h.test", "git", "/org/repo/../x", "FETCH", 22, POLICY_SSH, POLICY_BAD_TARGET},
		{"h.test", "git", "/org//repo", "FETCH", 22, POLICY_SSH, POLICY_PATH_UNDECIDABLE},
		{"h.test", "git", "/org/repo", "PUSH", 22, POLICY_SSH, POLICY_METHOD},
		{"h.test", "me", "/org/repo", "FETCH", 22, POLICY_SSH, POLICY_USER},
		{"h.test", "", "/org/repo", "FETCH", 22, POLICY_SSH, POLICY_USER},
		{"h.test", "git", "/org/repo", "FETCH", 2222, POLICY_SSH, POLICY_PORT},
		{"h.test", "git", "/org/repo", "FETCH", 22, POLICY_TCP, POLICY_SCHEME},
		{"h.test", "git", "/org/repo", "FETCH", 443, POLICY_HTTPS, POLICY_SCHEME},
		{"web.test", "git", "/org/repo", "FETCH", 22, POLICY_SSH, POLICY_SCHEME},
		{"own.test", "me", "/srv/r", "FETCH", 2222, POLICY_SSH, POLICY_ALLOWED},
		{"own.test", "git", "/srv/r", "FETCH", 2222, POLICY_SSH, POLICY_USER},
		{"y.test", "git", "/one/a", "PUSH", 22, POLICY_SSH, POLICY_ALLOWED},
		{"y.test", "git", "/one/a", "FETCH", 22, POLICY_SSH, POLICY_METHOD},
		{"y.test", "git", "/two", "FETCH", 22, POLICY_SSH, POLICY_ALLOWED},
		{"any.test", "git", "/a/b", "FETCH", 22, POLICY_SSH, POLICY_ALLOWED},
		{"any.test", "git", "/Gone/x.git", "FETCH", 22, POLICY_SSH, POLICY_DENIED},
		{"x.test", "git", "/a", "FETCH", 22, POLICY_SSH, POLICY_HOST},
	};
	static const char *const shorthands[] = {"ssh://git@h.test/org/repo.git", "web.test",
		"https://web.test", "ssh://me@own.test:2222/srv/r", "ssh://any.test",
		"!ssh://any.test/gone/x"};
	static const char yaml[] = "url_prefixes:\n  - host: y.test\n    schemes: [ssh]\n"
				   "    path: /one/*\n    methods: [push]\n"
				   "  - host: y.test\n    schemes: [ssh]\n    path: /two.git/\n";
	_cleanup_(allowlist_freep) struct allowlist *ssh_rules = allowlist_new();

	check(!allowlist_has_ssh(ssh_rules));
	for (size_t i = 0; i < ARRAY_SIZE(shorthands); i++)
		must(allowlist_add_host(ssh_rules, str_from(shorthands[i]), NULL) == 0);
	must(allowlist_add_yaml(ssh_rules, str_from(yaml), "y", NULL) == 0);
	check(allowlist_has_ssh(ssh_rules));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_request req = {.scheme = cases[i].scheme,
			.host = str_from(cases[i].host),
			.port = cases[i].port,
			.user = str_from(cases[i].user),
			.method = str_from(cases[i].method),
			.target = str_from(cases[i].target)};
		struct verdict v;

		must(policy_decide(ssh_rules, &req, &v) == 0);
		printf("# %s %s:%u%s\n", cases[i].method, cases[i].host, cases[i].port,
			cases[i].target);
		check_int(v.reason, cases[i].reason);
		check_int(v.allow, cases[i].reason == POLICY_ALLOWED);
	}
}

/* What is proposed allows just that. */
static void test_ssh_told(void)
{
	_cleanup_(allowlist_freep) struct allowlist *ssh_rules = allowlist_new();
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	struct policy_request req = {.scheme = POLICY_SSH,
		.host = STR("h.test"),
		.port = 2222,
		.user = STR("me"),
		.method = STR("PUSH"),
		.target = STR("/org/repo.git")};
	struct verdict v;

	must(policy_decide(ssh_rules, &req, &v) == 0 &&
		policy_suggest(ssh_rules, &req, &v, &text) == 0);
	check_str(buf_str(&text), "url_prefixes:\n  - host: \"h.test\"\n    path: \"/org/repo\"\n"
				  "    methods: [\"PUSH\"]\n    schemes: [ssh]\n    user: \"me\"\n "
				  "   ports: [2222]\n");
	must(allowlist_add_yaml(ssh_rules, buf_str(&text), "y", NULL) == 0);
	must(policy_decide(ssh_rules, &req, &v) == 0);
	check(v.allow);
	req.user = STR("git");
	must(policy_decide(ssh_rules, &req, &v) == 0);
	buf_clear(&text);
	must(policy_explain(&req, &v, &text) == 0);
	check(str_starts(
		buf_str(&text), STR("h.test is listed for ssh, but not for the user git (")));
}

int main(void)
{
	run_test(test_ssh);
	run_test(test_ssh_told);
	return tap_done();
}
