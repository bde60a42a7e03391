/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"
#include "api/event.h"
#include "session/store.h"
#include <cloche/session.h>

#include <math.h>

enum { INDENT = 2 };

struct cloche_session {
	struct session *store;
	struct buf json;
};

/* Takes store, also on failure. */
static int session_wrap(struct session *store, cloche_session **ret, struct cloche_err *err)
{
	cloche_session *session = calloc(1, sizeof(*session));

	if (!session) {
		session_free(store);
		return err_nomem(err);
	}
	session->store = store;
	session->json = BUF_INIT(SESSION_FILE_MAX);
	*ret = session;
	return 0;
}

int cloche_session_load(const char *dir, cloche_session **ret, cloche_err *err)
{
	struct session *store;
	int r = session_load(dir, &store, err);

	return r < 0 ? r : session_wrap(store, ret, err);
}

int cloche_session_open(
	const char *dir, const char *context_id, cloche_session **ret, cloche_err *err)
{
	struct session *store;
	int r = session_open(dir, context_id, &store, err);

	return r < 0 ? r : session_wrap(store, ret, err);
}

void cloche_session_free(cloche_session *session)
{
	if (!session)
		return;
	session_free(session->store);
	buf_done(&session->json);
	free(session);
}

const char *cloche_session_warning(const cloche_session *session)
{
	return session_warning(session->store);
}

const char *cloche_session_context_id(const cloche_session *session)
{
	return session_context_id(session->store);
}

const char *cloche_session_model(const cloche_session *session)
{
	return session_model(session->store);
}

const char *cloche_session_id_for_resume(const cloche_session *session)
{
	return session_id_for_resume(session->store);
}

const char *cloche_session_last_successful_response(const cloche_session *session)
{
	return session_last_successful_response(session->store);
}

size_t cloche_session_reply_count(const cloche_session *session)
{
	return session_replies(session->store);
}

const char *cloche_session_json(cloche_session *session)
{
	buf_clear(&session->json);
	if (json_text_write(&session->json, session_document(session->store), INDENT) < 0)
		return NULL;
	return buf_cstr(&session->json);
}

int cloche_session_set_model(cloche_session *session, const char *model, cloche_err *err)
{
	return session_set_model(session->store, model, err);
}

/* data: a transcript, which keeps events up to its limit. */
static int session_take_event(struct str line, void *data)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	int r = agent_event_parse(line, &e, NULL);

	if (r == 0)
		r = agent_transcript_add(data, e, NULL);
	return MIN(r, 0);
}

static int session_parse_events(
	struct str text, struct agent_transcript *ret, struct cloche_err *err)
{
	struct lines lines = LINES_INIT(LINES_MAX_DEFAULT);
	int r = lines_feed(&lines, text, session_take_event, ret);

	if (r == 0)
		r = lines_end(&lines, session_take_event, ret);
	lines_done(&lines);
	return r < 0 ? err_nomem(err) : 0;
}

int cloche_session_update_or_add_reply(
	cloche_session *session, const cloche_session_reply *reply, cloche_err *err)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript said = {.events = NULL};
	_cleanup_json_ json_t *usage = NULL;
	int r;

	if (!isfinite(reply->total_cost_usd) || reply->total_cost_usd < 0)
		return err_set(err, E_USAGE, "a cost is 0 or more");
	r = event_usage_json(&reply->usage, &usage, err);
	if (r == 0)
		r = agent_transcript_init(&said, AGENT_TRANSCRIPT_MAX, err);
	if (r == 0 && reply->events)
		r = session_parse_events(str_make(reply->events, reply->events_length), &said, err);
	if (r < 0)
		return r;
	return session_update_or_add_reply(session->store,
		&(struct session_reply){.session_id = reply->session_id,
			.duration_ms = reply->duration_ms,
			.num_turns = reply->num_turns,
			.total_cost_usd = reply->total_cost_usd,
			.is_error = reply->is_error,
			.usage = usage,
			.request_text = reply->request_text,
			.response_text = reply->response_text,
			.events = said.events},
		err);
}
