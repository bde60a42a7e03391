/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"
#include "api/task/event.h"
#include "base/sized.h"
#include "session/store.h"

#include <math.h>

static int session_parse_events(
	struct str text, struct agent_transcript *ret, struct cloche_err *err)
{
	struct lines lines = LINES_INIT(LINES_MAX_DEFAULT);
	int r = lines_feed(&lines, text, agent_transcript_add_line, ret);

	if (r == 0)
		r = lines_end(&lines, agent_transcript_add_line, ret);
	lines_done(&lines);
	return r < 0 ? err_nomem(err) : 0;
}

int cloche_session_update_or_add_reply(
	cloche_session *session, const cloche_session_reply *reply, cloche_err *err)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript said = {.events = NULL};
	_cleanup_json_ json_t *usage = NULL;
	cloche_session_reply a = CLOCHE_SESSION_REPLY_INIT;
	int r = sized_take(&a, sizeof(a), reply, "cloche_session_reply", err);

	if (r < 0)
		return r;
	if (!isfinite(a.total_cost_usd) || a.total_cost_usd < 0)
		return err_set(err, E_USAGE, "a cost is 0 or more");
	r = event_usage_json(&a.usage, &usage, err);
	if (r == 0)
		r = agent_transcript_init(&said, AGENT_TRANSCRIPT_MAX, err);
	if (r == 0 && a.events)
		r = session_parse_events(str_make(a.events, a.events_length), &said, err);
	if (r < 0)
		return r;
	return session_update_or_add_reply(session,
		&(struct session_reply){.session_id = a.session_id,
			.duration_ms = a.duration_ms,
			.num_turns = a.num_turns,
			.total_cost_usd = a.total_cost_usd,
			.is_error = a.is_error,
			.usage = usage,
			.request_text = a.request_text,
			.response_text = a.response_text,
			.events = said.events},
		err);
}
