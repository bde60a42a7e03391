/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/transcript.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>

/* Theory of operation
 *
 * Everything comes from inside a room: no member is trusted to exist, to have its type or to be
 * sensible, and memory is limited. Raw events are kept up to a limit. Of the texts only the last
 * few are kept, which is all that the response and the error summary use. */

#define RESULTS_TEXT_MAX (16U << 20)

/* The response is taken from this many of the last texts. An earlier one is included if it is so
 * many times as long as the last. */
#define ANSWER_WINDOW 5
#define ANSWER_FACTOR 4
#define SUMMARY_LINES 10

static const char *const usage_keys[] = {AGENT_USAGE(AGENT_USAGE_KEY)};

int agent_transcript_init(struct agent_transcript *t, size_t max, struct cloche_err *err)
{
	*t = (struct agent_transcript){.max = max, .results_text = BUF_INIT(RESULTS_TEXT_MAX)};
	t->events = json_array();
	return t->events ? 0 : err_nomem(err);
}

void agent_transcript_done(struct agent_transcript *t)
{
	json_decref(t->events);
	json_decref(t->usage);
	free(t->result_session_id);
	free(t->init_session_id);
	free(t->model);
	free(t->subtype);
	free(t->result);
	free(t->errors);
	buf_done(&t->results_text);
	for (size_t i = 0; i < t->said.n; i++)
		free(t->said.v[i].text);
	*t = (struct agent_transcript){.events = NULL};
}

static bool is_blank(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!memchr(" \t\r\n\v\f", s.p[i], 6))
			return false;
	return true;
}

static struct str strip(struct str s)
{
	while (s.n > 0 && is_blank(str_prefix(s, 1)))
		s = str_from_index(s, 1);
	while (s.n > 0 && is_blank(str_make(s.p + s.n - 1, 1)))
		s.n--;
	return s;
}

static int replace(char **at, struct str s)
{
	char *copy = agent_text_dup(s);

	if (!copy)
		return -ENOMEM;
	free(*at);
	*at = copy;
	return 0;
}

static int replace_unless_empty(char **at, struct str s)
{
	return s.n > 0 ? replace(at, s) : 0;
}

static int texts_add(struct agent_texts *texts, struct str s)
{
	char *copy = agent_text_dup(s);

	if (!copy)
		return -ENOMEM;
	if (texts->n == AGENT_TEXTS_KEPT) {
		free(texts->v[0].text);
		memmove(&texts->v[0], &texts->v[1], (AGENT_TEXTS_KEPT - 1) * sizeof(texts->v[0]));
		texts->n--;
	}
	texts->v[texts->n++] = (struct agent_text){copy, s.n, utf8_count(s)};
	return 0;
}

static int join(struct buf *out, struct str s, const char *between)
{
	int r = buf_len(out) > 0 ? buf_add_str(out, str_from(between)) : 0;

	return r < 0 ? r : buf_add_str(out, s);
}

/* Anything but a sensible number counts as 0. */
static uint64_t count_of(const json_t *v)
{
	double d = json_number_value(v);

	if (json_is_integer(v))
		return json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
	return json_is_real(v) && isfinite(d) && d > 0 && d < 9e15 ? (uint64_t)d : 0;
}

static double cost_of(const json_t *v)
{
	double d = json_is_number(v) ? json_number_value(v) : 0;

	return isfinite(d) && d > 0 ? d : 0;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	uint64_t s;

	/* JSON integers end at 2^63 - 1; the sum must still be one when it is written. */
	return __builtin_add_overflow(a, b, &s) || s > INT64_MAX ? INT64_MAX : s;
}

static int add_assistant(struct agent_transcript *t, const struct agent_event *e)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SIZE_MAX / 2);
	int r;

	for (size_t i = 0; i < e->blocks_n; i++) {
		const struct agent_block *b = &e->blocks[i];

		if (b->type == AGENT_BLOCK_TOOL_USE) {
			t->web_search_count += str_eq(b->name, STR("WebSearch"));
			t->web_fetch_count += str_eq(b->name, STR("WebFetch"));
		} else if (b->type == AGENT_BLOCK_TEXT && !is_blank(b->text)) {
			r = join(&text, b->text, "\n\n");
			if (r < 0)
				return r;
		}
	}
	return buf_len(&text) > 0 ? texts_add(&t->said, buf_str(&text)) : 0;
}

static void add_user(struct agent_transcript *t, const struct agent_event *e)
{
	for (size_t i = 0; i < e->blocks_n; i++)
		t->tool_errors +=
			e->blocks[i].type == AGENT_BLOCK_TOOL_RESULT && e->blocks[i].is_error;
}

static int add_system(struct agent_transcript *t, const struct agent_event *e)
{
	int r;

	if (!str_eq(e->subtype, STR("init")))
		return 0;
	r = replace_unless_empty(&t->init_session_id, e->session_id);
	return r < 0 ? r : replace_unless_empty(&t->model, json_str_at(e->raw, "model"));
}

/* Get the text of a result: a string, or an object with text blocks. */
static int result_text(const json_t *v, struct buf *out)
{
	const json_t *content = json_object_get(v, "content"), *block;
	size_t i;
	int r = 0;

	if (json_is_string(v))
		return buf_add_str(out, json_str(v));
	json_array_foreach (content, i, block)
		if (r == 0 && str_eq(json_str_at(block, "type"), STR("text")))
			r = join(out, json_str_at(block, "text"), "\n\n");
	return r;
}

static int add_result_text(struct agent_transcript *t, const json_t *v)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SIZE_MAX / 2);
	int r = result_text(v, &text);

	if (r < 0 || is_blank(buf_str(&text)))
		return r;
	r = replace(&t->result, buf_str(&text));
	if (r < 0)
		return r;
	t->results_with_text++;
	r = join(&t->results_text, str_from(t->result), "\n\n");
	return r == -E2BIG ? 0 : r; /* more than anybody reads: what fits is kept */
}

/* Get the errors of a result without text: {"errors": ["No conversation found with …"]}. */
static int add_errors(struct agent_transcript *t, const json_t *errors)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SIZE_MAX / 2);
	const json_t *line;
	size_t i;
	int r = 0;

	json_array_foreach (errors, i, line)
		if (r == 0 && json_is_string(line))
			r = join(&text, json_str(line), "\n");
	if (r < 0)
		return r;
	free(TAKE_PTR(t->errors));
	return replace_unless_empty(&t->errors, buf_str(&text));
}

static int add_result(struct agent_transcript *t, const struct agent_event *e)
{
	const json_t *status = json_object_get(e->raw, "api_error_status");
	const json_t *error = json_object_get(e->raw, "is_error");
	json_t *usage = json_object_get(e->raw, "usage");
	uint64_t code = json_is_integer(status) ? count_of(status) : 0;
	int r;

	t->results++;
	t->duration_ms = sum(t->duration_ms, count_of(json_object_get(e->raw, "duration_ms")));
	t->num_turns = sum(t->num_turns, count_of(json_object_get(e->raw, "num_turns")));
	t->total_cost_usd = cost_of(json_object_get(e->raw, "total_cost_usd"));
	t->is_error = json_is_true(error);
	t->has_verdict = json_is_boolean(error) || e->subtype.n > 0;
	t->api_error_status = code >= 100 && code <= 599 ? (int)code : 0;
	json_decref(t->usage);
	t->usage = json_is_object(usage) ? json_incref(usage) : NULL;
	r = replace(&t->subtype, e->subtype);
	if (r == 0)
		r = replace_unless_empty(&t->result_session_id, e->session_id);
	if (r == 0)
		r = add_errors(t, json_object_get(e->raw, "errors"));
	return r < 0 ? r : add_result_text(t, json_object_get(e->raw, "result"));
}

static int keep(struct agent_transcript *t, const struct agent_event *e)
{
	if (e->size > t->max - t->kept)
		return 0;
	t->kept += e->size;
	return json_array_append(t->events, e->raw) < 0 ? -ENOMEM : 0;
}

int agent_transcript_add(
	struct agent_transcript *t, const struct agent_event *e, struct cloche_err *err)
{
	int r = keep(t, e);

	if (r == 0 && e->type == AGENT_EVENT_SYSTEM)
		r = add_system(t, e);
	else if (r == 0 && e->type == AGENT_EVENT_ASSISTANT)
		r = add_assistant(t, e);
	else if (r == 0 && e->type == AGENT_EVENT_USER)
		add_user(t, e);
	else if (r == 0 && e->type == AGENT_EVENT_RESULT)
		r = add_result(t, e);
	return r < 0 ? err_nomem(err) : 0;
}

int agent_transcript_add_line(struct str line, void *transcript)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	int r = agent_event_parse(line, &e, NULL);

	if (r == 0)
		r = agent_transcript_add(transcript, e, NULL);
	return MIN(r, 0);
}

bool agent_transcript_is_error(const struct agent_transcript *t)
{
	return t->is_error || str_starts(str_from(t->subtype), STR("error"));
}

const char *agent_transcript_session_id(const struct agent_transcript *t)
{
	return t->result_session_id ? t->result_session_id : t->init_session_id;
}

/* Return the index of the first text of the response. */
static size_t answer_start(const struct agent_texts *said)
{
	size_t last = said->n - 1;

	for (size_t i = last; i > 0 && last - i < ANSWER_WINDOW - 1; i--)
		if (said->v[i - 1].chars >= ANSWER_FACTOR * said->v[last].chars)
			return i - 1;
	return last;
}

int agent_transcript_response(const struct agent_transcript *t, char **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(SIZE_MAX / 2);
	const char *text = AGENT_NO_OUTPUT;
	int r = 0;

	if (t->results_with_text > 1) {
		r = buf_add_str(&out, buf_str(&t->results_text));
	} else if (t->said.n > 0) {
		for (size_t i = answer_start(&t->said); r == 0 && i < t->said.n; i++)
			r = join(&out, str_make(t->said.v[i].text, t->said.v[i].n), "\n\n");
	} else {
		if (t->result)
			text = t->result;
		r = buf_add_str(&out, str_from(text));
	}
	text = r < 0 ? NULL : str_dup(buf_str(&out));
	if (!text)
		return err_nomem(err);
	*ret = (char *)(uintptr_t)text;
	return 0;
}

static struct str last_lines(struct str s, unsigned n)
{
	size_t at = s.n;

	while (at > 0) {
		if (s.p[at - 1] == '\n' && --n == 0)
			break;
		at--;
	}
	return str_from_index(s, at);
}

int agent_transcript_error_summary(
	const struct agent_transcript *t, char **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(SIZE_MAX / 2);
	const char *reason;
	char *summary = NULL;
	int r;

	/* The reason is in the result. The earlier texts are used only if the result has none. */
	reason = t->results > 0 && t->errors ? t->errors : t->result;
	r = buf_add_str(&out, strip(str_from(reason)));
	for (size_t i = 0; !reason && r == 0 && i < t->said.n; i++)
		r = join(&out, strip(str_make(t->said.v[i].text, t->said.v[i].n)), "\n");
	if (r == 0 && buf_len(&out) > 0) {
		summary = str_dup(last_lines(buf_str(&out), SUMMARY_LINES));
		if (!summary)
			r = -ENOMEM;
	}
	if (r < 0)
		return err_nomem(err);
	*ret = summary;
	return 0;
}

json_t *agent_usage(const json_t *reported)
{
	_cleanup_json_ json_t *usage = json_object();

	for (size_t i = 0; usage && i < ARRAY_SIZE(usage_keys); i++) {
		uint64_t n = count_of(json_object_get(reported, usage_keys[i]));

		if (json_object_set_new(usage, usage_keys[i], json_integer((json_int_t)n)) < 0)
			return NULL;
	}
	if (usage && reported && json_add_missing(usage, reported) < 0)
		return NULL;
	return TAKE_PTR(usage);
}
