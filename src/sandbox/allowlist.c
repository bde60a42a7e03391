/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/allowlist.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "policy/decide.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

cloche_allowlist *cloche_allowlist_new(void)
{
	cloche_allowlist *list = calloc(1, sizeof(*list));

	if (list)
		list->rules = allowlist_new();
	if (list && !list->rules) {
		free(list);
		return NULL;
	}
	return list;
}

static void source_done(struct allow_source *s)
{
	free(s->name);
	free(s->text);
}

void cloche_allowlist_free(cloche_allowlist *list)
{
	if (!list)
		return;
	allowlist_free(list->rules);
	for (size_t i = 0; i < list->sources_n; i++)
		source_done(&list->sources[i]);
	free(list->sources);
	free(list);
}

/* Have the text behind the last source, so that nothing can fail once its rules are added. name
 * NULL: a shorthand. */
static int source_prepare(cloche_allowlist *list, const char *name, struct str text)
{
	struct allow_source *grown =
		reallocarray(list->sources, list->sources_n + 1, sizeof(*grown));
	struct allow_source s = {0};

	if (!grown)
		return -ENOMEM;
	list->sources = grown;
	s.text = str_dup(text);
	s.name = name ? strdup(name) : NULL;
	if (!s.text || (name && !s.name)) {
		source_done(&s);
		return -ENOMEM;
	}
	list->sources[list->sources_n] = s;
	return 0;
}

/* Count it, or forget it if its rules could not be added (r). Return r. */
static int source_settle(cloche_allowlist *list, int r)
{
	if (r < 0)
		source_done(&list->sources[list->sources_n]);
	else
		list->sources_n++;
	return r;
}

int cloche_allowlist_add_text(
	cloche_allowlist *list, const char *name, const char *text, size_t length, cloche_err *err)
{
	struct str rules = str_make(text, length);

	if (source_prepare(list, name, rules) < 0)
		return err_nomem(err);
	return source_settle(list, allowlist_add_yaml(list->rules, rules, name, err));
}

int cloche_allowlist_add_file(cloche_allowlist *list, const char *path, cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(ALLOWLIST_MAX_TEXT);
	int r = fd_read_file(AT_FDCWD, path, &text, err);

	if (r < 0)
		return err_wrap(err, r, "allowlist");
	return cloche_allowlist_add_text(list, path, buf_data(&text), buf_len(&text), err);
}

/* Return whether a host means the room itself: such connections never reach the gateway. */
static bool is_loopback(const char *host)
{
	struct str s = str_from(host);
	struct host h;

	if (host_parse(s, &h) == 0 && h.kind == HOST_IPV4)
		return str_starts(s, STR("127."));
	return str_eq(s, STR("localhost")) || str_ends(s, STR(".localhost")) ||
	       str_eq(s, STR("[::1]"));
}

static int refuse_loopback(
	const char *shorthand, const struct allow_rule *rule, struct cloche_err *err)
{
	unsigned port = rule->n_ports                  ? rule->ports[0]
			: rule->schemes & POLICY_HTTPS ? 443
			: rule->schemes & POLICY_SSH   ? 22
						       : 80;

	err_set(err, E_USAGE,
		"--allow %s: inside, %s is the sandbox itself, so nothing would go out", shorthand,
		rule->host);
	err_hint(err,
		"a service of this machine has a name of its own: --allow %s://" POLICY_MACHINE
		":%u",
		rule->schemes == POLICY_TCP   ? "tcp"
		: rule->schemes == POLICY_SSH ? "ssh"
					      : "http",
		port);
	return -E_USAGE;
}

static int add_shorthand(cloche_allowlist *list, const char *shorthand, struct cloche_err *err)
{
	struct str rule = str_from(shorthand);

	if (source_prepare(list, NULL, rule) < 0)
		return err_nomem(err);
	return source_settle(list, allowlist_add_host(list->rules, rule, err));
}

int cloche_allowlist_add_host(cloche_allowlist *list, const char *shorthand, cloche_err *err)
{
	_cleanup_(allowlist_freep) struct allowlist *alone = allowlist_new();
	int r = alone ? 0 : err_nomem(err);

	if (r == 0 && shorthand[0] == '!')
		return err_set(
			err, E_USAGE, "--allow %s: expected a host name, without !", shorthand);
	if (r == 0)
		r = allowlist_add_host(alone, str_from(shorthand), err);
	if (r < 0)
		return r;
	if (is_loopback(allowlist_rule(alone, 0)->host))
		return refuse_loopback(shorthand, allowlist_rule(alone, 0), err);
	return add_shorthand(list, shorthand, err);
}

int cloche_allowlist_deny_host(cloche_allowlist *list, const char *shorthand, cloche_err *err)
{
	_cleanup_(freep) char *text = NULL;

	if (asprintf(&text, "!%s", shorthand) < 0) {
		text = NULL;
		return err_nomem(err);
	}
	return add_shorthand(list, text, err);
}

int allowlist_add_source(
	cloche_allowlist *list, const struct allow_source *s, struct cloche_err *err)
{
	if (s->name)
		return cloche_allowlist_add_text(list, s->name, s->text, strlen(s->text), err);
	return s->text[0] == '!' ? add_shorthand(list, s->text, err)
				 : cloche_allowlist_add_host(list, s->text, err);
}

size_t cloche_allowlist_count(const cloche_allowlist *list)
{
	return allowlist_count(list->rules);
}

cloche_allowlist *allowlist_copy(const cloche_allowlist *list)
{
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *copy = NULL;

	if (!list)
		return NULL;
	copy = cloche_allowlist_new();
	for (size_t i = 0; copy && i < list->sources_n; i++)
		if (allowlist_add_source(copy, &list->sources[i], NULL) < 0)
			return NULL;
	return TAKE_PTR(copy);
}

/* Take the scheme off *url. */
static bool take_scheme(struct str *url, struct policy_request *ret)
{
	static const struct {
		struct str start;
		enum policy_scheme scheme;
		bool websocket;
	} schemes[] = {{STR("https://"), POLICY_HTTPS, false}, {STR("http://"), POLICY_HTTP, false},
		{STR("wss://"), POLICY_HTTPS, true}, {STR("ws://"), POLICY_HTTP, true},
		{STR("tcp://"), POLICY_TCP, false}, {STR("ssh://"), POLICY_SSH, false}};

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!str_ieq(str_prefix(*url, schemes[i].start.n), schemes[i].start))
			continue;
		ret->scheme = schemes[i].scheme;
		ret->websocket = schemes[i].websocket;
		*url = str_from_index(*url, schemes[i].start.n);
		return true;
	}
	return false;
}

static int bad_host(struct str authority, struct cloche_err *err)
{
	err_set(err, E_USAGE, "\"%.*s\" is not a valid host", STR_FMT(authority));
	if (str_chr(authority, '@') < authority.n)
		err_hint(err, "leave out the part before the @");
	for (size_t i = 0; i < authority.n; i++)
		if ((unsigned char)authority.p[i] >= 0x80) {
			err_hint(err, "write an international name in its xn-- form");
			break;
		}
	return -E_USAGE;
}

/* RFC 3986 section 3. */
int allowlist_split_url(
	struct str url, struct policy_request *ret, struct host *ret_host, struct cloche_err *err)
{
	struct str rest = url, authority;
	size_t at;

	if (!take_scheme(&rest, ret)) {
		err_set(err, E_USAGE, "\"%.*s\" is not an http:// or https:// URL", STR_FMT(url));
		if (str_find(url, STR("://")) == url.n)
			err_hint(err, "with its scheme, as in https://%.*s",
				STR_FMT(str_prefix(url, 100)));
		return -E_USAGE;
	}
	at = MIN(str_chr(rest, '/'), str_chr(rest, '?'));
	authority = str_prefix(rest, at);
	ret->target = str_from_index(rest, at);
	if (ret->scheme == POLICY_SSH) {
		at = str_chr(authority, '@');
		ret->user = at < authority.n ? str_prefix(authority, at) : STR("git");
		authority = at < authority.n ? str_from_index(authority, at + 1) : authority;
	}
	if (host_parse_authority(authority, ret_host, &ret->port) < 0)
		return bad_host(authority, err);
	ret->host = host_str(ret_host);
	if (ret->port == 0 && ret->scheme == POLICY_TCP)
		return err_set(
			err, E_USAGE, "\"%.*s\" has no port, as in tcp://host:5432", STR_FMT(url));
	if (ret->port == 0)
		ret->port = policy_scheme_port(ret->scheme);
	return 0;
}

/* HOST[:PORT] */
static int read_tunnel(
	struct str place, struct policy_request *ret, struct host *ret_host, struct cloche_err *err)
{
	if (host_parse_authority(place, ret_host, &ret->port) < 0)
		return err_set(err, E_USAGE, "\"%.*s\" is not HOST or HOST:PORT, as for CONNECT",
			STR_FMT(place));
	ret->scheme = POLICY_HTTPS;
	ret->host = host_str(ret_host);
	ret->port = ret->port ? ret->port : 443;
	return 0;
}

/* Return whether the GraphQL filter refuses this request without looking at its body. */
static bool is_refused_unread(const struct policy_request *req, const struct verdict *v)
{
	return v->allow && v->rule->has_graphql &&
	       (!str_eq(req->method, STR("POST")) || str_chr(req->target, '?') < req->target.n);
}

static int decide_request(
	const struct allowlist *rules, const struct policy_request *req, struct verdict *ret)
{
	int r = policy_decide(rules, req, ret);

	if (r == 0 && is_refused_unread(req, ret)) {
		ret->allow = false;
		ret->reason = POLICY_BODY;
	}
	return r;
}

/* If an entry allows the name as a tunnel, every TLS connection to it becomes a tunnel. */
static int decide(const struct allowlist *rules, struct policy_request *request,
	const struct host *host, struct verdict *ret)
{
	struct policy_request tunnel = *request;
	int r;

	tunnel.tunnel = true;
	if (request->scheme != POLICY_HTTPS || host->kind != HOST_NAME)
		return decide_request(rules, request, ret);
	r = policy_decide(rules, &tunnel, ret);
	if (r < 0 || request->tunnel || !ret->allow)
		return r < 0 || request->tunnel ? r : decide_request(rules, request, ret);
	*request = tunnel;
	return 0;
}

/* A token of RFC 9110 section 5.6.2. */
static bool is_method(struct str s)
{
	return s.n > 0 && str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "!#$%&'*+-.^_`|~");
}

int cloche_allowlist_check(const cloche_allowlist *list, const char *method, const char *url,
	cloche_verdict *ret, cloche_err *err)
{
	_cleanup_(buf_donep) struct buf explanation = BUF_INIT(8192), target = BUF_INIT(1 << 16);
	_cleanup_(buf_donep) struct buf suggestion = BUF_INIT(65536);
	struct policy_request request = {.method = str_from(method), .body_filtered = true};
	struct verdict verdict;
	struct host host;
	int r;

	if (!is_method(request.method)) {
		err_set(err, E_USAGE, "\"%s\" is not an HTTP method such as GET", method);
		err_hint(err, "the method comes first, then the URL");
		return -E_USAGE;
	}
	request.tunnel = str_ieq(request.method, STR("CONNECT")) &&
			 !str_starts(str_from(url), STR("tcp://"));
	/* A client never sends the fragment. */
	if (request.tunnel)
		r = read_tunnel(str_from(url), &request, &host, err);
	else
		r = allowlist_split_url(str_prefix(str_from(url), str_chr(str_from(url), '#')),
			&request, &host, err);
	if (r < 0)
		return r;
	/* An empty path is sent as "/" (RFC 9112 section 3.2.1). */
	if (request.target.n == 0 || request.target.p[0] == '?') {
		if (buf_add_char(&target, '/') < 0 || buf_add_str(&target, request.target) < 0)
			return err_nomem(err);
		request.target = buf_str(&target);
	}
	if (decide(list->rules, &request, &host, &verdict) < 0 ||
		policy_explain(&request, &verdict, &explanation) < 0 ||
		policy_suggest(list->rules, &request, &verdict, &suggestion) < 0)
		return err_nomem(err);
	memset(ret, 0, sizeof(*ret));
	ret->allowed = verdict.allow;
	snprintf(ret->reason, sizeof(ret->reason), "%s", policy_reason_word(verdict.reason));
	snprintf(ret->rule, sizeof(ret->rule), "%s", verdict.rule ? verdict.rule->label : "");
	str_copy(ret->explanation, sizeof(ret->explanation), buf_str(&explanation));
	/* Never cut a suggestion: a part would mean something else. */
	if (buf_len(&suggestion) < sizeof(ret->suggestion))
		str_copy(ret->suggestion, sizeof(ret->suggestion), buf_str(&suggestion));
	return 0;
}
