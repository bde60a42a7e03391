/* SPDX-License-Identifier: Apache-2.0 */
/* Commands. A command is drawn at its start, together with its end, which the first reading found.
 * If the end is not recorded, or not in a file of lines, start and end are drawn separately. */
#include "report/internal.h"

enum { MAX_ARGV_SHOWN = 400 };

static void draw_argv(struct report *r, const json_t *args)
{
	const json_t *argv = json_object_get(args, "argv"), *word;
	size_t i, left = MAX_ARGV_SHOWN;

	HTML(&r->html, "<code>");
	json_array_foreach (argv, i, word) {
		struct str text = json_str(word), shown = text_prefix(text, left);

		if (i)
			HTML(&r->html, " ");
		html_text(&r->html, shown, HTML_LINE);
		left -= shown.n;
		if (shown.n < text.n || left == 0)
			break;
	}
	if (i < json_array_size(argv) || json_is_true(json_object_get(args, "argv_cut")))
		HTML(&r->html, " ...");
	HTML(&r->html, "</code>");
}

/* For code, draw the code instead of the interpreter's command line. */
static void draw_what(struct report *r, const json_t *args)
{
	const json_t *code = json_object_get(args, "code");
	struct str text = str_trim(json_str_at(code, "text"));

	if (!code) {
		HTML(&r->html, "<b>$</b> ");
		draw_argv(r, args);
		return;
	}
	HTML(&r->html, "<b>");
	html_text(&r->html, text_prefix(json_str_at(code, "runtime"), 100), HTML_LINE);
	HTML(&r->html, " ");
	html_text(&r->html, text_prefix(json_str_at(code, "context"), 100), HTML_LINE);
	HTML(&r->html, "</b> <code>");
	html_text(&r->html, text_prefix(str_prefix(text, str_chr(text, '\n')), 200), HTML_LINE);
	HTML(&r->html, "</code>");
}

static void draw_result(struct report *r, const json_t *end)
{
	static const struct {
		const char *key, *text;
	} ways[] = {{"timed_out", ", its time was over"}, {"oom_killed", ", out of memory"},
		{"stopped", ", it was stopped"}};
	uint64_t signal = json_count_at(end, "signal");

	HTML(&r->html, " <small class=r>");
	if (json_object_get(end, "failed")) {
		HTML(&r->html, "did not start: ");
		html_text(&r->html, json_str_at(end, "failed"), HTML_LINE);
	} else {
		if (signal) {
			HTML(&r->html, "ended by signal ");
			html_number(&r->html, signal);
		} else {
			HTML(&r->html, "exit status ");
			html_number(&r->html, json_count_at(end, "exit_code"));
		}
		for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
			if (json_is_true(json_object_get(end, ways[i].key)))
				html_constant(&r->html, ways[i].text);
		HTML(&r->html, ", ");
		draw_duration(&r->html, json_count_at(end, "duration_usec"));
	}
	HTML(&r->html, "</small>");
}

static void draw_detail(struct report *r, const char *name, struct str value)
{
	if (!value.p || value.n == 0)
		return;
	HTML(&r->html, "<p class=k><b>");
	html_constant(&r->html, name);
	HTML(&r->html, "</b> ");
	html_text(&r->html, text_prefix(value, REPORT_PIECE), HTML_LINE);
	HTML(&r->html, "</p>");
}

/* Whether all words fit on one line with visible boundaries. */
static bool is_plain(const json_t *argv)
{
	const json_t *word;
	size_t i, all = 0;

	json_array_foreach (argv, i, word) {
		struct str text = json_str(word);

		all += text.n + 1;
		if (text.n == 0 || str_chr(text, ' ') < text.n || str_chr(text, '\n') < text.n)
			return false;
	}
	return all <= MAX_ARGV_SHOWN;
}

/* Draw each word by itself, if the head does not show them like that. */
static void draw_words(struct report *r, const json_t *args)
{
	struct str code = json_str_at(json_object_get(args, "code"), "text");
	const json_t *argv = json_object_get(args, "argv"), *word;
	size_t i;

	draw_detail(r, "in", json_str_at(args, "cwd"));
	if (code.p) {
		draw_text(r, code);
		return;
	}
	if (is_plain(argv))
		return;
	HTML(&r->html, "<ol>");
	json_array_foreach (argv, i, word) {
		struct str text = json_str(word);
		size_t n = report_take(r, MIN(text.n, (size_t)REPORT_PIECE));

		if (i == 200)
			break;
		HTML(&r->html, "<li>");
		html_text(&r->html, text_prefix(text, n), HTML_TEXT);
		html_constant(&r->html, n < text.n ? " ...</li>" : "</li>");
	}
	HTML(&r->html, "</ol>");
}

/* --- what it printed --- */

/* Bytes [from, to) of both streams in their original order. */
struct printing {
	struct report *r;
	struct content *streams[2];
	uint64_t at[2];  /* bytes passed in each stream */
	uint64_t passed; /* bytes passed in both */
	uint64_t from, to;
};

static void print_turn(struct printing *p, int stream, uint64_t n)
{
	struct html *h = &p->r->html;
	uint64_t left, skip;

	left = p->streams[stream]->size - p->at[stream];
	n = MIN(n, left);
	skip = p->passed < p->from ? MIN(p->from - p->passed, n) : 0;
	left = p->to > p->passed + skip ? MIN(p->to - p->passed - skip, n - skip) : 0;
	if (left) {
		struct str text =
			content_read(p->streams[stream], p->at[stream] + skip, (size_t)left);

		if (stream == 1)
			HTML(h, "<em>");
		html_text(h, text, HTML_TEXT);
		if (stream == 1)
			HTML(h, "</em>");
	}
	p->at[stream] += n;
	p->passed += n;
}

static void print_range(struct report *r, struct content *out, struct content *error,
	const json_t *order, uint64_t from, uint64_t to)
{
	struct printing p = {.r = r, .streams = {out, error}, .from = from, .to = to};
	const json_t *one;
	size_t i;

	json_array_foreach (order, i, one) {
		json_int_t n = json_integer_value(one);

		print_turn(&p, (int)(i % 2), n > 0 ? (uint64_t)n : 0);
	}
	print_turn(&p, 0, UINT64_MAX);
	print_turn(&p, 1, UINT64_MAX);
}

static void draw_streams(
	struct report *r, struct content *out, struct content *error, const json_t *order)
{
	uint64_t size = out->size + error->size;
	uint64_t n = report_take(r, (size_t)MIN(size, (uint64_t)2 * REPORT_PIECE));
	uint64_t head = n < size ? n / 2 : n;

	if (size == 0)
		return;
	HTML(&r->html, "<pre>\n");
	print_range(r, out, error, order, 0, head);
	if (n < size) {
		draw_left_out(&r->html, size - n);
		print_range(r, out, error, order, size - (n - head), size);
	}
	HTML(&r->html, "</pre>");
}

static void draw_printed(
	struct report *r, struct content *out, struct content *error, const json_t *end)
{
	uint64_t lost = json_count_at(end, "lost"), last = json_count_at(end, "lost_last");

	if (out->is_missing || error->is_missing)
		HTML(&r->html, "<p><i>What it printed is not beside the log.</i></p>");
	if (lost) {
		HTML(&r->html, "<p><i>The first ");
		draw_size(&r->html, lost);
		HTML(&r->html, " of its output were not kept.</i></p>");
	}
	draw_streams(r, out, error, json_object_get(end, "order"));
	if (last) {
		HTML(&r->html, "<p><i>The last ");
		draw_size(&r->html, last);
		HTML(&r->html, " of its output could not be kept: the disk was full.</i></p>");
	}
	if (json_is_true(json_object_get(end, "cut")))
		HTML(&r->html, "<p><i>The rest of its output was not kept: the limit of the record "
			       "was reached.</i></p>");
}

/* --- entries --- */

static void draw_prompt(struct report *r, const json_t *agent)
{
	struct str prompt = json_str_at(agent, "prompt");

	if (!prompt.p)
		return;
	row_begin(r, ROW_AGENT, false, true, 0);
	HTML(&r->html, "prompt");
	row_body(r);
	HTML(&r->html, "<div class=say>");
	draw_text(r, prompt);
	HTML(&r->html, "</div>");
	row_end(r);
}

/* Draw what happened while the command ran, as far as start and end are known. stdout_text: an
 * agent's turns; NULL: it is none. */
static int draw_meanwhile(struct report *r, struct command *c, const json_t *end,
	struct content *stdout_text, struct cloche_err *err)
{
	struct timeline t;
	int e = 0;

	if (!c || !end)
		return stdout_text ? draw_turns(r, stdout_text, NULL, err) : 0;
	timeline_begin(&t, r, c, end);
	if (stdout_text)
		e = draw_turns(r, stdout_text, &t, err);
	return e < 0 ? e : timeline_until(&t, UINT64_MAX, err);
}

/* Draw the row of a command, as far as it is known. An agent's output is drawn after it, as
 * turns. */
static int draw_row(struct report *r, const struct state_op *start, const json_t *end,
	struct command *c, uint64_t usec, struct cloche_err *err)
{
	_cleanup_(content_donep) struct content out = CONTENT_INIT, error = CONTENT_INIT;
	struct content nothing = CONTENT_INIT;
	bool is_agent = false;
	int e = 0;

	if (end)
		e = content_of_args(&out, r->source, end, "stdout", "stdoutRef", err);
	if (e == 0 && end)
		e = content_of_args(&error, r->source, end, "stderr", "stderrRef", err);
	if (e < 0)
		return e;
	is_agent = end && c && c->is_agent && out.size > 0;
	row_begin(r, is_agent ? ROW_AGENT : ROW_COMMAND, end && !command_is_well(end), is_agent,
		usec);
	if (start)
		draw_what(r, start->args);
	else
		HTML(&r->html, "ended");
	draw_exec(&r->html, json_count_at(start ? start->args : end, "exec"));
	if (end)
		draw_result(r, end);
	row_body(r);
	if (start)
		draw_words(r, start->args);
	if (end)
		draw_printed(r, is_agent ? &nothing : &out, &error, is_agent ? NULL : end);
	else
		HTML(&r->html, "<p><i>Its end is further down, or not on record.</i></p>");
	row_end(r);
	if (start)
		draw_prompt(r, json_object_get(start->args, "agent"));
	return draw_meanwhile(r, start ? c : NULL, end, is_agent ? &out : NULL, err);
}

/* Draw code that has a value. What an interpreter that keeps running has printed is with its
 * command. */
int draw_call(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	static const char *const keys[] = {"stdout", "stderr", "value"};

	row_begin(r, ROW_COMMAND, !command_is_well(op->args), false, op->usec);
	draw_what(r, op->args);
	draw_exec(&r->html, json_count_at(op->args, "exec"));
	draw_result(r, op->args);
	row_body(r);
	draw_words(r, op->args);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct str text = json_str_at(op->args, keys[i]);

		if (text.n)
			draw_text(r, text);
	}
	row_end(r);
	return 0;
}

int draw_command(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	struct command *c = command_find(r, json_count_at(op->args, "exec"), false);
	uint64_t began = json_count_at(op->args, "started_usec");
	bool is_start = op->kind == STATE_EXEC_START;
	int e = 1;

	if (!is_start && c && c->is_drawn)
		return 0;
	if (is_start && c && c->has_end && c->end_at && !c->is_drawn) {
		e = report_read_line(r, c->end_at, &line, err);
		if (e < 0)
			return e;
	}
	if (c && (!is_start || e == 0))
		c->is_drawn = true;
	/* The file has changed, and something else is at this place. */
	if (e == 0 && line.op.kind != STATE_EXEC_END)
		e = 1;
	return draw_row(r, is_start ? op : NULL,
		!is_start ? op->args
		: e == 0  ? line.op.args
			  : NULL,
		c, began ? began : op->usec, err);
}
