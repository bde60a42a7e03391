/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the whole body is walked (jansson limits its depth), and every object is
 * judged in each of its roles. Its place in the body does not matter, because batches nest requests
 * and content nests content. */
#include "filter/tools.h"

#include "base/utf8.h"
#include "filter/filter_internal.h"

#include <errno.h>

enum { NAMED_MAX = 10, URL_SHOWN = 300 };

struct walk {
	const struct allowlist *policy;
	struct filter_result *res;
	bool changed;
	uint64_t steps;
};

/* Refuse the request. Return 1, so that nothing more is judged, or a negative errno. */
static int tools_refuse(struct walk *w, const char *error, const char *message, struct str detail)
{
	int r = filter_refuse(w->res, error, message, str_prefix(detail, URL_SHOWN));

	return r < 0 ? r : 1;
}

/* Each question looks at every rule, so limit all of them together. */
static int count_question(struct walk *w)
{
	w->steps += 1 + allowlist_count(w->policy);
	if (w->steps <= TOOLS_STEPS_MAX)
		return 0;
	return tools_refuse(w, "tool_config_too_large",
		"This request names too many hosts and URLs to be judged, so it is refused.",
		STR("<too-complex>"));
}

static bool begins_with(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_ieq(str_prefix(s, prefix.n), prefix);
}

static bool is_one_of(struct str s, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_ieq(s, list[i]))
			return true;
	return false;
}

/* What is done with a tool that names no domains. */
enum family {
	FAMILY_NONE,
	FAMILY_SEARCH, /* it passes; the key is removed if no domain is left in it */
	FAMILY_CLOSED, /* it gets an empty list */
	FAMILY_PLAIN,  /* it fetches nothing and knows no such key */
};

static enum family family_of(struct str type)
{
	static const struct str closed[] = {
		STR("web_fetch_"), STR("computer_"), STR("bash_"), STR("code_execution_")};
	/* These run at the client, or without a network, and refuse unknown keys. An unknown
	 * version may be something else. */
	static const struct str plain[] = {STR("computer_20241022"), STR("computer_20250124"),
		STR("computer_20251124"), STR("bash_20241022"), STR("bash_20250124"),
		STR("code_execution_20250522"), STR("code_execution_20250825")};

	if (begins_with(type, STR("web_search_")))
		return FAMILY_SEARCH;
	if (is_one_of(type, plain, ARRAY_SIZE(plain)))
		return FAMILY_PLAIN;
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		if (begins_with(type, closed[i]))
			return FAMILY_CLOSED;
	return FAMILY_NONE;
}

/* Add "; type: text" to the tag. */
static int note(struct walk *w, struct str type, const char *text)
{
	struct buf *tag = &w->res->tag[FILTER_PLACE_TOOLS];
	int r = buf_len(tag) > 0 ? filter_tag(tag, STR("; ")) : 0;

	if (r == 0)
		r = filter_tag(tag, str_prefix(type, 64));
	if (r == 0)
		r = filter_tag(tag, STR(": "));
	return r < 0 ? r : filter_tag(tag, str_from(text));
}

static bool is_plain_domain(struct str s)
{
	if (s.n == 0 || s.p[0] == '.')
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '*' || s.p[i] == '?' || (unsigned char)s.p[i] <= ' ')
			return false;
	return true;
}

/* Return 1 if it is open, 0 if not, 2 if the request is refused, or negative. */
static int judge_domain(struct walk *w, struct str domain)
{
	int r;

	if (!is_plain_domain(domain))
		r = tools_refuse(w, "wildcard_tool_domain_unsupported",
			"A tool's allowed_domains may hold plain host names only, so that they can "
			"be compared with the network allowlist.",
			domain.p ? domain : STR("<not-a-string>"));
	else
		r = count_question(w);
	if (r != 0)
		return r < 0 ? r : 2;
	r = tools_is_open(w->policy, TOOLS_HOST, domain);
	if (r > 0)
		tools_rely(&w->res->relies, TOOLS_HOST, domain);
	return r;
}

/* Add the open domains of a list to `kept`, and the first of the others to names. Return 1 if the
 * request is refused. */
static int sort_domains(struct walk *w, json_t *list, json_t *kept, struct buf *names)
{
	size_t dropped = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *element = json_array_get(list, i);
		int r = judge_domain(w, json_str(element));

		if (r < 0 || r == 2)
			return MIN(r, 1);
		if (r == 1) {
			if (json_array_append(kept, element) < 0)
				return -ENOMEM;
			continue;
		}
		r = dropped > 0 && dropped < NAMED_MAX ? filter_tag(names, STR(",")) : 0;
		if (r == 0 && dropped < NAMED_MAX)
			r = filter_tag(names, str_prefix(json_str(element), HOST_MAX));
		if (r < 0)
			return r;
		dropped++;
	}
	return 0;
}

/* Note what became of a list of `had` domains, of which `dropped` were removed. */
static int note_dropped(
	struct walk *w, struct str type, size_t dropped, size_t had, const struct buf *names)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(2 * FILTER_TAG_MAX), more = BUF_INIT(64);
	int r = 0;

	if (dropped > NAMED_MAX)
		r = buf_printf(&more, " +%zu more", dropped - NAMED_MAX);
	if (r == 0 && dropped < had)
		r = buf_printf(&text, "dropped %zu of %zu domains: %.*s%.*s", dropped, had,
			STR_FMT(buf_str(names)), STR_FMT(buf_str(&more)));
	else if (r == 0)
		r = buf_printf(&text, "cleared allowed_domains (%zu outside allowlist: %.*s%.*s)",
			dropped, STR_FMT(buf_str(names)), STR_FMT(buf_str(&more)));
	return r < 0 || !buf_cstr(&text) ? -ENOMEM : note(w, type, buf_cstr(&text));
}

static int trim_domains(
	struct walk *w, json_t *tool, json_t *list, struct str type, enum family family)
{
	_cleanup_(buf_donep) struct buf names = BUF_INIT(FILTER_TAG_MAX + 32);
	_cleanup_json_ json_t *kept = json_array();
	size_t had = json_array_size(list);
	int r = kept ? sort_domains(w, list, kept, &names) : -ENOMEM;
	size_t n = json_array_size(kept);

	if (r == 0 && n < had)
		r = note_dropped(w, type, had - n, had, &names);
	/* A search tool may not have an empty list. */
	else if (r == 0 && n == 0 && family == FAMILY_SEARCH)
		r = note(w, type, "removed empty allowed_domains");
	else
		return r;
	if (r != 0)
		return r;
	w->changed = true;
	if (n == 0 && family == FAMILY_SEARCH)
		return json_object_del(tool, "allowed_domains");
	return json_object_set(tool, "allowed_domains", kept) < 0 ? -ENOMEM : 0;
}

static int close_tool(struct walk *w, json_t *tool, struct str type)
{
	if (json_object_set_new(tool, "allowed_domains", json_array()) < 0)
		return -ENOMEM;
	w->changed = true;
	return note(w, type, "forced empty allowed_domains");
}

static int trim_tool(struct walk *w, json_t *tool)
{
	struct str type = json_str_at(tool, "type");
	json_t *blocked = json_object_get(tool, "blocked_domains");
	json_t *allowed = json_object_get(tool, "allowed_domains");
	enum family family = family_of(type);

	if (family == FAMILY_NONE)
		return 0;
	if (blocked && !json_is_null(blocked) &&
		!(json_is_array(blocked) && json_array_size(blocked) == 0))
		return tools_refuse(w, "blocklist_tool_config_unsupported",
			"A tool with blocked_domains may reach every other host; name the "
			"allowed_domains instead.",
			type);
	if (json_is_array(allowed))
		return trim_domains(w, tool, allowed, type, family);
	if (family == FAMILY_CLOSED)
		return close_tool(w, tool, type);
	return 0;
}

static int trim_tools(struct walk *w, json_t *tools)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(tools); i++)
		r = trim_tool(w, json_array_get(tools, i));
	return r;
}

/* Judge a URL that Anthropic's servers would open: each of the methods must be allowed. */
static int judge_url(struct walk *w, const json_t *url, enum tools_what what)
{
	int r;

	if (!url || json_is_null(url))
		return 0;
	r = count_question(w);
	if (r != 0)
		return r;
	r = tools_is_open(w->policy, what, json_str(url));
	if (r > 0)
		tools_rely(&w->res->relies, what, json_str(url));
	if (r != 0)
		return r < 0 ? r : 0;
	return tools_refuse(w, "tool_url_blocked",
		"The request names a URL for Anthropic's servers to open that the network "
		"allowlist "
		"does not allow the sandbox itself.",
		json_is_string(url) ? json_str(url) : STR("<not-a-string>"));
}

/* Judge one server, or a list of them. */
static int judge_servers(struct walk *w, const json_t *servers)
{
	int r = judge_url(w, json_object_get(servers, "url"), TOOLS_GET_AND_POST);

	for (size_t i = 0; r == 0 && i < json_array_size(servers); i++)
		r = judge_url(
			w, json_object_get(json_array_get(servers, i), "url"), TOOLS_GET_AND_POST);
	return r;
}

static int walk_value(struct walk *w, json_t *value);

static int walk_object(struct walk *w, json_t *object)
{
	struct str type = json_str_at(object, "type");
	int r = 0;

	/* A reader that drops half of a surrogate pair could take this for any type. */
	if (str_find(type, STR(UTF8_REPLACEMENT)) < type.n)
		return tools_refuse(w, "tool_config_invalid",
			"A type in this request holds half of a character, so it cannot be judged.",
			type);
	if (str_ieq(type, STR("url")))
		r = judge_url(w, json_object_get(object, "url"), TOOLS_GET);
	for (void *it = json_object_iter(object); r == 0 && it;
		it = json_object_iter_next(object, it)) {
		struct str key = str_from(json_object_iter_key(it));
		json_t *member = json_object_iter_value(it);

		if (str_eq(key, STR("input")) && str_eq(type, STR("tool_use")))
			continue;
		if (str_eq(key, STR("tools")))
			r = trim_tools(w, member);
		else if (str_eq(key, STR("mcp_servers")))
			r = judge_servers(w, member);
		if (r == 0)
			r = walk_value(w, member);
	}
	return r;
}

static int walk_value(struct walk *w, json_t *value)
{
	int r = 0;

	if (json_is_object(value))
		return walk_object(w, value);
	for (size_t i = 0; r == 0 && i < json_array_size(value); i++)
		r = walk_value(w, json_array_get(value, i));
	return r;
}

int tools_trim(
	json_t *body, const struct allowlist *policy, struct filter_result *res, bool *ret_changed)
{
	struct walk w = {.policy = policy, .res = res};
	int r = walk_value(&w, body);

	*ret_changed = w.changed;
	return r < 0 ? r : 0;
}

bool tools_is_too_complex(struct str text)
{
	size_t values = 1;
	bool quoted = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == ',' || c == '[' || c == '{'))
			values++;
	}
	return values > TOOLS_VALUES_MAX;
}
