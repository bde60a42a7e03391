/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: agent/event.h parses a line, and agent/transcript.h collects what events
 * say. This file provides both as terminated strings. What a single event says comes from a
 * transcript of that event alone, so that an event and a sequence are read in the same way. */
#include "api/event.h"
#include "agent/lines.h"

#include <errno.h>

struct cloche_event {
	struct agent_event *parsed;
	struct agent_transcript said; /* of this event alone */
	cloche_event_usage usage;
	char *extra; /* of usage */
	char *type_name, *subtype, *session_id, *parent, *tool_name;
	char *json;
	char *block[4]; /* of the block that was asked for last */
};

/* Replaces *at by a copy of s. */
static int event_set(char **at, struct str s, struct cloche_err *err)
{
	free(*at);
	*at = agent_text_dup(s);
	return *at ? 0 : err_nomem(err);
}

/* Replaces *at by a value as one line of JSON; NULL is "". */
static int event_set_json(char **at, const json_t *value, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SIZE_MAX / 2);

	if (value && json_text_write(&text, value, JSON_TEXT_COMPACT) < 0)
		return err_nomem(err);
	return event_set(at, buf_str(&text), err);
}

int event_usage(const struct agent_transcript *t, char **extra, cloche_event_usage *ret,
	struct cloche_err *err)
{
	_cleanup_json_ json_t *usage = agent_usage(t->usage);
	int r;

	if (!usage)
		return err_nomem(err);
#define EVENT_TAKE_USAGE(name)                                                                     \
	ret->name = json_count_at(usage, #name);                                                   \
	json_object_del(usage, #name);
	AGENT_USAGE(EVENT_TAKE_USAGE)
	r = event_set_json(extra, usage, err);
	ret->extra = *extra;
	return r;
}

cloche_event_result event_result(const struct agent_transcript *t, const cloche_event_usage *usage)
{
	return (cloche_event_result){.session_id = agent_transcript_session_id(t),
		.duration_ms = t->duration_ms,
		.total_cost_usd = t->total_cost_usd,
		.num_turns = t->num_turns,
		.is_error = agent_transcript_is_error(t),
		.usage = *usage};
}

int event_usage_json(const cloche_event_usage *usage, json_t **ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *object = NULL;
	struct str extra = usage->extra ? str_from(usage->extra) : STR("{}");
	int r = json_text_read(extra, JSON_ALLOW_NUL, &object, NULL);

	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 || !json_is_object(object))
		return err_set(
			err, E_USAGE, "the extra members of the usage are not a JSON object");
#define EVENT_PUT_USAGE(name)                                                                      \
	r |= json_object_set_new(                                                                  \
		object, #name, json_integer((json_int_t)MIN(usage->name, (uint64_t)INT64_MAX)));
	AGENT_USAGE(EVENT_PUT_USAGE)
	if (r < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(object);
	return 0;
}

static struct str event_first_tool(const struct agent_event *e)
{
	for (size_t i = 0; i < e->blocks_n; i++)
		if (e->blocks[i].type == AGENT_BLOCK_TOOL_USE)
			return e->blocks[i].name;
	return STR_NULL;
}

/* Takes e, also on failure. */
static int event_take(struct agent_event *e, cloche_event **ret, struct cloche_err *err)
{
	_cleanup_(cloche_event_freep) cloche_event *event = calloc(1, sizeof(*event));
	int r;

	if (!event) {
		agent_event_free(e);
		return err_nomem(err);
	}
	event->parsed = e;
	r = agent_transcript_init(&event->said, 0, err);
	if (r == 0)
		r = agent_transcript_add(&event->said, e, err);
	if (r == 0)
		r = event_usage(&event->said, &event->extra, &event->usage, err);
	if (r == 0)
		r = event_set(&event->type_name, e->type_name, err);
	if (r == 0)
		r = event_set(&event->subtype, e->subtype, err);
	if (r == 0)
		r = event_set(&event->session_id, e->session_id, err);
	if (r == 0)
		r = event_set(&event->parent, e->parent_tool_use_id, err);
	if (r == 0)
		r = event_set(&event->tool_name, event_first_tool(e), err);
	if (r == 0)
		*ret = TAKE_PTR(event);
	return r;
}

int event_new(const struct agent_event *e, cloche_event **ret, struct cloche_err *err)
{
	struct agent_event *same;
	int r = agent_event_from_json(e->raw, &same, err);

	return r < 0 ? r : event_take(same, ret, err);
}

int cloche_event_parse(const char *line, size_t length, cloche_event **ret, cloche_err *err)
{
	struct agent_event *e;
	int r;

	if (length > LINES_MAX_DEFAULT)
		return err_set(
			err, E_LIMIT, "an event's line has at most %u bytes", LINES_MAX_DEFAULT);
	r = agent_event_parse(str_make(line, length), &e, err);
	if (r > 0)
		return err_set(err, E_PROTOCOL,
			"not an event: it is not a JSON object with a string as \"type\"");
	return r < 0 ? r : event_take(e, ret, err);
}

void cloche_event_free(cloche_event *event)
{
	if (!event)
		return;
	agent_event_free(event->parsed);
	agent_transcript_done(&event->said);
	free(event->extra);
	free(event->type_name);
	free(event->subtype);
	free(event->session_id);
	free(event->parent);
	free(event->tool_name);
	free(event->json);
	for (size_t i = 0; i < ARRAY_SIZE(event->block); i++)
		free(event->block[i]);
	free(event);
}

enum cloche_event_type cloche_event_type_of(const cloche_event *event)
{
	return (enum cloche_event_type)event->parsed->type;
}

const char *cloche_event_type_name(const cloche_event *event)
{
	return event->type_name;
}

const char *cloche_event_subtype(const cloche_event *event)
{
	return event->subtype;
}

const char *cloche_event_session_id(const cloche_event *event)
{
	return event->session_id;
}

const char *cloche_event_parent_tool_use_id(const cloche_event *event)
{
	return event->parent;
}

const char *cloche_event_text(const cloche_event *event)
{
	const struct agent_transcript *said = &event->said;

	if (said->said.n > 0)
		return said->said.v[0].text;
	if (said->result)
		return said->result;
	return said->errors ? said->errors : "";
}

const char *cloche_event_tool_name(const cloche_event *event)
{
	return event->tool_name;
}

bool cloche_event_is_error(const cloche_event *event)
{
	return agent_transcript_is_error(&event->said) || event->said.tool_errors > 0;
}

int cloche_event_result_of(const cloche_event *event, cloche_event_result *ret)
{
	if (event->said.results == 0)
		return 0;
	*ret = event_result(&event->said, &event->usage);
	return 1;
}

const char *cloche_event_json(cloche_event *event)
{
	if (!event->json && event_set_json(&event->json, event->parsed->raw, NULL) < 0)
		return NULL;
	return event->json;
}

int cloche_event_block_at(cloche_event *event, size_t i, cloche_event_block *ret, cloche_err *err)
{
	const struct agent_block *b;
	int r;

	if (i >= event->parsed->blocks_n)
		return 0;
	b = &event->parsed->blocks[i];
	r = event_set(&event->block[0],
		b->type == AGENT_BLOCK_TOOL_RESULT ? json_str(b->content) : b->text, err);
	if (r == 0)
		r = event_set(&event->block[1], b->id, err);
	if (r == 0)
		r = event_set(&event->block[2], b->name, err);
	if (r == 0)
		r = event_set_json(&event->block[3], b->input ? b->input : b->content, err);
	if (r < 0)
		return r;
	*ret = (cloche_event_block){.type = (enum cloche_event_block_type)b->type,
		.text = event->block[0],
		.id = event->block[1],
		.tool_name = event->block[2],
		.json = event->block[3],
		.is_error = b->is_error};
	return 1;
}
