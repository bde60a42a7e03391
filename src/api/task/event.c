/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: agent/event.h parses a line, and agent/transcript.h collects what events
 * say. This file provides both as terminated strings. What a single event says comes from a
 * transcript of that event alone, so that an event and a sequence are read in the same way. */
#include "api/task/event.h"
#include "agent/lines.h"

#include <errno.h>

struct event {
	cloche_event told; /* must be first */
	struct agent_event *parsed;
	struct agent_transcript said; /* of this event alone */
	cloche_event_result result;
	char *extra; /* of its usage */
	char *type_name, *subtype, *session_id, *parent, *tool_name;
	char *json;
	char *block[4]; /* of the block that was asked for last */
};

static struct event *event_of(cloche_event *event)
{
	return container_of(event, struct event, told);
}

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
	return (cloche_event_result){.size = sizeof(cloche_event_result),
		.session_id = agent_transcript_session_id(t),
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

static const char *event_text(const struct agent_transcript *said)
{
	if (said->said.n > 0)
		return said->said.v[0].text;
	if (said->result)
		return said->result;
	return said->errors ? said->errors : "";
}

static void event_tell(struct event *event)
{
	const struct agent_transcript *said = &event->said;

	event->told = (cloche_event){.size = sizeof(event->told),
		.type = (enum cloche_event_type)event->parsed->type,
		.type_name = event->type_name,
		.subtype = event->subtype,
		.session_id = event->session_id,
		.parent_tool_use_id = event->parent,
		.text = event_text(said),
		.tool_name = event->tool_name,
		.is_error = agent_transcript_is_error(said) || said->tool_errors > 0,
		.result = said->results > 0 ? &event->result : NULL};
}

/* Takes e, also on failure. */
static int event_take(struct agent_event *e, cloche_event **ret, struct cloche_err *err)
{
	struct event *event = calloc(1, sizeof(*event));
	_cleanup_(cloche_event_freep) cloche_event *told = event ? &event->told : NULL;
	cloche_event_usage usage;
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
		r = event_usage(&event->said, &event->extra, &usage, err);
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
	if (r < 0)
		return r;
	event->result = event_result(&event->said, &usage);
	event_tell(event);
	*ret = TAKE_PTR(told);
	return 0;
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

void cloche_event_free(cloche_event *told)
{
	struct event *event;

	if (!told)
		return;
	event = event_of(told);
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

const char *cloche_event_json(cloche_event *told)
{
	struct event *event = event_of(told);

	if (!event->json && event_set_json(&event->json, event->parsed->raw, NULL) < 0)
		return NULL;
	return event->json;
}

int cloche_event_block_at(cloche_event *told, size_t i, cloche_event_block *ret, cloche_err *err)
{
	struct event *event = event_of(told);
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
