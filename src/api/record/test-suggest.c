/* SPDX-License-Identifier: Apache-2.0 */
/* From a log of either form to an allowlist: what it proposes loads, allows what was asked for and
 * nothing at another host, whatever the log holds. */
#include "base/fd.h"
#include "base/rand.h"
#include "netlog/netlog.h"
#include <cloche/allowlist.h>
#include <cloche/network_log.h>

#include "seeded.h"
#include "tap.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct asked {
	char method[8], url[160];
	bool allowed;
};

static const char *pick(const char *const *v, size_t n)
{
	return v[rand_below((uint32_t)n)];
}

static void random_asked(struct asked *a)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "X]\n[", "\"", "BREW"};
	static const char *const origins[] = {"https://a.test", "http://a.test",
		"https://b.test:8443", "https://A.test", "https://10.0.0.1", "http://[::1]:81",
		"https://*", "ftp://a.test", "https://a.test\n  - host: b", "https:// x"};
	static const char *const parts[] = {"/a", "/b", "/*", "/%2F", "/%3F", "/[1]", "/\"",
		"/%C3%B6", "/%FF", "/..", "//", "/#x", "/ x", "/\n- x", "?q=1", "/%25", "/\x1b[1m",
		"/c", "/d", "/e", "/f", "..."};
	uint32_t n = rand_below(5);
	size_t used;

	*a = (struct asked){.allowed = rand_below(2)};
	snprintf(a->method, sizeof(a->method), "%s", pick(methods, ARRAY_SIZE(methods)));
	used = (size_t)snprintf(a->url, sizeof(a->url), "%s", pick(origins, ARRAY_SIZE(origins)));
	for (uint32_t i = 0; i <= n; i++)
		used += (size_t)snprintf(
			a->url + used, sizeof(a->url) - used, "%s", pick(parts, ARRAY_SIZE(parts)));
}

static struct netlog_event event_of(const struct asked *a)
{
	return (struct netlog_event){.kind = NETLOG_REQUEST,
		.time_usec = 1,
		.allowed = a->allowed,
		.method = str_from(a->method),
		.url = str_from(a->url),
		.reason = a->allowed ? STR("allowed") : STR("host"),
		.status = a->allowed ? 200 : 403};
}

/* A log of all of them; its path goes into path. */
static int write_log(const struct asked *v, int n, bool json, char path[32])
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);
	int fd = memfd_create("log", MFD_CLOEXEC);

	for (int i = 0; i < n; i++) {
		struct netlog_event ev = event_of(&v[i]);

		must((json ? netlog_format_json(&ev, &text) : netlog_format_plain(&ev, &text)) ==
			0);
	}
	must(fd >= 0 && fd_write_all(fd, buf_data(&text), buf_len(&text)) == 0);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static bool is_allowed(const cloche_allowlist *list, const char *method, const char *url)
{
	cloche_verdict v;

	return cloche_allowlist_check(list, method, url, &v, NULL) == 0 && v.allowed;
}

/* Whether an entry has to be proposed for it. */
static bool is_proposable(const struct asked *a)
{
	static const char everything[] =
		"url_prefixes:\n"
		"  - {host: '*', ports: [80, 443, 8443], path: '/*', encoded_slash: true}\n"
		"  - {host: 10.0.0.1, path: '/*', encoded_slash: true}\n"
		"  - {host: '[::1]', ports: [81], path: '/*', encoded_slash: true}\n";
	cloche_allowlist *all = cloche_allowlist_new();
	bool literal = strstr(a->url, "10.0.0.1") || strstr(a->url, "[::1]"), could;
	const char *slashes = strstr(a->url, "://");

	must(cloche_allowlist_add_text(all, "all", everything, sizeof(everything) - 1, NULL) == 0);
	could = is_allowed(all, a->method, a->url);
	cloche_allowlist_free(all);
	/* No entry names such a method. A fragment is none for the gateway. */
	if (strpbrk(a->method, "]\""))
		return false;
	return slashes && could && !strchr(a->url, '#') && (a->allowed || !literal);
}

static void check_suggestion(const struct asked *v, int n, bool json, bool blocked_only)
{
	cloche_network_suggestion *s = NULL;
	cloche_allowlist *list = cloche_allowlist_new();
	cloche_err err = CLOCHE_ERR_INIT;
	json_t *doc;
	const char *yaml;
	char path[32];
	int fd = write_log(v, n, json, path);

	if (cloche_network_log_suggest(path, blocked_only, &s, &err) < 0)
		tap_fail("%s", err.message);
	must(s);
	yaml = s->yaml;
	for (const char *p = yaml; *p; p++)
		check((*p >= 0x20 && *p <= 0x7e) || *p == '\n');
	if (cloche_allowlist_add_text(list, "s", yaml, strlen(yaml), &err) < 0)
		tap_fail("%s\n%s", err.message, yaml);
	for (int i = 0; i < n; i++)
		if (is_proposable(&v[i]) && !(blocked_only && v[i].allowed) &&
			!is_allowed(list, v[i].method, v[i].url))
			tap_fail("%s %s is not allowed by\n%s", v[i].method, v[i].url, yaml);
	check(!is_allowed(list, "GET", "https://b.test/a"));
	check(!is_allowed(list, "GET", "https://other.test/"));
	check(!is_allowed(list, "GET", "http://c.a.test/a"));
	check(!is_allowed(list, "DELETE", "https://a.test/a"));
	doc = json_loads(s->json, 0, NULL);
	check(json_array_size(json_object_get(doc, "url_prefixes")) ==
		cloche_allowlist_count(list));
	json_decref(doc);
	cloche_allowlist_free(list);
	cloche_network_suggestion_free(s);
	close(fd);
}

static void test_random_logs(void)
{
	enum { LOGS = 300, LONGEST = 60 };
	static struct asked v[LONGEST];

	for (int k = 0; k < LOGS; k++) {
		int n = (int)rand_below(LONGEST);

		for (int i = 0; i < n; i++)
			random_asked(&v[i]);
		check_suggestion(v, n, true, rand_below(2));
		check_suggestion(v, n, false, rand_below(2));
	}
}

/* Of a text that is no log. */
static char *suggestion_for(const char *text, bool blocked_only)
{
	cloche_network_suggestion *s = NULL;
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[32], *copy;

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(cloche_network_log_suggest(path, blocked_only, &s, NULL) == 0);
	copy = strdup(s->yaml);
	cloche_network_suggestion_free(s);
	close(fd);
	return copy;
}

static void check_has(const char *log, bool blocked_only, const char *want)
{
	char *yaml = suggestion_for(log, blocked_only);

	if (!strstr(yaml, want))
		tap_fail("no \"%s\" in\n%s", want, yaml);
	free(yaml);
}

static void check_has_not(const char *log, bool blocked_only, const char *text)
{
	char *yaml = suggestion_for(log, blocked_only);

	if (strstr(yaml, text))
		tap_fail("\"%s\" in\n%s", text, yaml);
	free(yaml);
}

/* What filters of bodies refused must not be had by an entry without them, from either form. */
static void test_filtered(void)
{
	static const char plain[] =
		"BLOCKED POST https://gql.test/graphql -> 403 (graphql_operation_blocked: "
		"mutation:<blocked>)\n"
		"BLOCKED POST https://off.test/x -> 403 (broken off: the policy was replaced)\n"
		"BLOCKED POST https://gql.test/graphql -> 403 (graphql_operation_blocked: "
		"query/search) [graphql: query/search]\n"
		"BLOCKED GET https://gql.test/graphql -> 403\n";

	check_has_not(plain, false, "  - host: \"gql.test\"");
	check_has(plain, false,
		"#   POST https://gql.test/graphql: graphql_operation_blocked: "
		"mutation:<blocked>\n");
	check_has(plain, false, "  - host: \"off.test\"\n");
}

static void test_kinds(void)
{
	static const char log[] =
		"BLOCKED CONNECT p.test:443 -> 403 (TLS: alert 48)\n"
		"ALLOWED CONNECT t.test:443 -> 200 [tunnel]\n"
		"BLOCKED CONNECT 1.2.3.4:22 -> 403 (not HTTP: SSH)\n"
		"ERROR PUT https://err.test/x -> connecting failed\n"
		"BLOCKED GET https://a.test/x -> 421 (host mismatch: header=a, url=b)\n"
		"{\"event\":\"request\",\"decision\":\"blocked\",\"method\":\"POST\","
		"\"url\":\"https://gql.test/graphql\",\"reason\":\"body_filter\"}\n"
		"{\"event\":\"request\",\"decision\":\"blocked\",\"method\":\"GET\","
		"\"url\":\"https://int.test/\",\"reason\":\"allowed\",\"note\":\"private\"}\n"
		"no log line\n"
		"{\"event\":\"connect\",\"decision\":\"blocked\",\"host\":\"db.test\","
		"\"port\":5432,\"reason\":\"tcp\",\"note\":\"not HTTP: PostgreSQL\"}\n"
		"{\"event\":\"connect\",\"decision\":\"blocked\",\"host\":\"10.0.0.1\","
		"\"port\":22,\"reason\":\"tcp\",\"note\":\"not HTTP: SSH\"}\n"
		"ALLOWED CONNECT kv.test:6379 -> 200 [tcp: 1/2 bytes]\n";

	check_has(log, false, "  - host: \"db.test\"\n    schemes: [tcp]\n    ports: [5432]\n");
	check_has(log, false, "  - host: \"kv.test\"\n    schemes: [tcp]\n    ports: [6379]\n");
	check_has(log, false, "#   10.0.0.1:22: an address: write it out");
	check_has(log, false, "#   p.test:443: TLS: alert 48 (a client that pins");
	check_has(log, false, "  - host: \"t.test\"\n    tunnel: true\n");
	check_has(log, false, "#   1.2.3.4:22: not HTTP: SSH\n");
	check_has(log, false, "  - host: \"err.test\"\n    path: \"/x\"\n    methods: [\"PUT\"]\n");
	check_has(log, false, "#   GET https://a.test/x: host mismatch: header=a, url=b\n");
	check_has(log, false, "#   POST https://gql.test/graphql: body_filter\n");
	check_has_not(log, false, "  - host: \"int.test\"\n");
	check_has(log, false, "#   GET https://int.test/: private\n");
	check_has(log, false, "# Proposed for 10 requests");
	check_has(log, true, "# Proposed for 7 requests");
	check_has("", false, "url_prefixes: []\n");
}

/* What such a block let through is no reason for an entry without it, from either form. */
static void test_let_through_by_filter(void)
{
	static const char *const logs[] = {
		"ALLOWED POST https://gql.test/graphql -> 200 [graphql: query/viewer]\n"
		"ALLOWED GET https://gql.test/x -> 200\n"
		"BLOCKED GET https://gql.test/graphql -> 403\n",
		"{\"event\":\"request\",\"decision\":\"allowed\",\"method\":\"POST\","
		"\"url\":\"https://gql.test/graphql\",\"tags\":{\"graphql\":\"query/viewer\"}}\n"
		"{\"event\":\"request\",\"decision\":\"allowed\",\"method\":\"GET\","
		"\"url\":\"https://gql.test/x\"}\n"
		"{\"event\":\"error\",\"method\":\"POST\",\"url\":\"https://gql.test/graphql\"}\n"};

	for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
		check_has_not(logs[i], false, "\"/graphql\"");
		check_has(logs[i], false, "    path: \"/x\"\n");
		check_has(logs[i], false,
			"#   POST https://gql.test/graphql: a graphql block judged it "
			"(query/viewer): copy that entry\n");
	}
	check_has("{\"event\":\"request\",\"decision\":\"blocked\",\"method\":\"GET\","
		  "\"url\":\"https://gql.test/GraphQL\",\"reason\":\"graphql\"}\n",
		false, "#   GET https://gql.test/GraphQL: graphql\n");
}

/* A path that the log has only the beginning of is not proposed, a cut query does not matter. */
static void test_cut(void)
{
	char url[1200], line[3000];

	memset(url, 'a', sizeof(url) - 1);
	url[sizeof(url) - 1] = '\0';
	for (int json = 0; json < 2; json++)
		for (int query = 0; query < 2; query++) {
			struct buf text = BUF_INIT(1 << 16);
			struct netlog_event ev = {.kind = NETLOG_REQUEST,
				.method = STR("GET"),
				.url = str_make(line, 0),
				.status = 403};

			ev.url.n = (size_t)snprintf(
				line, sizeof(line), "https://a.test/%s%s", query ? "?" : "", url);
			must((json ? netlog_format_json(&ev, &text)
				   : netlog_format_plain(&ev, &text)) == 0);
			must(buf_cstr(&text));
			check_has(buf_data(&text), false,
				query ? "    path: \"/\"\n"
				      : ": the log does not hold the whole path\n");
			buf_done(&text);
		}
}

static void test_many_remarks(void)
{
	struct buf text = BUF_INIT(1 << 20);

	for (int i = 0; i < 1000; i++)
		must(buf_printf(&text, "BLOCKED CONNECT h%d:1 -> 403 (x)\n", i % 500) == 0);
	must(buf_cstr(&text));
	check_has(buf_data(&text), true, "#   and 900 more\n");
	buf_done(&text);
}

static void test_no_file(void)
{
	cloche_network_suggestion *s = NULL;
	cloche_err err = CLOCHE_ERR_INIT;

	check(cloche_network_log_suggest("/nowhere/log", false, &s, &err) < 0);
	check(strstr(err.message, "network log /nowhere/log"));
	check_int(cloche_network_log_suggest("/etc/passwd", false, &s, &err), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "/etc/passwd is not a network log"));
	cloche_network_suggestion_free(NULL);
}

int main(void)
{
	seeded_begin();
	run_test(test_kinds);
	run_test(test_filtered);
	run_test(test_let_through_by_filter);
	run_test(test_cut);
	run_test(test_many_remarks);
	run_test(test_no_file);
	run_test(test_random_logs);
	return tap_done();
}
