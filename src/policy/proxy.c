/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the client reads the environment and the broker gets the same three texts,
 * so that a wrong one is refused before anything runs, and the password is in no other program.
 *
 * A proxy is "http://[USER[:PASSWORD]@]HOST[:PORT]", where "http://" may be missing, "%XX" stands
 * for a byte of user and password, and the port is 1080 if none is written, as for curl. */
#include "policy/proxy.h"

#include "base/base64.h"
#include "base/parse.h"
#include "base/secmem.h"
#include "policy/address.h"

#include <errno.h>

enum { PORT_USUAL = 1080, LOGIN_MAX = 2048, KIND_MAX = 8 };

static struct str env_get(char *const *env, const char *name)
{
	for (size_t i = 0; env && env[i]; i++) {
		struct str value = str_from(env[i]);

		if (str_eq(str_next(&value, '='), str_from(name)))
			return value;
	}
	return STR_NULL;
}

/* Return the first value that is not empty, and its name. */
static struct str env_first(char *const *env, const char *const *names, const char **ret_name)
{
	for (; *names; names++) {
		struct str value = env_get(env, *names);

		if (value.n > 0) {
			*ret_name = *names;
			return value;
		}
	}
	*ret_name = "";
	return STR_NULL;
}

struct proxy_settings proxy_settings_from(char *const *env)
{
	static const char *const https[] = {
		"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};
	static const char *const http[] = {
		"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", NULL};
	static const char *const http_of_cgi[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
	static const char *const none[] = {"no_proxy", "NO_PROXY", NULL};
	bool is_cgi = env_get(env, "REQUEST_METHOD").n > 0;
	struct proxy_settings s;
	const char *name;

	s.none = env_first(env, none, &name);
	s.https = env_first(env, https, &s.https_name);
	s.http = env_first(env, is_cgi ? http_of_cgi : http, &s.http_name);
	if (str_eq(s.none, STR("*")))
		s.https = s.http = STR_NULL;
	return s;
}

/* Add what text stands for. */
static int add_decoded(struct buf *out, struct str text)
{
	while (text.n > 0) {
		int byte = parse_percent(text);
		int r = buf_add_char(out, byte < 0 ? text.p[0] : (char)byte);

		if (r < 0)
			return r;
		text = str_from_index(text, byte < 0 ? 1 : 3);
	}
	return 0;
}

/* RFC 7617 section 2: the user has no colon, and the password may be empty. */
static int login_new(struct str userinfo, struct secret **ret)
{
	_cleanup_(buf_done_wipedp) struct buf plain = BUF_INIT(LOGIN_MAX);
	_cleanup_(buf_done_wipedp) struct buf coded = BUF_INIT((size_t)2 * LOGIN_MAX);
	struct str user = str_next(&userinfo, ':');
	int r = add_decoded(&plain, user);

	if (r == 0)
		r = buf_add_char(&plain, ':');
	if (r == 0)
		r = add_decoded(&plain, userinfo);
	if (r == 0)
		r = base64_encode(&coded, buf_str(&plain));
	if (r < 0)
		return r;
	*ret = secret_new(buf_data(&coded), buf_len(&coded));
	return *ret ? 0 : -ENOMEM;
}

/* Return the length of userinfo, which ends at the last '@', or -1 if there is none. */
static ssize_t userinfo_len(struct str authority)
{
	for (size_t i = authority.n; i > 0; i--)
		if (authority.p[i - 1] == '@')
			return (ssize_t)i - 1;
	return -1;
}

static int take_authority(struct proxy *p, struct str text)
{
	ssize_t at = userinfo_len(text);
	struct host host;
	uint16_t port;
	int r = 0;

	if (host_parse_authority(str_from_index(text, (size_t)(at + 1)), &host, &port) < 0)
		return -EINVAL;
	if (at > 0)
		r = login_new(str_prefix(text, (size_t)at), &p->login);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	p->host = host;
	p->port = port ? port : PORT_USUAL;
	return 0;
}

static bool is_plain_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!str_is_alnum(s.p[i]))
			return false;
	return s.n > 0 && s.n <= KIND_MAX;
}

static int proxy_take(struct proxy *p, struct str url, const char *name, struct cloche_err *err)
{
	size_t kind = str_find(url, STR("://"));
	int r;

	if (url.n == 0)
		return 0;
	if (kind < url.n) {
		struct str word = str_prefix(url, kind);

		if (is_plain_word(word) && !str_ieq(word, STR("http"))) {
			err_set(err, E_CONFIG,
				"%s names a proxy of the kind %.*s://, and requests of a sandbox "
				"go through http:// ones alone",
				name, STR_FMT(word));
			err_hint(err,
				"name an http:// proxy (the connections in it are still TLS), or "
				"set NO_PROXY=* to go without one");
			return -E_CONFIG;
		}
		url = str_ieq(word, STR("http")) ? str_from_index(url, kind + 3) : STR_NULL;
	}
	if (url.n > 0 && url.p[url.n - 1] == '/')
		url.n--;
	r = take_authority(p, url);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == 0)
		return 0;
	err_set(err, E_CONFIG, "%s does not name a proxy", name);
	err_hint(err, "write it as http://[USER:PASSWORD@]HOST[:PORT], or unset it");
	return -E_CONFIG;
}

int proxies_set(struct proxies *p, const struct proxy_settings *s, struct cloche_err *err)
{
	int r;

	if (s->https.n > PROXY_URL_MAX || s->http.n > PROXY_URL_MAX || s->none.n > PROXY_NONE_MAX)
		return err_set(err, E_CONFIG, "the variables of proxies (%s) are too long",
			s->none.n > PROXY_NONE_MAX ? "NO_PROXY" : "HTTPS_PROXY");
	r = proxy_take(&p->https, s->https, s->https_name, err);

	if (r == 0)
		r = proxy_take(&p->http, s->http, s->http_name, err);
	if (r < 0)
		return r;
	p->none = str_dup(s->none);
	return p->none ? 0 : err_nomem(err);
}

void proxies_done(struct proxies *p)
{
	secret_free(p->https.login);
	secret_free(p->http.login);
	free(p->none);
	*p = (struct proxies){0};
}

/* ".example.com" and "example.com" are the same: that name and all below it. */
static bool none_has_name(struct str entry, struct str name)
{
	if (entry.n > 0 && entry.p[entry.n - 1] == '.')
		entry.n--;
	if (entry.n > 0 && entry.p[0] == '.')
		entry = str_from_index(entry, 1);
	if (entry.n == 0 || entry.n > name.n)
		return false;
	return str_ieq(str_from_index(name, name.n - entry.n), entry) &&
	       (entry.n == name.n || name.p[name.n - entry.n - 1] == '.');
}

/* "10.0.0.0/8", "fd00::/8" or one address. Bits beyond the prefix do not count. */
static bool none_has_address(struct str entry, struct str address)
{
	struct str text = str_next(&entry, '/');
	struct cidr range, one;
	uint64_t bits, width = str_chr(text, ':') < text.n ? 128 : 32;

	if (cidr_parse(text, &range) < 0 || cidr_parse(address, &one) < 0)
		return false;
	if (entry.n > 0) {
		if (parse_u64(entry, width, &bits) < 0)
			return false;
		range.bits = (uint8_t)(128 - width + bits);
	}
	return cidr_contains(&range, one.addr);
}

static bool none_has(struct str list, const struct host *host)
{
	while (list.n > 0) {
		size_t n = 0;
		struct str entry;

		while (n < list.n && !strchr(", \t\r\n", list.p[n]))
			n++;
		entry = str_prefix(list, n);
		list = str_from_index(list, n + 1);
		if (host->kind == HOST_NAME ? none_has_name(entry, host_str(host))
					    : none_has_address(entry, host_bare(host)))
			return true;
	}
	return false;
}

const struct proxy *proxies_find(
	const struct proxies *p, enum policy_scheme scheme, const struct host *host)
{
	const struct proxy *proxy = scheme == POLICY_HTTPS ? &p->https : &p->http;

	return proxy->port == 0 || none_has(str_from(p->none), host) ? NULL : proxy;
}
