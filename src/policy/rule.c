/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: these setters fill every rule, however it is written, so the YAML text and
 * the shorthand of the command line cannot differ in what they accept. A rule that could never
 * match is refused here: it does nothing, which is a mistake that its author should hear about. */
#include "policy/rule.h"

#include "base/account.h"
#include "base/parse.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "policy/glob.h"
#include <ctype.h>
#include <errno.h>

struct allow_rule *rule_new(void)
{
	struct allow_rule *rule = calloc(1, sizeof(*rule));

	if (rule)
		rule->websocket = rule->scrub = true;
	return rule;
}

struct allow_rule *rule_free(struct allow_rule *rule)
{
	if (!rule || rule->others-- > 0)
		return NULL;
	strv_free(rule->methods);
	strv_free(rule->graphql_queries);
	strv_free(rule->graphql_mutations);
	strv_free(rule->graphql_subscriptions);
	free(rule->label);
	free(rule->label_inside);
	free(rule->host);
	free(rule->user);
	free(rule->path);
	free(rule->path_prefix);
	free(rule->ports);
	free(rule->private_ranges);
	free(rule);
	return NULL;
}

static int want(const char **ret_want, const char *what)
{
	*ret_want = what;
	return -EINVAL;
}

static const char *host_wanted(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= 0x80)
			return "a host in ASCII (an international name in its xn-- form)";
	return "a host name or host pattern without scheme, port or path";
}

int rule_set_host(struct allow_rule *rule, struct str s, const char **ret_want)
{
	char text[HOST_MAX + 1];
	struct host host;

	/* No label begins with '-', but an option whose value was forgotten does. */
	if ((s.n > 0 && s.p[0] == '-') || host_pattern_parse(s, text) < 0)
		return want(ret_want, host_wanted(s));
	rule->host = str_dup(str_from(text));
	if (!rule->host)
		return -ENOMEM;
	/* An address also opens itself; otherwise such a rule could never work. */
	if (host_parse(str_from(text), &host) == 0 && host.kind != HOST_NAME)
		return rule_add_range(rule, host_bare(&host), ret_want);
	return 0;
}

/* Paths are compared decoded, so what cannot be in a decoded path cannot be in a pattern. */
static const char *check_path_text(struct str s)
{
	if (s.n == 0 || s.n > RULE_TEXT_MAX)
		return "a path of 1 to 2048 bytes";
	if (!utf8_is_valid(s))
		return "a path in UTF-8";
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f || s.p[i] == '\\')
			return "a path without control characters or backslashes";
		if (parse_percent(str_from_index(s, i)) >= 0)
			return "a path with the characters themselves, not percent-encoded";
	}
	return NULL;
}

int rule_set_path(struct allow_rule *rule, struct str s, const char **ret_want)
{
	const char *problem;

	if (s.n == 0) /* the common format's default: any path */
		return 0;
	problem = check_path_text(s);
	if (problem)
		return want(ret_want, problem);
	if (s.p[0] != '/' && !(glob_is_pattern(s) && memchr("*?[", s.p[0], 3)))
		return want(ret_want, "a path that begins with '/'");
	rule->path = str_dup(s);
	return rule->path ? 0 : -ENOMEM;
}

int rule_set_path_prefix(struct allow_rule *rule, struct str s, const char **ret_want)
{
	const char *problem = check_path_text(s);

	if (problem)
		return want(ret_want, problem);
	if (s.p[0] != '/')
		return want(ret_want, "a path that begins with '/'");
	if (glob_is_pattern(s))
		return want(ret_want, "a path without `*` and `?` (use `path` for patterns)");
	while (s.n > 0 && s.p[s.n - 1] == '/')
		s.n--;
	rule->path_prefix = str_dup(s);
	return rule->path_prefix ? 0 : -ENOMEM;
}

bool rule_is_method(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!str_is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_')
			return false;
	return s.n > 0 && s.n <= RULE_METHOD_MAX;
}

int rule_add_method(struct allow_rule *rule, struct str s, const char **ret_want)
{
	char upper[RULE_METHOD_MAX];

	if (!rule_is_method(s))
		return want(ret_want, "an HTTP method such as GET");
	for (size_t i = 0; i < s.n; i++)
		upper[i] = (char)toupper((unsigned char)s.p[i]);
	return strv_add(&rule->methods, str_make(upper, s.n));
}

int rule_set_user(struct allow_rule *rule, struct str s, const char **ret_want)
{
	if (!account_is_name(s))
		return want(ret_want, "a user of ssh: letters, digits and ._-");
	rule->user = str_dup(s);
	return rule->user ? 0 : -ENOMEM;
}

int rule_add_scheme(struct allow_rule *rule, struct str s, const char **ret_want)
{
	enum policy_scheme scheme;

	if (!policy_scheme_find(s, &scheme) || (rule->schemes & scheme))
		return want(ret_want, "https, http, tcp or ssh, each once");
	rule->schemes |= scheme;
	return 0;
}

int rule_add_port(struct allow_rule *rule, struct str s, const char **ret_want)
{
	uint64_t port;
	uint16_t *v;

	if (parse_u64(s, 65535, &port) < 0 || port == 0)
		return want(ret_want, "a port from 1 to 65535");
	v = reallocarray(rule->ports, rule->n_ports + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	rule->ports = v;
	v[rule->n_ports++] = (uint16_t)port;
	return 0;
}

int rule_add_range(struct allow_rule *rule, struct str s, const char **ret_want)
{
	struct cidr range, *v;

	if (cidr_parse(s, &range) < 0)
		return want(ret_want,
			"an address range such as 10.0.0.0/8 (no bits set after the prefix)");
	v = reallocarray(rule->private_ranges, rule->n_private_ranges + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	rule->private_ranges = v;
	v[rule->n_private_ranges++] = range;
	return 0;
}

int rule_add_field(char ***list, struct str s, const char **ret_want)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && !memchr("_*?[]!-", s.p[i], 7))
			return want(ret_want, "a GraphQL field name or pattern");
	if (s.n == 0 || s.n > RULE_TEXT_MAX)
		return want(ret_want, "a GraphQL field name or pattern");
	return strv_add(list, s);
}

bool rule_guards(const struct allow_rule *rule, const struct path *path, bool other_path)
{
	struct str own = str_from(rule->path ? rule->path : rule->path_prefix);
	/* Below "/" is the whole host. */
	bool below = own.n > 1;

	if (!rule->has_graphql || !own.p || glob_is_pattern(own))
		return false;
	return path->problem != PATH_OK || path->unsure != PATH_OK || path->encoded_slash ||
	       other_path || path_may_be(path->decoded, own, below);
}

/* What cannot be seen or decided may be what is denied. */
bool rule_denies(const struct allow_rule *rule, const struct path *path, bool unseen)
{
	if (!rule->path && !rule->path_prefix)
		return true;
	if (unseen || path->problem != PATH_OK || path->unsure != PATH_OK || path->encoded_slash)
		return true;
	if (rule->path_prefix)
		return path_may_be(path->decoded, str_from(rule->path_prefix), true);
	return path_pattern_matches(str_from(rule->path), path) ||
	       path_may_be(path->decoded, str_from(rule->path), true);
}

bool policy_host_is_machine(const struct host *host)
{
	return str_eq(host_str(host), STR(POLICY_MACHINE));
}

bool allow_rule_names_machine(const struct allow_rule *rule)
{
	return rule->n_ports > 0 && strcmp(rule->host, POLICY_MACHINE) == 0;
}

static bool has_request_words(const struct allow_rule *rule)
{
	return rule->path || rule->path_prefix || rule->methods || rule->has_graphql ||
	       rule->no_query || rule->encoded_slash;
}

static int finish_tunnel(struct allow_rule *rule, const char **ret_want)
{
	struct host host;

	if (host_parse(str_from(rule->host), &host) == 0 && host.kind != HOST_NAME)
		return want(ret_want, "a tunnel to a host name, not to an address");
	if (has_request_words(rule) || (rule->schemes & ~(unsigned)POLICY_HTTPS))
		return want(ret_want,
			"a tunnel without path, methods, query, graphql or http: nothing in it "
			"can be seen");
	rule->schemes = POLICY_HTTPS;
	return 0;
}

/* Queries for names have their answers here, whatever the rules say. */
static bool is_dns_port(uint16_t port)
{
	return port == 53 || port == 853;
}

static int finish_tcp(const struct allow_rule *rule, const char **ret_want)
{
	if (rule->schemes != POLICY_TCP)
		return want(ret_want, "tcp without https, http and ssh, which are another entry");
	if (has_request_words(rule) || rule->tunnel)
		return want(ret_want,
			"tcp without path, methods, query, graphql or tunnel: nothing in it can "
			"be seen");
	if (rule->n_ports == 0)
		return want(ret_want, "tcp with a port, as in tcp://db.example.com:5432");
	for (size_t i = 0; i < rule->n_ports; i++)
		if (is_dns_port(rule->ports[i]))
			return want(ret_want, "tcp on another port than those of DNS (53, 853)");
	return 0;
}

struct str rule_repository(struct str path)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return str_ends(path, STR(".git")) && !str_ends(path, STR("/.git"))
		       ? str_prefix(path, path.n - 4)
		       : path;
}

static void rule_strip_repository(char *path)
{
	if (path)
		path[rule_repository(str_from(path)).n] = '\0';
}

static bool is_git_method(const char *method)
{
	return strcmp(method, "FETCH") == 0 || strcmp(method, "PUSH") == 0;
}

static int finish_ssh(struct allow_rule *rule, const char **ret_want)
{
	int r = 0;

	if (rule->schemes != POLICY_SSH)
		return want(ret_want, "ssh without https, http and tcp, which are another entry");
	if (rule->has_graphql || rule->no_query || rule->encoded_slash || rule->tunnel)
		return want(ret_want, "ssh without query, graphql, encoded_slash or tunnel");
	for (size_t i = 0; rule->methods && rule->methods[i]; i++)
		if (!is_git_method(rule->methods[i]))
			return want(ret_want, "the methods FETCH and PUSH with ssh");
	rule_strip_repository(rule->path);
	rule_strip_repository(rule->path_prefix);
	if (!rule->user)
		r = rule_set_user(rule, STR("git"), ret_want);
	if (r == 0 && !rule->methods && !rule->denies)
		r = strv_add(&rule->methods, STR("FETCH"));
	return r;
}

int rule_finish(struct allow_rule *rule, const char **ret_want)
{
	int r = 0;

	if (!rule->host)
		return want(ret_want, "a `host` in this entry");
	if (strcmp(rule->host, POLICY_MACHINE) == 0 && rule->n_ports == 0 && !rule->denies)
		return want(ret_want, "a port with " POLICY_MACHINE
				      ": it is a service of this machine, by its port");
	if (rule->path && rule->path_prefix)
		return want(ret_want, "`path` or `path_prefix`, not both");
	/* A denial of a host is for all that may go there. */
	if (!rule->schemes && rule->denies)
		rule->schemes = POLICY_SCHEMES;
	else if (rule->schemes & POLICY_TCP)
		r = finish_tcp(rule, ret_want);
	else if (rule->schemes & POLICY_SSH)
		r = finish_ssh(rule, ret_want);
	else if (rule->user)
		return want(ret_want, "`user` with schemes: [ssh] alone");
	else if (rule->tunnel)
		r = finish_tunnel(rule, ret_want);
	if (!rule->schemes)
		rule->schemes = POLICY_HTTPS | POLICY_HTTP;
	return r;
}

void rule_batch_done(struct rule_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		rule_free(b->v[i]);
	free(b->v);
	*b = (struct rule_batch){0};
}

int rule_batch_reserve(struct rule_batch *b, size_t more)
{
	size_t cap = MAX(b->n + more, 2 * b->cap);
	struct allow_rule **v;

	if (b->n + more <= b->cap)
		return 0;
	v = reallocarray(b->v, cap, sizeof(struct allow_rule *));
	if (!v)
		return -ENOMEM;
	b->v = v;
	b->cap = cap;
	return 0;
}

int rule_batch_add(struct rule_batch *b, struct allow_rule *rule)
{
	if (b->n >= ALLOWLIST_MAX_RULES)
		return -E2BIG;
	if (rule_batch_reserve(b, 1) < 0)
		return -ENOMEM;
	rule->index = rule->is_domain ? b->domains++ : b->entries++;
	b->v[b->n++] = rule;
	return 0;
}
