/* SPDX-License-Identifier: Apache-2.0 */
/* Allowlists as JSON: each key is there, and what is written is read as the same rules. */
#include "sandbox/allowlist.h"
#include "tap.h"
#include "torture.h"

#include <stdlib.h>
#include <string.h>

static cloche_err err;

static const char yaml[] = "domains: ['*.example.com', registry.test]\n"
			   "url_prefixes:\n"
			   "  - host: api.test\n"
			   "    path: /graphql\n"
			   "    methods: [post]\n"
			   "    graphql: {queries: ['*'], mutations: [createIssue]}\n"
			   "  - host: files.test\n"
			   "    path_prefix: /a \"b\"/\n"
			   "    query: none\n"
			   "    schemes: [https]\n"
			   "    ports: [443, 8443]\n"
			   "    allow_private: [10.0.0.0/8]\n"
			   "    encoded_slash: true\n"
			   "    websocket: false\n"
			   "    scrub: false\n"
			   "  - {host: inner.test, allow_private: true}\n"
			   "  - {host: pinned.test, tunnel: true}\n"
			   "  - {host: 10.1.2.3, schemes: [http]}\n";

static cloche_allowlist *read_list(const char *text)
{
	cloche_allowlist *list = cloche_allowlist_new();

	must(list != NULL);
	if (cloche_allowlist_add_text(list, "text", text, strlen(text), &err) < 0)
		tap_fail("%s\n%s", err.message, text);
	return list;
}

static char *to_json(const cloche_allowlist *list)
{
	char *text = NULL;

	must(cloche_allowlist_json(list, &text, &err) == 0 && text);
	return text;
}

static void test_each_key_is_there(void)
{
	static const char *const parts[] = {"\"*.example.com\"", "\"registry.test\"",
		"\"host\": \"api.test\"", "\"path\": \"/graphql\"", "\"POST\"", "\"createIssue\"",
		"\"subscriptions\": []", "\"path_prefix\": ", "\"query\": \"none\"", "\"https\"",
		"8443", "\"10.0.0.0/8\"", "\"encoded_slash\": true", "\"websocket\": false",
		"\"scrub\": false", "\"allow_private\": true", "\"tunnel\": true",
		"\"host\": \"10.1.2.3\""};
	cloche_allowlist *list = read_list(yaml);
	char *text = to_json(list);

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strstr(text, parts[i]))
			tap_fail("no %s in %s", parts[i], text);
	free(text);
	cloche_allowlist_free(list);
}

static void test_what_is_written_can_be_read(void)
{
	static const char *const urls[] = {"https://a.example.com/", "https://api.test/graphql",
		"https://files.test/a%20%22b%22/c", "https://files.test/a%20%22b%22/c?d",
		"https://files.test:8443/a%20%22b%22/%2f", "http://files.test/",
		"https://inner.test/x", "http://10.1.2.3/", "https://10.1.2.3/",
		"https://pinned.test/"};
	cloche_allowlist *list = read_list(yaml), *again;
	char *text = to_json(list), *same;

	must(cloche_allowlist_add_host(list, "https://short.test/p/", &err) == 0);
	free(text);
	text = to_json(list);
	again = read_list(text);
	same = to_json(again);
	check_z(same, text);
	check_int(cloche_allowlist_count(again), cloche_allowlist_count(list));
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		cloche_verdict v, w;

		must(cloche_allowlist_check(list, "POST", urls[i], &v, &err) == 0);
		must(cloche_allowlist_check(again, "POST", urls[i], &w, &err) == 0);
		check_int(v.allowed, w.allowed);
		check_z(v.reason, w.reason);
	}
	free(same);
	free(text);
	cloche_allowlist_free(again);
	cloche_allowlist_free(list);
}

static void test_an_empty_list(void)
{
	cloche_allowlist *list = cloche_allowlist_new();
	char *text = to_json(list);

	check(strstr(text, "\"domains\": []") && strstr(text, "\"url_prefixes\": []"));
	free(text);
	cloche_allowlist_free(list);
}

static bool allows(const cloche_allowlist *list, const char *url)
{
	unsigned long left = torture_countdown;
	cloche_verdict v;

	torture_countdown = 0;
	must(cloche_allowlist_check(list, "GET", url, &v, NULL) == 0);
	torture_countdown = left;
	return v.allowed;
}

/* Rules that hold although the call failed would allow what nobody has asked for. */
static void add_all_or_nothing(void)
{
	cloche_allowlist *list = cloche_allowlist_new();
	int r;

	if (!list)
		return;
	r = cloche_allowlist_add_text(list, "text", yaml, strlen(yaml), &err);
	check_int(r, r < 0 ? -CLOCHE_E_NO_MEMORY : 0);
	check_int((long)cloche_allowlist_count(list), r < 0 ? 0 : 7);
	check_int((long)list->sources_n, r == 0);
	r = cloche_allowlist_add_host(list, "one.test", &err);
	check(allows(list, "https://one.test/") == (r == 0));
	if (r == 0) {
		r = cloche_allowlist_deny_host(list, "one.test", &err);
		check(allows(list, "https://one.test/") == (r < 0));
	}
	cloche_allowlist_free(list);
}

static void test_a_failure_adds_nothing(void)
{
	torture(add_all_or_nothing);
}

int main(void)
{
	run_test(test_each_key_is_there);
	run_test(test_what_is_written_can_be_read);
	run_test(test_an_empty_list);
	run_test(test_a_failure_adds_nothing);
	return tap_done();
}
