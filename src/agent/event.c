/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/event.h"
#include "base/utf8.h"

#include <errno.h>

/* Theory of operation
 *
 * The line comes from inside a room, so it may be anything. A first pass over the bytes counts what
 * the parser would have to allocate (a line of "0,0,0,…" takes twenty times its length as parsed
 * values) and checks whether the text needs mending. Mending matters because real agents cut
 * strings in the middle of a character: JavaScript then writes half of a surrogate pair as an
 * escape, and tools print bytes that are not UTF-8. Neither may lose an event. The parser itself
 * limits depth (2048 levels). */

struct inspection {
	size_t values; /* about as many as the parser will allocate */
	bool needs_mending;
};

static void inspect(struct str s, struct inspection *ret)
{
	bool in_string = false, lone;

	*ret = (struct inspection){.values = 1};
	for (size_t i = 0; i < s.n;) {
		unsigned char c = (unsigned char)s.p[i];
		size_t n = 1;

		if (c >= 0x80) {
			n = utf8_decode(str_from_index(s, i), NULL);
			ret->needs_mending |= n == 0;
			n = MAX(n, (size_t)1);
		} else if (c == '\\') {
			n = json_escape_length(str_from_index(s, i), &lone);
			ret->needs_mending |= lone;
		} else if (c == '"') {
			in_string = !in_string;
		} else if (!in_string && (c == ',' || c == ':' || c == '[' || c == '{')) {
			ret->values++;
		}
		i += n;
	}
}

static int mend(struct buf *out, struct str s)
{
	int r = 0;

	while (r == 0 && s.n > 0) {
		bool lone = false;
		size_t n = *s.p == '\\' ? json_escape_length(s, &lone) : utf8_decode(s, NULL);

		if (lone)
			r = buf_add_str(out, STR("\\ufffd"));
		else if (n == 0)
			r = buf_add_str(out, STR(UTF8_REPLACEMENT));
		else
			r = buf_add(out, s.p, n);
		s = str_from_index(s, MAX(n, (size_t)1));
	}
	return r;
}

/* Return 0, 1 if the text is not JSON that we accept, or -ENOMEM. */
static int load(struct str s, json_t **ret)
{
	int r = json_text_read(s, JSON_ALLOW_NUL, ret, NULL);

	/* An integer beyond 64 bits is legal JSON; as a real it only loses digits. */
	if (r == -ERANGE)
		r = json_text_read(s, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, ret, NULL);
	return r < 0 && r != -ENOMEM ? 1 : r;
}

static bool is_true(const json_t *v)
{
	if (json_is_string(v))
		return json_string_length(v) > 0;
	if (json_is_number(v))
		return json_number_value(v) < 0 || json_number_value(v) > 0;
	return json_is_true(v) || json_array_size(v) > 0 || json_object_size(v) > 0;
}

/* Return whether the block is of a kind that has a typed view. */
static bool fill_block(struct agent_block *b, const json_t *v)
{
	struct str type = json_str_at(v, "type");

	*b = (struct agent_block){.text = STR_NULL};
	if (str_eq(type, STR("text"))) {
		b->type = AGENT_BLOCK_TEXT;
		b->text = json_str_at(v, "text");
	} else if (str_eq(type, STR("tool_use"))) {
		b->type = AGENT_BLOCK_TOOL_USE;
		b->id = json_str_at(v, "id");
		b->name = json_str_at(v, "name");
		b->input = json_object_get(v, "input");
		if (!json_is_object(b->input))
			b->input = NULL;
	} else if (str_eq(type, STR("tool_result"))) {
		b->type = AGENT_BLOCK_TOOL_RESULT;
		b->id = json_str_at(v, "tool_use_id");
		b->content = json_object_get(v, "content");
		if (!json_is_string(b->content) && !json_is_array(b->content))
			b->content = NULL;
		b->is_error = is_true(json_object_get(v, "is_error"));
	} else {
		return false;
	}
	return true;
}

static int fill_blocks(struct agent_event *e)
{
	const json_t *content = json_object_get(json_object_get(e->raw, "message"), "content");
	size_t n = json_array_size(content);

	if (n == 0)
		return 0;
	e->blocks = calloc(n, sizeof(*e->blocks));
	if (!e->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		e->blocks_n += fill_block(&e->blocks[e->blocks_n], json_array_get(content, i));
	return 0;
}

static enum agent_event_type type_of(struct str name)
{
	if (str_eq(name, STR("system")))
		return AGENT_EVENT_SYSTEM;
	if (str_eq(name, STR("assistant")))
		return AGENT_EVENT_ASSISTANT;
	if (str_eq(name, STR("user")))
		return AGENT_EVENT_USER;
	if (str_eq(name, STR("result")))
		return AGENT_EVENT_RESULT;
	return AGENT_EVENT_UNKNOWN;
}

int agent_event_from_json(json_t *object, struct agent_event **ret, struct cloche_err *err)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;

	if (!json_is_string(json_object_get(object, "type")))
		return 1;
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_nomem(err);
	e->raw = json_incref(object);
	e->type_name = json_str_at(object, "type");
	e->type = type_of(e->type_name);
	e->subtype = json_str_at(object, "subtype");
	e->session_id = json_str_at(object, "session_id");
	e->parent_tool_use_id = json_str_at(object, "parent_tool_use_id");
	if ((e->type == AGENT_EVENT_ASSISTANT || e->type == AGENT_EVENT_USER) && fill_blocks(e) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(e);
	return 0;
}

int agent_event_parse(struct str line, struct agent_event **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf mended = BUF_INIT(line.n * 6);
	_cleanup_json_ json_t *object = NULL;
	struct inspection seen;
	int r;

	line = str_trim(line);
	if (line.n == 0)
		return 1;
	inspect(line, &seen);
	if (seen.values > AGENT_EVENT_VALUES_MAX)
		return 1;
	if (seen.needs_mending) {
		if (mend(&mended, line) < 0)
			return err_nomem(err);
		line = buf_str(&mended);
	}
	r = load(line, &object);
	if (r < 0)
		return err_nomem(err);
	if (r > 0)
		return 1;
	r = agent_event_from_json(object, ret, err);
	if (r == 0)
		(*ret)->size = line.n + seen.values * AGENT_EVENT_VALUE_COST;
	return r;
}

char *agent_text_dup(struct str s)
{
	char *copy = str_dup(s);

	for (size_t i = 0; copy && i < s.n; i++)
		if (copy[i] == '\0')
			copy[i] = ' ';
	return copy;
}

struct agent_event *agent_event_free(struct agent_event *e)
{
	if (e) {
		json_decref(e->raw);
		free(e->blocks);
		free(e);
	}
	return NULL;
}
