/* SPDX-License-Identifier: Apache-2.0 */
#include "config/asks.h"

#include <errno.h>

enum { ASKS_BYTES_MAX = 4 << 20 };

void asks_done(struct asks *a)
{
	a->lines = strv_free(a->lines);
}

int asks_add(struct asks *a, const struct ask_line *line, struct cloche_err *err)
{
	struct str text = buf_str(&line->text);
	char **lines;

	if (line->error == -ENOMEM)
		return err_nomem(err);
	a->bytes += text.n + 1;
	if (line->error < 0 || a->bytes > ASKS_BYTES_MAX)
		return err_set(err, E_LIMIT, "it asks for more than anybody could read");
	/* One more for the NULL at the end. */
	lines = array_room(a->lines, a->n + 1, &a->cap, sizeof(*lines));
	if (!lines)
		return err_nomem(err);
	a->lines = lines;
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

_printf_(2, 3) static void ask_line_printf(struct ask_line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (l->error == 0)
		l->error = buf_vprintf(&l->text, fmt, ap);
	va_end(ap);
}

void ask_line_add(struct ask_line *l, const char *text)
{
	if (l->error == 0)
		l->error = buf_add_str(&l->text, str_from(text));
}

void ask_line_word(struct ask_line *l, struct str word)
{
	if (is_plain(word)) {
		ask_line_printf(l, "%.*s", STR_FMT(word));
		return;
	}
	ask_line_add(l, "\"");
	for (size_t i = 0; l->error == 0 && i < word.n; i++) {
		unsigned char c = (unsigned char)word.p[i];

		if (c < 0x20 || c > 0x7e)
			ask_line_printf(l, "\\x%02x", c);
		else
			ask_line_printf(l, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
	ask_line_add(l, "\"");
}

static void put_words(struct ask_line *l, const char *before, char *const *words)
{
	for (size_t i = 0; words && words[i]; i++) {
		ask_line_add(l, i > 0 ? ", " : before);
		ask_line_word(l, str_from(words[i]));
	}
}

static void put_path(struct ask_line *l, const struct allow_rule *rule)
{
	if (!rule->path && !rule->path_prefix) {
		ask_line_add(l, "; any path");
		return;
	}
	ask_line_add(l, rule->path ? "; path " : "; everything below ");
	ask_line_word(l, str_from(rule->path ? rule->path : rule->path_prefix));
	if (rule->no_query)
		ask_line_add(l, " without a query");
	if (rule->encoded_slash)
		ask_line_add(l, " (%2F is a slash)");
}

static void put_request(struct ask_line *l, const struct allow_rule *rule)
{
	static const char *const schemes[] = {"", "https", "http", "https and http"};

	if (rule->schemes == POLICY_SSH) {
		ask_line_add(l, "; git over ssh, with YOUR ssh agent, as the user ");
		ask_line_word(l, str_from(rule->user));
		put_path(l, rule);
		put_words(l, "; methods ", rule->methods);
		return;
	}
	if (rule->schemes & POLICY_TCP) {
		ask_line_add(l, "; any bytes by TCP, which nobody looks at");
		return;
	}
	put_path(l, rule);
	if (!rule->methods)
		ask_line_add(l, "; any method");
	put_words(l, "; methods ", rule->methods);
	ask_line_printf(l, "; %s", schemes[rule->schemes & 3]);
	if (!rule->websocket)
		ask_line_add(l, "; no WebSocket");
	if (!rule->scrub)
		ask_line_add(l, "; secrets in its answers are not hidden");
	if (rule->has_graphql)
		ask_line_add(l, "; GraphQL");
	put_words(l, " queries ", rule->graphql_queries);
	put_words(l, " mutations ", rule->graphql_mutations);
	put_words(l, " subscriptions ", rule->graphql_subscriptions);
}

static void put_private(struct ask_line *l, const struct allow_rule *rule)
{
	char text[CIDR_TEXT_MAX];

	if (rule->allow_private)
		ask_line_add(l, "; PRIVATE addresses, this machine's too");
	else if (rule->n_private_ranges)
		ask_line_add(l, "; PRIVATE addresses");
	for (size_t i = 0; i < rule->n_private_ranges; i++) {
		cidr_format(&rule->private_ranges[i], text);
		ask_line_printf(l, " %s", text);
	}
}

static void put_rule(struct ask_line *l, const struct allow_rule *rule)
{
	ask_line_add(l, "reach host ");
	ask_line_word(l, str_from(rule->host));
	if (strcmp(rule->host, POLICY_MACHINE) == 0)
		ask_line_add(l, " (a service of this machine)");
	if (rule->tunnel)
		ask_line_add(l, "; TLS that nobody looks into (tunnel)");
	else
		put_request(l, rule);
	for (size_t i = 0; i < rule->n_ports; i++)
		ask_line_printf(l, i > 0 ? " %u" : "; ports %u", rule->ports[i]);
	put_private(l, rule);
}

int asks_add_rules(struct asks *a, const struct allowlist *list, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < allowlist_count(list); i++) {
		_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;

		put_rule(&line, allowlist_rule(list, i));
		r = asks_add(a, &line, err);
	}
	return r;
}
