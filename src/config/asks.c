/* SPDX-License-Identifier: Apache-2.0 */
#include "config/asks.h"

#include <errno.h>

enum { ASKS_BYTES_MAX = 4 << 20 };

void asks_done(struct asks *a)
{
	a->lines = strv_free(a->lines);
}

int asks_add(struct asks *a, const struct buf *line, struct cloche_err *err)
{
	struct str text = buf_str(line);

	a->bytes += text.n + 1;
	if (a->bytes > ASKS_BYTES_MAX)
		return err_set(err, E_LIMIT, "it asks for more than anybody could read");
	if (a->n + 2 > a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 16;
		char **grown = reallocarray(a->lines, cap, sizeof(*grown));

		if (!grown)
			return err_nomem(err);
		a->lines = grown;
		a->cap = cap;
	}
	a->lines[a->n] = str_dup(text);
	if (!a->lines[a->n])
		return err_nomem(err);
	a->lines[++a->n] = NULL;
	return 0;
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = str_lower_char(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
			!memchr("_-.*?/@+[]!%~", c, 13))
			return false;
	}
	return s.n > 0;
}

int asks_put_word(struct buf *line, struct str word)
{
	int r;

	if (is_plain(word))
		return buf_add_str(line, word);
	r = buf_add_char(line, '"');
	for (size_t i = 0; r == 0 && i < word.n; i++) {
		unsigned char c = (unsigned char)word.p[i];

		if (c < 0x20 || c > 0x7e)
			r = buf_printf(line, "\\x%02x", c);
		else if (c == '"' || c == '\\')
			r = buf_printf(line, "\\%c", c);
		else
			r = buf_add_char(line, (char)c);
	}
	return r < 0 ? r : buf_add_char(line, '"');
}

static int put_words(struct buf *line, const char *before, char *const *words)
{
	int r = words ? buf_add_str(line, str_from(before)) : 0;

	for (size_t i = 0; r == 0 && words && words[i]; i++) {
		if (i > 0)
			r = buf_add_str(line, STR(", "));
		if (r == 0)
			r = asks_put_word(line, str_from(words[i]));
	}
	return r;
}

static int put_path(struct buf *line, const struct allow_rule *rule)
{
	int r;

	if (!rule->path && !rule->path_prefix)
		return buf_add_str(line, STR("; any path"));
	r = buf_add_str(line, rule->path ? STR("; path ") : STR("; everything below "));
	if (r == 0)
		r = asks_put_word(line, str_from(rule->path ? rule->path : rule->path_prefix));
	if (r == 0 && rule->no_query)
		r = buf_add_str(line, STR(" without a query"));
	return r == 0 && rule->encoded_slash ? buf_add_str(line, STR(" (%2F is a slash)")) : r;
}

static int put_request(struct buf *line, const struct allow_rule *rule)
{
	static const char *const schemes[] = {"", "https", "http", "https and http"};
	int r = put_path(line, rule);

	if (r == 0)
		r = rule->methods ? put_words(line, "; methods ", rule->methods)
				  : buf_add_str(line, STR("; any method"));
	if (r == 0)
		r = buf_printf(line, "; %s", schemes[rule->schemes & 3]);
	if (r == 0 && !rule->websocket)
		r = buf_add_str(line, STR("; no WebSocket"));
	if (r == 0 && !rule->scrub)
		r = buf_add_str(line, STR("; secrets in its answers are not hidden"));
	if (r == 0 && rule->has_graphql)
		r = buf_add_str(line, STR("; GraphQL"));
	if (r == 0)
		r = put_words(line, " queries ", rule->graphql_queries);
	if (r == 0)
		r = put_words(line, " mutations ", rule->graphql_mutations);
	return r < 0 ? r : put_words(line, " subscriptions ", rule->graphql_subscriptions);
}

static int put_ports(struct buf *line, const struct allow_rule *rule)
{
	int r = rule->n_ports ? buf_add_str(line, STR("; ports")) : 0;

	for (size_t i = 0; r == 0 && i < rule->n_ports; i++)
		r = buf_printf(line, " %u", rule->ports[i]);
	return r;
}

static int put_private(struct buf *line, const struct allow_rule *rule)
{
	char text[CIDR_TEXT_MAX];
	int r = 0;

	if (rule->allow_private)
		r = buf_add_str(line, STR("; PRIVATE addresses, this machine's too"));
	else if (rule->n_private_ranges)
		r = buf_add_str(line, STR("; PRIVATE addresses"));
	for (size_t i = 0; r == 0 && i < rule->n_private_ranges; i++) {
		cidr_format(&rule->private_ranges[i], text);
		r = buf_printf(line, " %s", text);
	}
	return r;
}

static int put_rule(struct buf *line, const struct allow_rule *rule)
{
	int r = buf_add_str(line, STR("reach host "));

	if (r == 0)
		r = asks_put_word(line, str_from(rule->host));
	if (r == 0 && rule->tunnel)
		r = buf_add_str(line, STR("; TLS that nobody looks into (tunnel)"));
	else if (r == 0)
		r = put_request(line, rule);
	if (r == 0)
		r = put_ports(line, rule);
	return r < 0 ? r : put_private(line, rule);
}

int asks_add_rules(struct asks *a, const struct allowlist *list, struct cloche_err *err)
{
	for (size_t i = 0; i < allowlist_count(list); i++) {
		_cleanup_(buf_donep) struct buf line = ASKS_LINE_INIT;
		int r;

		if (put_rule(&line, allowlist_rule(list, i)) < 0)
			return err_nomem(err);
		r = asks_add(a, &line, err);
		if (r < 0)
			return r;
	}
	return 0;
}
