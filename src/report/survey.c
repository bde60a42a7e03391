/* SPDX-License-Identifier: Apache-2.0 */
/* The first reading: the end of each command and the place of its line, the files that change, and
 * the facts for the head of the page. */
#include "agent/lines.h"
#include "base/fd.h"
#include "base/strv.h"
#include "record/oplog.h"
#include "report/internal.h"

#include <errno.h>

struct surveying {
	struct report *r;
	bool has_sandbox, has_command;
};

struct command *command_find(struct report *r, uint64_t number, bool make)
{
	struct command *c = NULL;

	HASH_FIND(hh, r->commands, &number, sizeof(number), c);
	if (c || !make || HASH_COUNT(r->commands) >= REPORT_MAX_COMMANDS)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->number = number;
	HASH_ADD(hh, r->commands, number, sizeof(c->number), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	return c;
}

bool command_is_well(const json_t *end)
{
	static const char *const bad[] = {"timed_out", "oom_killed", "stopped"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (json_is_true(json_object_get(end, bad[i])))
			return false;
	return !json_object_get(end, "failed") &&
	       json_integer_value(json_object_get(end, "exit_code")) == 0;
}

/* --- whose files --- */

static bool is_in(struct str path, struct str dir)
{
	return str_starts(path, dir) &&
	       (path.n == dir.n || path.p[dir.n] == '/' || str_ends(dir, STR("/")));
}

bool report_is_own(const struct report *r, struct str path)
{
	char *const *mount = r->survey.mounts;

	/* Older logs, and those of others, do not say what was mounted. */
	while (mount && *mount && !is_in(path, str_from(*mount)))
		mount++;
	return mount && !*mount;
}

/* Keep where the directories of the person were. */
static int keep_mounts(struct report *r, const json_t *config, struct cloche_err *err)
{
	const json_t *mounts = json_object_get(config, "mounts"), *mount;
	const char *homes = r->source->homes;
	size_t i;
	int e = 0;

	if (!json_is_array(mounts) || r->survey.mounts)
		return 0;
	r->survey.mounts = calloc(1, sizeof(*r->survey.mounts));
	if (!r->survey.mounts)
		return err_nomem(err);
	json_array_foreach (mounts, i, mount) {
		struct str target = json_str_at(mount, "target");

		if (target.n == 0 || json_is_true(json_object_get(mount, "read_only")) ||
			(homes && is_in(json_str_at(mount, "source"), str_from(homes))))
			continue;
		e = strv_add(&r->survey.mounts, target);
		if (e < 0)
			return err_nomem(err);
	}
	return 0;
}

/* --- agents --- */

bool content_is_stream(struct content *stdout_text)
{
	return str_starts(
		content_read(stdout_text, 0, 64), STR("{\"type\":\"system\",\"subtype\":"));
}

int content_each_line(struct content *c, int (*fn)(struct str line, void *user), void *user)
{
	struct lines lines = LINES_INIT(LINES_MAX_DEFAULT);
	uint64_t at = 0;
	int e = 0;

	while (e == 0) {
		struct str piece = content_read(c, at, 256 << 10);

		if (piece.n == 0)
			break;
		e = lines_feed(&lines, piece, fn, user);
		at += piece.n;
	}
	if (e == 0)
		e = lines_end(&lines, fn, user);
	lines_done(&lines);
	return e;
}

static int replace_text(char **text, struct str value, struct cloche_err *err)
{
	char *copy;

	if (!value.p)
		return 0;
	copy = str_dup(value);
	if (!copy)
		return err_nomem(err);
	free(*text);
	*text = copy;
	return 0;
}

/* Keep what the agent says at last, or why it failed. */
static int keep_answer(struct report *r, const struct agent_transcript *t, struct cloche_err *err)
{
	_cleanup_(freep) char *text = NULL;
	int e = agent_transcript_is_error(t) ? agent_transcript_error_summary(t, &text, err)
					     : agent_transcript_response(t, &text, err);

	return e < 0 || !text ? e : replace_text(&r->survey.answer, str_from(text), err);
}

/* Add the costs from an agent's output. */
static int count_agent(struct report *r, struct content *stdout_text, struct cloche_err *err)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript t;
	const char *outcome;
	int e = agent_transcript_init(&t, 1, err);

	if (e < 0)
		return e;
	if (content_each_line(stdout_text, agent_transcript_add_line, &t) < 0)
		return err_nomem(err);
	r->survey.has_agent = true;
	r->survey.turns += t.num_turns;
	r->survey.has_cost |= t.results > 0;
	r->survey.cost_usd += t.total_cost_usd;
	/* A failed request is reported as a success with is_error. */
	outcome = t.is_error && str_eq(str_from(t.subtype), STR("success")) ? "error" : t.subtype;
	e = keep_answer(r, &t, err);
	if (e == 0)
		e = replace_text(&r->survey.model, str_from(t.model), err);
	return e < 0 ? e : replace_text(&r->survey.outcome, str_from(outcome), err);
}

/* --- events --- */

static int take_end(
	struct surveying *s, const struct state_op *op, uint64_t offset, struct cloche_err *err)
{
	_cleanup_(content_donep) struct content out = CONTENT_INIT;
	struct report *r = s->r;
	struct command *c = command_find(r, json_count_at(op->args, "exec"), true);
	int e;

	if (!c || c->has_end)
		return 0;
	c->has_end = true;
	c->end_at = offset;
	r->survey.failed += !command_is_well(op->args);
	e = content_of_args(&out, r->source, op->args, "stdout", "stdoutRef", err);
	if (e < 0)
		return e;
	c->is_agent |= content_is_stream(&out);
	return c->is_agent ? count_agent(r, &out, err) : 0;
}

static int take_agent_end(
	struct surveying *s, const struct state_op *op, uint64_t offset, struct cloche_err *err)
{
	return replace_text(&s->r->survey.outcome, json_str_at(op->args, "outcome"), err);
}

static int take_sandbox_start(
	struct surveying *s, const struct state_op *op, uint64_t offset, struct cloche_err *err)
{
	struct survey *v = &s->r->survey;
	struct str name = json_str_at(op->args, "name");
	int e = replace_text(&v->name, name.n ? name : json_str_at(op->args, "id"), err);

	s->has_sandbox = true;
	if (e == 0)
		e = keep_mounts(s->r, json_object_get(op->args, "config"), err);
	return e < 0 ? e : replace_text(&v->provider, json_str_at(op->args, "provider"), err);
}

static int take_sandbox_end(
	struct surveying *s, const struct state_op *op, uint64_t offset, struct cloche_err *err)
{
	return replace_text(&s->r->survey.reason, json_str_at(op->args, "reason"), err);
}

/* Keep the command's words for the head of the page. */
static int keep_command(struct survey *v, const json_t *args)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(200);
	const json_t *word;
	size_t i;

	json_array_foreach (json_object_get(args, "argv"), i, word) {
		struct str text = json_str(word);

		if ((i && buf_room(&b) && buf_add_char(&b, ' ') < 0) ||
			buf_add_str(&b, text_prefix(text, buf_room(&b))) < 0)
			return -ENOMEM;
	}
	v->command = str_dup(buf_str(&b));
	return v->command ? 0 : -ENOMEM;
}

static int take_begin(
	struct surveying *s, const struct state_op *op, uint64_t offset, struct cloche_err *err)
{
	const json_t *agent = json_object_get(op->args, "agent");
	struct survey *v = &s->r->survey;
	struct command *c;
	int e;

	v->has_there |= s->has_sandbox && !s->has_command;
	s->has_command = true;
	v->commands++;
	if (!v->command && keep_command(v, op->args) < 0)
		return err_nomem(err);
	if (!agent)
		return 0;
	c = command_find(s->r, json_count_at(op->args, "exec"), true);
	if (c)
		c->is_agent = true;
	v->has_agent = true;
	e = replace_text(&v->driver, json_str_at(agent, "driver"), err);
	if (e == 0)
		e = replace_text(&v->prompt, json_str_at(agent, "prompt"), err);
	return e < 0 ? e : replace_text(&v->model, json_str_at(agent, "model"), err);
}

static const struct {
	enum state_op_kind kind;
	int (*fn)(struct surveying *s, const struct state_op *op, uint64_t offset,
		struct cloche_err *err);
} takers[] = {
	{STATE_SANDBOX_START, take_sandbox_start},
	{STATE_SANDBOX_END, take_sandbox_end},
	{STATE_EXEC_START, take_begin},
	{STATE_EXEC_END, take_end},
	{STATE_AGENT_END, take_agent_end},
};

static int take_event(
	struct surveying *s, const struct state_op *op, uint64_t offset, struct cloche_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (takers[i].kind == op->kind)
			return takers[i].fn(s, op, offset, err);
	return 0;
}

/* --- files --- */

static void survey_want(struct report *r, struct str path)
{
	struct cloche_err unknown = CLOCHE_ERR_INIT;
	struct tree_node *n;
	struct tree_path p;

	if (!tree_path_make(&p, path) || tree_add(&r->changed, &p, &n, &unknown) < 0 || n->mark[0])
		return;
	n->mark[0] = true;
	if (report_is_own(r, path))
		r->survey.own_files++;
	else
		r->survey.changed_files++;
}

static void take_skip(struct surveying *s, const struct state_op *op)
{
	_cleanup_(buf_donep) struct buf bytes = BUF_INIT(2 * STATE_PATH_MAX);
	struct str path;

	if ((!s->has_sandbox || s->has_command) && json_count_at(op->args, "size") > 0 &&
		state_argument_read(op->args, "path", &bytes, &path, NULL) == 0)
		survey_want(s->r, path);
}

/* A file that was there from the start is not a change. */
static void take_file(struct surveying *s, const struct state_op *op, uint64_t offset)
{
	if (s->has_sandbox && !s->has_command)
		return;
	timeline_note(s->r, op, offset);
	survey_want(s->r, op->subject);
	if (tree_traits(op->kind) & TREE_MOVES)
		survey_want(s->r, op->object);
}

static void take_time(struct survey *v, uint64_t usec)
{
	if (usec == 0)
		return;
	v->start_usec = v->start_usec ? MIN(v->start_usec, usec) : usec;
	v->end_usec = MAX(v->end_usec, usec);
}

static int survey_take(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct surveying *s = user;

	if (op->kind == STATE_TABLES)
		return 0;
	s->r->survey.operations++;
	take_time(&s->r->survey, op->usec);
	if (state_op_about(op->kind) == STATE_FILES)
		take_file(s, op, offset);
	if (op->kind == STATE_FS_SKIP)
		take_skip(s, op);
	return state_op_about(op->kind) == STATE_EVENTS ? take_event(s, op, offset, err) : 0;
}

/* Count a refusal, with those of the same place for the same reason. */
static void keep_refusal(struct survey *v, struct str what, const char *why)
{
	size_t i = 0;

	while (i < v->refusals_n && !(str_eq(what, str_from(v->refusals[i].what)) &&
					    strcmp(why, v->refusals[i].why) == 0))
		i++;
	if (i == REPORT_REFUSALS)
		return;
	if (i == v->refusals_n) {
		struct refusal one = {.what = str_dup(what), .why = str_dup(str_from(why))};

		if (!one.what || !one.why) {
			free(one.what);
			free(one.why);
			return;
		}
		v->refusals[v->refusals_n++] = one;
	}
	v->refusals[i].times++;
}

static bool count_request(const cloche_request *request, void *user)
{
	struct str url = text_prefix(str_from(request->url), 200);
	struct survey *v = user;

	v->requests++;
	if (report_is_telemetry(request)) {
		v->telemetry++;
	} else if (request->refused) {
		v->refused++;
		keep_refusal(v, str_prefix(url, str_chr(url, '?')), request->refused);
	}
	take_time(v, request->time_us);
	take_time(v, request->ended_us);
	return true;
}

int survey_make(struct report *r, struct cloche_err *err)
{
	struct surveying s = {.r = r};
	int e = oplog_read_file(r->source->log, r->source->torn, survey_take, &s, err);

	if (e >= 0)
		e = r->source->requests(r->source->user, 0, count_request, &r->survey, err);
	return e < 0 ? e : 0;
}

void survey_done(struct report *r)
{
	struct command *c, *next;

	HASH_ITER (hh, r->commands, c, next) {
		HASH_DEL(r->commands, c);
		free(c->changes);
		free(c);
	}
	for (size_t i = 0; i < r->survey.refusals_n; i++) {
		free(r->survey.refusals[i].what);
		free(r->survey.refusals[i].why);
	}
	free(r->removals.path);
	free(r->removals.replaced);
	strv_free(r->survey.mounts);
	free(r->survey.prompt);
	free(r->survey.answer);
	free(r->survey.command);
	free(r->survey.name);
	free(r->survey.provider);
	free(r->survey.reason);
	free(r->survey.driver);
	free(r->survey.model);
	free(r->survey.outcome);
}

/* --- one line again --- */

int report_read_line(
	const struct report *r, uint64_t at, struct state_line *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(STATE_LINE_MAX);
	struct str line;
	int e = fd_next_line(r->source->log, &b, at, UINT64_MAX, &line);

	if (e == -ENOMEM || e == -E2BIG)
		return err_nomem(err);
	/* The last line of a file may have no newline. */
	if (e == 0)
		line = buf_str(&b);
	return e < 0 || buf_len(&b) == 0 ? 1 : state_line_read(ret, line, err);
}
