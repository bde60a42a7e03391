/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent said and did, as it reports itself: its output in the stream-json form, a row for
 * each block. It is not trusted, and only shown as text. */
#include "agent/lines.h"
#include "report/internal.h"

struct turns {
	struct report *r;
	struct cloche_err *err;
	uint64_t number;
	uint64_t others;           /* lines that are not events */
	struct buf message;        /* id of the last message */
	struct timeline *timeline; /* NULL: no time is known */
	uint64_t bytes, usec;      /* before the line; when it came, or 0 */
	int error;
};

static void draw_label(struct turns *t, const struct agent_event *e)
{
	struct html *h = &t->r->html;

	if (e->parent_tool_use_id.n)
		HTML(h, "<small>subagent</small> ");
	if (e->type != AGENT_EVENT_ASSISTANT)
		return;
	HTML(h, "<small>turn ");
	html_number(h, t->number);
	HTML(h, "</small> ");
}

/* All messages of one turn have the same id. */
static void count_turn(struct turns *t, const struct agent_event *e)
{
	struct str id = json_str_at(json_object_get(e->raw, "message"), "id");

	if (e->type != AGENT_EVENT_ASSISTANT || e->parent_tool_use_id.n)
		return;
	if (t->number && id.n && str_eq(id, buf_str(&t->message)))
		return;
	t->number++;
	buf_clear(&t->message);
	if (buf_add_str(&t->message, str_prefix(id, 256)) < 0)
		buf_clear(&t->message);
}

static struct str first_line(struct str text)
{
	text = str_trim(text);
	return text_prefix(str_prefix(text, str_chr(text, '\n')), 300);
}

static void draw_said(struct turns *t, const struct agent_event *e, struct str text)
{
	struct report *r = t->r;

	row_begin(r, ROW_AGENT, false, true, t->usec);
	draw_label(t, e);
	html_constant(&r->html, e->type == AGENT_EVENT_ASSISTANT ? "said" : "was told");
	row_body(r);
	HTML(&r->html, "<div class=say>");
	draw_text(r, text);
	HTML(&r->html, "</div>");
	row_end(r);
}

static void draw_tool(struct turns *t, const struct agent_event *e, const struct agent_block *b)
{
	static const char *const members[] = {
		"command", "file_path", "path", "pattern", "url", "query", "description", "prompt"};
	struct report *r = t->r;
	struct str what = STR_NULL;

	for (size_t i = 0; b->input && what.n == 0 && i < ARRAY_SIZE(members); i++)
		what = json_str_at(b->input, members[i]);
	row_begin(r, ROW_AGENT, false, false, t->usec);
	draw_label(t, e);
	HTML(&r->html, "<b>");
	html_text(&r->html, text_prefix(b->name, 100), HTML_LINE);
	HTML(&r->html, "</b> <code>");
	html_text(&r->html, first_line(what), HTML_TEXT);
	HTML(&r->html, "</code>");
	row_body(r);
	if (b->input)
		draw_json(r, b->input);
	row_end(r);
}

static void draw_answer(struct turns *t, const struct agent_event *e, const struct agent_block *b)
{
	struct report *r = t->r;
	const json_t *part;
	size_t i;

	row_begin(r, ROW_AGENT, b->is_error, false, t->usec);
	draw_label(t, e);
	html_constant(&r->html, b->is_error ? "failed " : "result ");
	HTML(&r->html, "<code>");
	html_text(&r->html, first_line(json_str(b->content)), HTML_TEXT);
	HTML(&r->html, "</code>");
	row_body(r);
	if (json_is_string(b->content))
		draw_text(r, json_str(b->content));
	json_array_foreach (b->content, i, part) {
		struct str text = json_str_at(part, "text");

		if (text.p)
			draw_text(r, text);
		else
			draw_json(r, part);
	}
	row_end(r);
}

/* Draw the result that the agent itself reports. */
static void draw_end(struct turns *t, const struct agent_event *e)
{
	struct report *r = t->r;
	bool is_bad = json_is_true(json_object_get(e->raw, "is_error")) ||
		      str_starts(e->subtype, STR("error"));

	row_begin(r, ROW_AGENT, is_bad, false, t->usec);
	HTML(&r->html, "<b>finished</b> ");
	html_text(&r->html, text_prefix(e->subtype, 100), HTML_LINE);
	HTML(&r->html, " <small class=r>");
	html_number(&r->html, json_count_at(e->raw, "num_turns"));
	HTML(&r->html, " turns, ");
	draw_money(&r->html, json_number_value(json_object_get(e->raw, "total_cost_usd")));
	HTML(&r->html, ", ");
	draw_duration(
		&r->html, MIN(json_count_at(e->raw, "duration_ms"), UINT64_MAX / 1000) * 1000);
	HTML(&r->html, "</small>");
	row_body(r);
	draw_json(r, e->raw);
	row_end(r);
}

static void draw_other(struct turns *t, const struct agent_event *e)
{
	struct report *r = t->r;

	row_begin(r, ROW_AGENT, false, false, t->usec);
	draw_label(t, e);
	html_text(&r->html, text_prefix(e->type_name, 100), HTML_LINE);
	HTML(&r->html, " ");
	html_text(&r->html, text_prefix(e->subtype, 100), HTML_LINE);
	row_body(r);
	draw_json(r, e->raw);
	row_end(r);
}

static void draw_event(struct turns *t, const struct agent_event *e)
{
	count_turn(t, e);
	for (size_t i = 0; i < e->blocks_n; i++) {
		const struct agent_block *b = &e->blocks[i];

		if (b->type == AGENT_BLOCK_TEXT)
			draw_said(t, e, b->text);
		else if (b->type == AGENT_BLOCK_TOOL_USE)
			draw_tool(t, e, b);
		else
			draw_answer(t, e, b);
	}
	if (e->type == AGENT_EVENT_RESULT)
		draw_end(t, e);
	else if (e->blocks_n == 0)
		draw_other(t, e);
}

static int take_line(struct str line, void *user)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	struct turns *t = user;
	int r;

	t->bytes += line.n + 1;
	t->usec = t->timeline ? timeline_at(t->timeline, t->bytes - 1) : 0;
	if (t->usec)
		t->error = timeline_until(t->timeline, t->usec, t->err);
	if (t->error < 0)
		return t->error;
	r = agent_event_parse(line, &e, t->err);
	if (r == 0)
		draw_event(t, e);
	t->others += r > 0;
	return r < 0 ? r : t->r->html.error;
}

int draw_turns(struct report *r, struct content *stdout_text, struct timeline *timeline,
	struct cloche_err *err)
{
	struct turns t = {.r = r, .err = err, .message = BUF_INIT(256), .timeline = timeline};
	int e = content_each_line(stdout_text, take_line, &t);

	buf_done(&t.message);
	if (t.error < 0)
		return t.error;
	if (e < 0)
		return r->html.error ? 0 : err_nomem(err);
	if (t.others) {
		row_begin_plain(r, ROW_AGENT, 0);
		html_number(&r->html, t.others);
		HTML(&r->html, " lines of its output are none of its events");
		row_end_plain(r);
	}
	return 0;
}
