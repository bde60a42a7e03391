/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/secmem.h"
#include "policy/proxy.h"

#include "tap.h"

/* Longest list of variables in a case. */
enum { VARIABLES = 5 };

static const struct {
	const char *env[VARIABLES + 1];
	const char *https, *http, *https_name;
} settings[] = {
	{{NULL}, "", "", ""},
	{{"HTTPS_PROXY=a", NULL}, "a", "", "HTTPS_PROXY"},
	{{"https_proxy=a", NULL}, "a", "", "https_proxy"},
	{{"HTTPS_PROXY=a", "https_proxy=b", NULL}, "b", "", "https_proxy"},
	{{"HTTPS_PROXY=a", "https_proxy=", NULL}, "a", "", "HTTPS_PROXY"},
	{{"ALL_PROXY=a", NULL}, "a", "a", "ALL_PROXY"},
	{{"ALL_PROXY=a", "all_proxy=b", "HTTPS_PROXY=c", NULL}, "c", "b", "HTTPS_PROXY"},
	{{"HTTPS_PROXY=", "ALL_PROXY=a", NULL}, "a", "a", "ALL_PROXY"},
	{{"http_proxy=a", NULL}, "", "a", ""},
	{{"HTTP_PROXY=a", NULL}, "", "a", ""},
	{{"HTTP_PROXY=a", "http_proxy=b", NULL}, "", "b", ""},
	{{"HTTP_PROXY=a", "REQUEST_METHOD=GET", NULL}, "", "", ""},
	{{"http_proxy=a", "REQUEST_METHOD=GET", NULL}, "", "a", ""},
	{{"Https_Proxy=a", "XHTTPS_PROXY=a", "HTTPS_PROXYX=a", NULL}, "", "", ""},
	{{"HTTPS_PROXY=a", "HTTP_PROXY=b", "NO_PROXY=*", NULL}, "", "", "HTTPS_PROXY"},
	{{"HTTPS_PROXY=a", "no_proxy=*", "NO_PROXY=x", NULL}, "", "", "HTTPS_PROXY"},
	{{"HTTPS_PROXY=a", "no_proxy=x", "NO_PROXY=*", NULL}, "a", "", "HTTPS_PROXY"},
	{{"HTTPS_PROXY=a", "NO_PROXY=*,x", NULL}, "a", "", "HTTPS_PROXY"},
};

static void test_settings(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		char *env[VARIABLES + 1];
		struct proxy_settings s;

		memcpy(env, settings[i].env, sizeof(env));
		s = proxy_settings_from(env);
		check_str(s.https, settings[i].https);
		check_str(s.http, settings[i].http);
		check_str(str_from(s.https_name), settings[i].https_name);
	}
	check_int((long)proxy_settings_from(NULL).https.n, 0);
}

static const struct {
	const char *url, *host; /* NULL: refused */
	unsigned port;
	const char *login;
} urls[] = {
	{"http://proxy.test:3128", "proxy.test", 3128, ""},
	{"HTTP://Proxy.Test:3128/", "proxy.test", 3128, ""},
	{"proxy.test:3128", "proxy.test", 3128, ""},
	{"proxy.test", "proxy.test", 1080, ""},
	{"http://10.0.0.1:80", "10.0.0.1", 80, ""},
	{"http://[fd00::1]:80", "[fd00::1]", 80, ""},
	{"http://u:p@proxy.test:1", "proxy.test", 1, "dTpw"},
	{"http://u@proxy.test:1", "proxy.test", 1, "dTo="},
	{"http://u:@proxy.test:1", "proxy.test", 1, "dTo="},
	{"http://:p@proxy.test:1", "proxy.test", 1, "OnA="},
	{"http://@proxy.test:1", "proxy.test", 1, ""},
	{"http://u:a:b@proxy.test:1", "proxy.test", 1, "dTphOmI="},
	{"http://u:p@q@proxy.test:1", "proxy.test", 1, "dTpwQHE="},
	{"u%40x:%3Ap%zz@proxy.test:1", "proxy.test", 1, "dUB4OjpwJXp6"},
	{"http://", NULL, 0, ""},
	{"/", NULL, 0, ""},
	{"http://proxy.test:0", NULL, 0, ""},
	{"http://proxy.test:65536", NULL, 0, ""},
	{"http://proxy.test:80/path", NULL, 0, ""},
	{"http://proxy.test:80\r\nX: y", NULL, 0, ""},
	{"http://a b", NULL, 0, ""},
	{"http://127.1:80", NULL, 0, ""},
	{"https://proxy.test:3128", NULL, 0, ""},
	{"socks5h://proxy.test:1080", NULL, 0, ""},
	{"\x1b[2J://proxy.test:1080", NULL, 0, ""},
};

static void test_urls(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		struct proxy_settings s = {
			.https = str_from(urls[i].url), .https_name = "A", .http_name = "B"};
		_cleanup_(proxies_donep) struct proxies p = {0};
		struct cloche_err err = CLOCHE_ERR_INIT;
		int r = proxies_set(&p, &s, &err);

		check_int(r, urls[i].host ? 0 : -E_CONFIG);
		if (r < 0) {
			check(str_starts(str_from(err.message), STR("A ")));
			check(!strstr(err.message, "proxy.test") && !strchr(err.message, 27));
			check(err.hint[0] != '\0');
			continue;
		}
		check_str(host_str(&p.https.host), urls[i].host);
		check_int(p.https.port, urls[i].port);
		check_str(p.https.login ? secret_reveal(p.https.login) : STR_NULL, urls[i].login);
		check_int(p.http.port, 0);
	}
}

/* What a message says of a URL must not hold the password, even if it is nothing but that. */
static void test_too_long(void)
{
	_cleanup_(buf_donep) struct buf url = BUF_INIT(8192);
	_cleanup_(proxies_donep) struct proxies p = {0};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct proxy_settings s = {.https_name = "A", .http_name = "B"};

	must(buf_printf(&url, "http://u:%04096d@h.test:1", 0) == 0);
	s.http = buf_str(&url);
	check_int(proxies_set(&p, &s, &err), -E_CONFIG);
	check(!strstr(err.message, "000"));
	/* It fits, but the login does not. */
	s.http = str_prefix(s.http, 0);
	buf_clear(&url);
	must(buf_printf(&url, "http://u:%03000d@h.test:1", 0) == 0);
	s.http = buf_str(&url);
	check_int(proxies_set(&p, &s, &err), -E_CONFIG);
	check(!strstr(err.message, "000"));
}

static const struct {
	const char *none, *host;
	bool direct;
} rows[] = {
	{"", "a.test", false},
	{"a.test", "a.test", true},
	{"A.Test", "a.test", true},
	{"a.test.", "a.test", true},
	{"a.test", "a.test.", true},
	{"a.test", "b.a.test", true},
	{".a.test", "b.a.test", true},
	{".a.test", "a.test", true},
	{"a.test", "ba.test", false},
	{"a.test", "a.test.evil", false},
	{"test", "a.test", true},
	{".", "a.test", false},
	{"..", "a.test", false},
	{"*.test", "a.test", false},
	{"x, a.test", "a.test", true},
	{"x a.test\ty", "a.test", true},
	{",, ,a.test,", "a.test", true},
	{"x,a.test:443", "a.test", false},
	{"*", "a.test", false}, /* proxy_settings_from() leaves no URL then */
	{"10.0.0.1", "10.0.0.1", true},
	{"10.0.0.1", "10.0.0.10", false},
	{"10.0.0.0/8", "10.1.2.3", true},
	{"10.9.9.9/8", "10.1.2.3", true},
	{"10.0.0.0/8", "11.1.2.3", false},
	{"10.0.0.0/9", "10.128.0.1", false},
	{"10.0.0.0/33", "10.0.0.0", false},
	{"10.0.0.0/x", "10.0.0.0", false},
	{"0.0.0.0/0", "8.8.8.8", true},
	{"0.0.0.0/0", "a.test", false},
	{"10.0.0.1", "a.10.0.0.1.test", false},
	{"0.0.1", "10.0.0.1", false},
	{"fd00::1", "[fd00::1]", true},
	{"FD00:0::1", "[fd00::1]", true},
	{"fd00::/8", "[fd12::3]", true},
	{"fd00::/8", "[fe12::3]", false},
	{"fd00::/129", "[fd00::]", false},
	{"::/0", "[2606::1]", true},
	{"0.0.0.0/0", "[2606::1]", false},
	{"localhost", "localhost", true},
};

static void test_none(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct proxy_settings s = {.https = STR("p.test:1"),
			.none = str_from(rows[i].none),
			.https_name = "A",
			.http_name = "B"};
		_cleanup_(proxies_donep) struct proxies p = {0};
		const struct proxy *found;
		struct host host;

		must(host_parse(str_from(rows[i].host), &host) == 0);
		must(proxies_set(&p, &s, NULL) == 0);
		found = proxies_find(&p, POLICY_HTTPS, &host);
		printf("# %s for %s\n", rows[i].none, rows[i].host);
		check(rows[i].direct ? !found : found == &p.https);
		check(!proxies_find(&p, POLICY_HTTP, &host));
	}
}

int main(void)
{
	run_test(test_settings);
	run_test(test_urls);
	run_test(test_too_long);
	run_test(test_none);
	return tap_done();
}
