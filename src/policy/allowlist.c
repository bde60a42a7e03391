/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: rules come in batches, one for each source, checked as a whole before
 * anything is added. Two arrays keep the order in which they are tried: domains, then entries.
 * Lookups walk the arrays; lists are short, and a walk has no case that hostile input could make
 * slow. */
#include "policy/allowlist.h"

#include "base/buf.h"
#include "base/escape.h"
#include "policy/glob.h"
#include "policy/rule.h"
#include <errno.h>

struct allowlist {
	unsigned others; /* owners besides the first */
	unsigned next;   /* number of the next rule */
	bool opens;      /* a rule has allow_private */
	struct rule_batch domains, entries, denials;
};

struct allowlist *allowlist_new(void)
{
	return calloc(1, sizeof(struct allowlist));
}

struct allowlist *allowlist_ref(struct allowlist *list)
{
	list->others++;
	return list;
}

struct allowlist *allowlist_free(struct allowlist *list)
{
	if (!list || list->others-- > 0)
		return NULL;
	rule_batch_done(&list->domains);
	rule_batch_done(&list->entries);
	rule_batch_done(&list->denials);
	free(list);
	return NULL;
}

size_t allowlist_count(const struct allowlist *list)
{
	return list->domains.n + list->entries.n;
}

const struct allow_rule *allowlist_rule(const struct allowlist *list, size_t i)
{
	return i < list->domains.n ? list->domains.v[i] : list->entries.v[i - list->domains.n];
}

size_t allowlist_denials(const struct allowlist *list)
{
	return list->denials.n;
}

const struct allow_rule *allowlist_denial(const struct allowlist *list, size_t i)
{
	return list->denials.v[i];
}

bool allowlist_denies_host(
	const struct allowlist *list, const struct allow_rule *rule, const struct host *host)
{
	for (size_t i = 0; i < list->denials.n; i++)
		if ((!rule || list->denials.v[i]->number > rule->number) &&
			host_pattern_matches(str_from(list->denials.v[i]->host), host))
			return true;
	return false;
}

bool allowlist_tcp_ports(const struct allowlist *list, uint8_t ret[ALLOWLIST_PORT_BYTES])
{
	bool any = false;

	memset(ret, 0, ALLOWLIST_PORT_BYTES);
	for (size_t i = 0; i < allowlist_count(list); i++) {
		const struct allow_rule *rule = allowlist_rule(list, i);

		for (size_t k = 0; (rule->schemes & POLICY_TCP) && k < rule->n_ports; k++) {
			ret[rule->ports[k] / 8] |= (uint8_t)(1U << rule->ports[k] % 8);
			any = true;
		}
	}
	return any;
}

bool allowlist_has_ssh(const struct allowlist *list)
{
	for (size_t i = 0; i < allowlist_count(list); i++)
		if (allowlist_rule(list, i)->schemes & POLICY_SSH)
			return true;
	return false;
}

bool allow_rule_opens_addresses(const struct allow_rule *rule)
{
	return rule->allow_private || rule->n_private_ranges > 0;
}

bool allowlist_opens_addresses(const struct allowlist *list)
{
	return list->opens;
}

bool allow_rule_same_addresses(const struct allow_rule *a, const struct allow_rule *b)
{
	static const struct allow_rule none = {0};

	a = a ? a : &none;
	b = b ? b : &none;
	return a->allow_private == b->allow_private && a->n_private_ranges == b->n_private_ranges &&
	       (a->n_private_ranges == 0 ||
		       memcmp(a->private_ranges, b->private_ranges,
			       a->n_private_ranges * sizeof(struct cidr)) == 0);
}

struct address_policy allow_rule_addresses(const struct allow_rule *rule)
{
	return (struct address_policy){
		.allow = rule->private_ranges,
		.n_allow = rule->n_private_ranges,
		.allow_private = rule->allow_private,
	};
}

static int label_scope(struct buf *b, const struct allow_rule *rule)
{
	const char *path = rule->path ? rule->path : rule->path_prefix;
	int r = buf_printf(b, " %s%s%s%s",
		rule->schemes == POLICY_TCP   ? "tcp://"
		: rule->schemes == POLICY_SSH ? "ssh://"
					      : "",
		rule->user ? rule->user : "", rule->user ? "@" : "", rule->host);

	for (size_t i = 0; r == 0 && i < rule->n_ports; i++)
		r = buf_printf(b, "%s%u", i ? "," : ":", rule->ports[i]);
	if (r == 0 && path)
		r = buf_add_char(b, ' ');
	if (r == 0 && path)
		r = escape_terminal(b, str_from(path));
	if (r == 0 && rule->path_prefix)
		r = buf_add_str(b, STR("/..."));
	for (size_t i = 0; r == 0 && rule->methods && rule->methods[i]; i++)
		r = buf_printf(b, "%s%s", i ? "," : " ", rule->methods[i]);
	return r;
}

/* Make the text by which a person recognises the rule. NULL on lack of memory. */
static char *make_label(const struct allow_rule *rule, const char *source)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(16384);
	int r = 0;

	if (rule->line)
		r = buf_printf(
			&b, "%s[%u]", rule->is_domain ? "domains" : "url_prefixes", rule->index);
	else
		r = buf_add_str(&b, str_from(source));
	if (r == 0)
		r = label_scope(&b, rule);
	if (r == 0 && rule->line)
		r = buf_printf(&b, " (%s:%u)", source, rule->line);
	return r < 0 ? NULL : str_dup(buf_str(&b));
}

static int make_labels(struct allow_rule *rule, const char *source)
{
	const char *slash = strrchr(source, '/');

	rule->label = make_label(rule, source);
	rule->label_inside = make_label(rule, slash ? slash + 1 : source);
	return rule->label && rule->label_inside ? 0 : -ENOMEM;
}

static struct rule_batch *allowlist_batch(struct allowlist *list, const struct allow_rule *rule)
{
	if (rule->denies)
		return &list->denials;
	return rule->is_domain ? &list->domains : &list->entries;
}

/* Moves a checked batch into the list; nothing is moved on failure. */
static int add_batch(struct allowlist *list, struct rule_batch *batch, const char *source,
	struct cloche_err *err)
{
	if (allowlist_count(list) + list->denials.n + batch->n > ALLOWLIST_MAX_RULES)
		return err_set(err, E_CONFIG, "%s: more than %d allowlist rules", source,
			ALLOWLIST_MAX_RULES);
	if (rule_batch_reserve(&list->domains, batch->domains) < 0 ||
		rule_batch_reserve(&list->entries, batch->entries) < 0 ||
		rule_batch_reserve(&list->denials, batch->n) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < batch->n; i++) {
		batch->v[i]->number = list->next + (unsigned)i;
		if (make_labels(batch->v[i], source) < 0)
			return err_nomem(err);
	}
	for (size_t i = 0; i < batch->n; i++) {
		struct rule_batch *to = allowlist_batch(list, batch->v[i]);

		to->v[to->n++] = batch->v[i];
		list->opens |= allow_rule_opens_addresses(batch->v[i]);
	}
	list->next += (unsigned)batch->n;
	batch->n = 0;
	return 0;
}

/* Add those of `more` to `to`: shared, or taken and numbered from *next on. */
static int extend_batch(struct rule_batch *to, struct rule_batch *more, unsigned *next)
{
	if (rule_batch_reserve(to, more->n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < more->n; i++) {
		if (next)
			more->v[i]->number += *next;
		else
			more->v[i]->others++;
		to->v[to->n++] = more->v[i];
	}
	if (next)
		more->n = 0;
	return 0;
}

static int extend_all(struct allowlist *to, struct allowlist *more, unsigned *next)
{
	int r = extend_batch(&to->domains, &more->domains, next);

	if (r == 0)
		r = extend_batch(&to->entries, &more->entries, next);
	return r < 0 ? r : extend_batch(&to->denials, &more->denials, next);
}

int allowlist_extend(const struct allowlist *list, struct allowlist *more, struct allowlist **ret,
	struct cloche_err *err)
{
	_cleanup_(allowlist_freep) struct allowlist *all = allowlist_new();
	struct allowlist *old = (struct allowlist *)(uintptr_t)list; /* only counts change */
	unsigned next = list->next;

	if (allowlist_count(list) + list->denials.n + allowlist_count(more) + more->denials.n >
		ALLOWLIST_MAX_RULES)
		return err_set(err, E_CONFIG, "more than %d allowlist rules", ALLOWLIST_MAX_RULES);
	if (!all || extend_all(all, old, NULL) < 0 || extend_all(all, more, &next) < 0)
		return err_nomem(err);
	all->next = list->next + more->next;
	all->opens = list->opens || more->opens;
	*ret = TAKE_PTR(all);
	return 0;
}

int allowlist_add_yaml(
	struct allowlist *list, struct str text, const char *source, struct cloche_err *err)
{
	_cleanup_(rule_batch_done) struct rule_batch batch = {0};
	int r = yaml_rules_parse(text, source, &batch, err);

	return r < 0 ? r : add_batch(list, &batch, source, err);
}

/* Takes "scheme://" off *s and adds the scheme to the rule. */
static int take_scheme(struct allow_rule *rule, struct str *s, const char **ret_want)
{
	size_t end = str_find(*s, STR("://"));
	int r;

	if (end == s->n)
		return 0;
	r = rule_add_scheme(rule, str_prefix(*s, end), ret_want);
	*s = str_from_index(*s, end + 3);
	return r;
}

/* Takes "/path" off *s. */
static int take_path(struct allow_rule *rule, struct str *s, const char **ret_want)
{
	size_t slash = str_chr(*s, '/');
	struct str path = str_from_index(*s, slash);

	*s = str_prefix(*s, slash);
	if (path.n <= 1)
		return 0;
	if (!rule->schemes) {
		*ret_want = "a scheme before a host with a path, as in https://host/path";
		return -EINVAL;
	}
	return glob_is_pattern(path) ? rule_set_path(rule, path, ret_want)
				     : rule_set_path_prefix(rule, path, ret_want);
}

/* Takes "user@" off *s. */
static int take_user(struct allow_rule *rule, struct str *s, const char **ret_want)
{
	size_t at = str_chr(*s, '@');
	int r;

	if (rule->schemes != POLICY_SSH || at == s->n)
		return 0;
	r = rule_set_user(rule, str_prefix(*s, at), ret_want);
	*s = str_from_index(*s, at + 1);
	return r;
}

static int take_port(struct allow_rule *rule, struct str *s, const char **ret_want)
{
	size_t colon = s->n;

	if (s->n > 0 && s->p[0] == '[' && str_chr(*s, ']') < s->n)
		colon = str_chr(*s, ']') + 1;
	else
		colon = str_chr(*s, ':');
	if (colon < s->n && s->p[colon] == ':') {
		struct str digits = str_from_index(*s, colon + 1);

		*s = str_prefix(*s, colon);
		return rule_add_port(rule, digits, ret_want);
	}
	return 0;
}

int allowlist_add_host(struct allowlist *list, struct str shorthand, struct cloche_err *err)
{
	_cleanup_(rule_batch_done) struct rule_batch batch = {0};
	_cleanup_(rule_freep) struct allow_rule *rule = rule_new();
	_cleanup_(buf_donep) struct buf shown = BUF_INIT(1024);
	bool denies = str_starts(shorthand, STR("!"));
	struct str rest = str_from_index(shorthand, denies);
	const char *wanted = NULL;
	int r = rule ? 0 : -ENOMEM;

	if (r == 0)
		rule->denies = denies;
	if (r == 0)
		r = take_scheme(rule, &rest, &wanted);
	if (r == 0)
		r = take_path(rule, &rest, &wanted);
	if (r == 0)
		r = take_user(rule, &rest, &wanted);
	if (r == 0)
		r = take_port(rule, &rest, &wanted);
	if (r == 0)
		r = rule_set_host(rule, rest, &wanted);
	if (r == 0) {
		rule->is_domain = !rule->schemes && !rule->n_ports;
		r = rule_finish(rule, &wanted);
	}
	if (r == -EINVAL) {
		if (escape_terminal(&shown, str_prefix(shorthand, 100)) < 0 || !buf_cstr(&shown))
			return err_nomem(err);
		return err_set(err, E_USAGE, "%s %s: expected %s", denies ? "deny" : "--allow",
			buf_cstr(&shown) + denies, wanted);
	}
	if (r == 0)
		r = rule_batch_add(&batch, rule);
	if (r < 0)
		return err_nomem(err);
	(void)TAKE_PTR(rule);
	return add_batch(list, &batch, denies ? "deny" : "--allow", err);
}
