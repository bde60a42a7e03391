/* SPDX-License-Identifier: Apache-2.0 */
#include "session/document.h"
#include "base/clock.h"

#include <errno.h>

static const char *const required_keys[] = {
	"session_id", "timestamp", "duration_ms", "total_cost_usd", "num_turns", "is_error"};

int document_new(const char *context_id, json_t **ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *doc = json_object();

	if (!doc || json_put(doc, "execution_context_id", json_string(context_id)) < 0 ||
		json_put(doc, "replies", json_array()) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(doc);
	return 0;
}

json_t *document_replies(const json_t *doc)
{
	return json_object_get(doc, "replies");
}

/* Drop events that are not objects. A reply without a list of events gets an empty one. */
static int check_events(json_t *reply)
{
	json_t *events = json_object_get(reply, "events");

	if (!json_is_array(events))
		return json_put(reply, "events", json_array());
	for (size_t i = json_array_size(events); i > 0; i--)
		if (!json_is_object(json_array_get(events, i - 1)))
			json_array_remove(events, i - 1);
	return 0;
}

static int check_reply(json_t *reply, size_t index, struct cloche_err *err)
{
	if (!json_is_object(reply))
		return err_set(err, E_CORRUPT, "reply %zu is not an object", index);
	for (size_t i = 0; i < ARRAY_SIZE(required_keys); i++)
		if (!json_object_get(reply, required_keys[i]))
			return err_set(
				err, E_CORRUPT, "reply %zu has no \"%s\"", index, required_keys[i]);
	if (!json_object_get(reply, "usage") && json_put(reply, "usage", agent_usage(NULL)) < 0)
		return err_nomem(err);
	return check_events(reply) < 0 ? err_nomem(err) : 0;
}

/* Name a document that has no id: by task_id of the older file, else by "". The id goes to the
 * front, where it has always been. */
static int carry_over(json_t **doc, struct cloche_err *err)
{
	struct str id = json_str_at(*doc, "task_id");
	_cleanup_json_ json_t *newer = json_object();

	if (json_object_get(*doc, "execution_context_id"))
		return 0;
	if (!newer ||
		json_put(newer, "execution_context_id", json_stringn(id.n ? id.p : "", id.n)) < 0 ||
		json_object_update(newer, *doc) < 0)
		return err_nomem(err);
	if (id.p)
		json_object_del(newer, "task_id");
	json_decref(*doc);
	*doc = TAKE_PTR(newer);
	return 0;
}

int document_parse(struct str text, json_t **ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *doc = NULL;
	json_t *reply;
	json_error_t why;
	size_t i;
	int r;

	r = json_text_read(text, JSON_ALLOW_NUL, &doc, &why);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0)
		return err_set(err, E_CORRUPT, "line %d: %s", why.line, why.text);
	if (!json_is_object(doc))
		return err_set(err, E_CORRUPT, "not a JSON object");
	r = carry_over(&doc, err);
	if (r < 0)
		return r;
	if (!json_is_string(json_object_get(doc, "execution_context_id")))
		return err_set(err, E_CORRUPT, "\"execution_context_id\" is not a text");
	if (!document_replies(doc) && json_put(doc, "replies", json_array()) < 0)
		return err_nomem(err);
	if (!json_is_array(document_replies(doc)))
		return err_set(err, E_CORRUPT, "\"replies\" is not a list");
	json_array_foreach (document_replies(doc), i, reply) {
		r = check_reply(reply, i, err);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(doc);
	return 0;
}

/* Remove the events of the oldest reply that has any. Return false if none has. */
static bool drop_oldest_events(json_t *doc)
{
	json_t *reply;
	size_t i;

	json_array_foreach (document_replies(doc), i, reply) {
		json_t *events = json_object_get(reply, "events");

		if (json_array_size(events) > 0)
			return json_array_clear(events) == 0;
	}
	return false;
}

int document_write(json_t *doc, struct buf *out, struct cloche_err *err)
{
	int r;

	do {
		buf_clear(out);
		r = json_text_write(out, doc, 2);
	} while (r == -E2BIG && drop_oldest_events(doc));
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "larger than %zu bytes", out->max);
	return r < 0 ? err_nomem(err) : 0;
}

static json_t *events_of(const json_t *from)
{
	_cleanup_json_ json_t *events = json_array();

	if (from && json_array_extend(events, (json_t *)(uintptr_t)from) < 0)
		return NULL;
	return TAKE_PTR(events);
}

static json_t *count(uint64_t n)
{
	return json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX));
}

int reply_set(json_t *reply, const struct session_reply *from, struct cloche_err *err)
{
	char now[CLOCK_ISO_MAX];
	const char *id = from->session_id ? from->session_id : "";

	clock_format_iso(clock_real_usec(), now);
	if (json_put(reply, "session_id", json_text(id)) < 0 ||
		(!json_object_get(reply, "timestamp") &&
			json_put(reply, "timestamp", json_string(now)) < 0) ||
		json_put(reply, "duration_ms", count(from->duration_ms)) < 0 ||
		json_put(reply, "total_cost_usd", json_real(from->total_cost_usd)) < 0 ||
		json_put(reply, "num_turns", count(from->num_turns)) < 0 ||
		json_put(reply, "is_error", json_boolean(from->is_error)) < 0 ||
		json_put(reply, "usage", agent_usage(from->usage)) < 0 ||
		json_put(reply, "request_text", json_text(from->request_text)) < 0 ||
		json_put(reply, "response_text", json_text(from->response_text)) < 0 ||
		json_put(reply, "events", events_of(from->events)) < 0)
		return err_nomem(err);
	if (!from->session_id && reply_session_id(reply).n > 0) {
		struct str found = reply_session_id(reply);

		if (json_put(reply, "session_id", json_stringn(found.p, found.n)) < 0)
			return err_nomem(err);
	}
	json_object_del(reply, REPLY_PENDING);
	return 0;
}

int reply_new(const struct session_reply *from, json_t **ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *reply = json_object();
	int r = reply ? reply_set(reply, from, err) : err_nomem(err);

	if (r == 0)
		*ret = TAKE_PTR(reply);
	return r;
}

int reply_pending_new(
	const char *request_text, uint64_t offset, json_t **ret, struct cloche_err *err)
{
	const struct session_reply begun = {.is_error = true, .request_text = request_text};
	_cleanup_json_ json_t *reply = NULL;
	int r = reply_new(&begun, &reply, err);

	if (r < 0)
		return r;
	if (json_put(reply, REPLY_PENDING, count(offset)) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(reply);
	return 0;
}

bool reply_is_pending(const json_t *reply)
{
	return json_is_integer(json_object_get(reply, REPLY_PENDING));
}

/* Gather stored events as if they came from the agent now. */
static int gather(const json_t *events, struct agent_transcript *t, struct cloche_err *err)
{
	json_t *object;
	size_t i;

	json_array_foreach (events, i, object) {
		_cleanup_(agent_event_freep) struct agent_event *e = NULL;
		int r = agent_event_from_json(object, &e, err);

		if (r == 0)
			r = agent_transcript_add(t, e, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int reply_rebuild(json_t *reply, const json_t *events, struct cloche_err *err)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript t = {.events = NULL};
	_cleanup_(freep) char *response = NULL, *request = NULL;
	struct str asked = json_str_at(reply, "request_text");
	struct session_reply from;
	int r = agent_transcript_init(&t, SIZE_MAX, err);

	if (r == 0)
		r = gather(events, &t, err);
	if (r == 0 && t.results > 0 && !agent_transcript_is_error(&t))
		r = agent_transcript_response(&t, &response, err);
	if (r == 0 && asked.p) {
		request = str_dup(asked);
		r = request ? 0 : err_nomem(err);
	}
	if (r < 0)
		return r;
	from = session_reply_from(&t, AGENT_SUCCESS, 0, request, response);
	from.events = events; /* all of them, including those that are not agent events */
	return reply_set(reply, &from, err);
}

struct str reply_session_id(const json_t *reply)
{
	struct str own = json_str_at(reply, "session_id"), result = STR_NULL, init = STR_NULL;
	json_t *event;
	size_t i;

	if (own.n > 0)
		return own;
	json_array_foreach (json_object_get(reply, "events"), i, event) {
		struct str type = json_str_at(event, "type"), id = json_str_at(event, "session_id");

		if (id.n == 0)
			continue;
		if (str_eq(type, STR("result")))
			result = id;
		else if (init.n == 0 && str_eq(type, STR("system")) &&
			 str_eq(json_str_at(event, "subtype"), STR("init")))
			init = id;
	}
	return result.n > 0 ? result : init;
}

bool reply_lost_session(const json_t *reply)
{
	json_t *event;
	size_t i;

	json_array_foreach (json_object_get(reply, "events"), i, event) {
		const json_t *errors = json_object_get(event, "errors");

		if (str_eq(json_str_at(event, "type"), STR("result")) &&
			str_starts(json_str(json_array_get(errors, 0)), AGENT_SESSION_LOST))
			return true;
	}
	return false;
}

struct session_reply session_reply_from(const struct agent_transcript *t,
	enum agent_outcome outcome, uint64_t wall_ms, const char *request_text,
	const char *response_text)
{
	return (struct session_reply){
		.session_id = agent_transcript_session_id(t),
		.duration_ms = t->duration_ms || t->results == 0 ? t->duration_ms : wall_ms,
		.num_turns = t->num_turns,
		.total_cost_usd = t->total_cost_usd,
		.is_error =
			t->results == 0 || agent_transcript_is_error(t) || outcome != AGENT_SUCCESS,
		.usage = t->usage,
		.request_text = request_text,
		.response_text = response_text,
		.events = t->events,
	};
}
