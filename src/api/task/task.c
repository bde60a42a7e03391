/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a task owns an execution context (session/store.h) for as long as it lives.
 * Each execute prepares a sandbox from what the caller and the driver want, runs the agent in it
 * with the prompt on standard input, and turns each line of output into an event that is appended
 * to the context before any callback is called. Then the outcome is classified and the reply is
 * finished.
 *
 * A stop may come from another thread or a signal handler while the run is made or freed. So the
 * users of the pointer are counted, and a run is freed only when it has none. */
#include "api/task/task.h"
#include "agent/lines.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/parse.h"
#include "job/job.h"

#include <sched.h>

enum { KEEP_OUTPUT = 1 << 20, KEEP_PROGRESS = 400, MAX_TURNS = 1000000 };

int cloche_task_new(const cloche_sandbox *sb, const char *driver, const char *context_dir,
	const char *context_id, cloche_task **ret, cloche_err *err)
{
	_cleanup_(cloche_task_freep) cloche_task *task = calloc(1, sizeof(*task));
	int r;

	if (!task)
		return err_nomem(err);
	task->sb = sandbox_copy(sb);
	if (!task->sb)
		return err_sys(err, errno, "copy a sandbox's configuration");
	r = agent_driver_get(driver, &task->driver, err);
	if (r == 0 && !task->driver->output) {
		err_set(err, E_USAGE,
			"%s works at a terminal: its driver says nothing of headless work",
			task->driver->title);
		err_hint(err, "for example: cloche %s", task->driver->name);
		return -E_USAGE;
	}
	if (r == 0)
		r = session_open_unwritten(context_dir, context_id, &task->session, err);
	if (r == 0)
		r = task_name_paths(task, err);
	if (r == 0)
		r = task_make_result(task, false, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(task);
	return 0;
}

static void drop_run(cloche_task *task)
{
	cloche_run *run = atomic_exchange(&task->run, NULL);

	while (atomic_load(&task->run_users) > 0)
		sched_yield();
	cloche_run_free(run);
}

/* Forgets the last execution. */
static void reset(cloche_task *task)
{
	drop_run(task);
	if (task->have_transcript)
		agent_transcript_done(&task->transcript);
	task->have_transcript = false;
	lines_done(&task->lines[0]);
	lines_done(&task->lines[1]);
	buf_done(&task->output[0]);
	buf_done(&task->output[1]);
	buf_done(&task->result_json);
	free(task->response);
	free(task->error_summary);
	task->response = task->error_summary = NULL;
	err_clear(&task->failure);
	task->markers = (struct agent_markers){0};
	task->truncated[0] = task->truncated[1] = false;
}

void cloche_task_free(cloche_task *task)
{
	if (!task)
		return;
	reset(task);
	sandbox_member_leave(&task->member);
	cloche_session_free(task->session);
	agent_driver_free(task->driver);
	cloche_sandbox_free(task->sb);
	free(task->event_log);
	free(task->network_log);
	free(task->usage_extra);
	free(task->model);
	free(task->effort);
	free(task->system_prompt);
	free(task->binary);
	free(task->resume);
	free(task);
}

static int no_session(const cloche_task *task, struct cloche_err *err)
{
	const char *damage = session_damage(task->session);

	(void)err_set(err, E_NOT_FOUND, "there is no session to resume in %s%s%s",
		session_dir(task->session), damage ? ": " : "", damage ? damage : "");
	err_hint(err, "run without --resume to start one%s",
		damage ? "; the damaged file is kept under another name" : "");
	return -E_NOT_FOUND;
}

static int task_set_resume(cloche_task *task, const char *session, struct cloche_err *err)
{
	if (session && strcmp(session, "last") == 0) {
		session = cloche_session_info_of(task->session)->id_for_resume;
		if (!session)
			return no_session(task, err);
	}
	return set_string(&task->resume, session, err);
}

static int task_set_max_turns(cloche_task *task, const char *value, struct cloche_err *err)
{
	uint64_t n = 0;

	if (value && (parse_u64(str_from(value), MAX_TURNS, &n) < 0 || n == 0))
		return err_set(err, E_USAGE, "max-turns \"%s\": use a number from 1 to %d", value,
			MAX_TURNS);
	task->max_turns = (unsigned)n;
	return 0;
}

int cloche_task_set(cloche_task *task, const char *name, const char *value, cloche_err *err)
{
	const struct {
		const char *name;
		char **at;
	} texts[] = {{"model", &task->model}, {"effort", &task->effort},
		{"system-prompt", &task->system_prompt}, {"agent-binary", &task->binary}};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcmp(texts[i].name, name) == 0)
			return set_string(texts[i].at, value, err);
	if (strcmp(name, "max-turns") == 0)
		return task_set_max_turns(task, value, err);
	if (strcmp(name, "resume") == 0)
		return task_set_resume(task, value, err);
	return err_set(err, E_USAGE, "a task has no option \"%s\"", name);
}

void cloche_task_on_event(cloche_task *task, cloche_event_fn fn, void *user)
{
	task->on_event = fn;
	task->on_event_user = user;
}

void cloche_task_on_progress(cloche_task *task, cloche_warning_fn fn, void *user)
{
	task->on_progress = fn;
	task->on_progress_user = user;
}

void cloche_task_on_warning(cloche_task *task, cloche_warning_fn fn, void *user)
{
	task->on_warning = fn;
	task->on_warning_user = user;
}

JOB_TELL1(tell_text, cloche_warning_fn, const char *)
JOB_TELL1(tell_event, cloche_event_fn, cloche_event *)

/* Report the first line of text as progress, cut, without anything that a terminal would obey. */
static void progress(cloche_task *task, const char *mark, struct str text)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(KEEP_PROGRESS * 8);
	struct str first = str_trim(str_prefix(text, str_chr(text, '\n')));
	bool cut = first.n < str_trim(text).n || first.n > KEEP_PROGRESS;

	if (!task->on_progress || first.n == 0)
		return;
	if (buf_add_str(&line, str_from(mark)) < 0 ||
		escape_terminal(&line, str_prefix(first, KEEP_PROGRESS)) < 0 ||
		(cut && buf_add(&line, " ...", 4) < 0) || !buf_cstr(&line))
		return;
	tell_text(task->on_progress, buf_data(&line), task->on_progress_user);
}

/* Report what a tool is asked to do, by the first known member of its input. */
static void progress_tool(cloche_task *task, const struct agent_block *b)
{
	static const char *const members[] = {
		"command", "file_path", "path", "pattern", "url", "query", "description", "prompt"};
	_cleanup_(buf_donep) struct buf mark = BUF_INIT(1024);
	struct str what = STR_NULL;

	for (size_t i = 0; b->input && what.n == 0 && i < ARRAY_SIZE(members); i++)
		what = json_str_at(b->input, members[i]);
	if (buf_add(&mark, "-> ", 3) < 0 || escape_terminal(&mark, str_prefix(b->name, 64)) < 0 ||
		buf_add(&mark, ": ", 2) < 0 || !buf_cstr(&mark))
		return;
	progress(task, buf_data(&mark), what.n ? what : STR("..."));
}

/* Report why the agent asks its API once more. */
static void progress_retry(cloche_task *task, const struct agent_event *e)
{
	json_int_t status = json_integer_value(json_object_get(e->raw, "error_status"));
	char line[64] = "the API did not answer, trying again";

	if (status >= 100 && status <= 599)
		snprintf(line, sizeof(line), "the API answered %d, trying again", (int)status);
	progress(task, "", str_from(line));
}

static void show(cloche_task *task, const struct agent_event *e)
{
	for (size_t i = 0; i < e->blocks_n; i++) {
		const struct agent_block *b = &e->blocks[i];

		if (b->type == AGENT_BLOCK_TOOL_USE)
			progress_tool(task, b);
		else if (b->type == AGENT_BLOCK_TOOL_RESULT && b->is_error)
			progress(task, "   failed: ", json_str(b->content));
		else if (b->type == AGENT_BLOCK_TEXT && e->type == AGENT_EVENT_ASSISTANT)
			progress(task, "", b->text);
	}
	if (e->type == AGENT_EVENT_SYSTEM && str_eq(e->subtype, STR("init")))
		progress(task, "session ", e->session_id);
	if (e->type == AGENT_EVENT_SYSTEM && str_eq(e->subtype, STR("api_retry")))
		progress_retry(task, e);
}

static int tell(cloche_task *task, const struct agent_event *e, struct cloche_err *err)
{
	_cleanup_(cloche_event_freep) cloche_event *event = NULL;
	int r;

	show(task, e);
	r = task->on_event ? event_new(e, &event, err) : 0;
	if (event)
		tell_event(task->on_event, event, task->on_event_user);
	return r;
}

static int on_stdout_line(struct str line, void *data)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	cloche_task *task = data;
	int r;

	agent_markers_scan(&task->markers, line, false);
	r = agent_event_parse(line, &e, &task->failure);
	if (r > 0)
		return 0;
	if (r == 0)
		r = session_add_event(task->session, e, &task->failure);
	if (r == 0)
		r = agent_transcript_add(&task->transcript, e, &task->failure);
	return r < 0 ? r : tell(task, e, &task->failure);
}

static int on_stderr_line(struct str line, void *data)
{
	cloche_task *task = data;

	agent_markers_scan(&task->markers, line, true);
	progress(task, "stderr: ", line);
	return 0;
}

static void on_output(bool is_stderr, const void *data, size_t length, void *user)
{
	cloche_task *task = user;
	struct buf *kept = &task->output[is_stderr];
	struct str chunk = str_make(data, length);
	int r;

	task->truncated[is_stderr] |= chunk.n > buf_room(kept);
	if (buf_add_str(kept, str_prefix(chunk, buf_room(kept))) < 0)
		return;
	if (task->failure.code)
		return;
	r = lines_feed(
		&task->lines[is_stderr], chunk, is_stderr ? on_stderr_line : on_stdout_line, task);
	if (r < 0) {
		if (!task->failure.code)
			err_nomem(&task->failure);
		(void)cloche_task_stop(task);
	}
}

/* Runs the prepared agent. An event that could not be recorded ends the run: nothing may happen
 * that the context does not show. */
static int run_agent(cloche_task *task, cloche_run *run, struct cloche_err *err)
{
	int r;

	atomic_store(&task->run, run);
	if (atomic_load(&task->phase) == TASK_STOPPING)
		cloche_run_stop(run);
	cloche_run_on_output(run, on_output, task);
	cloche_run_on_warning(run, task->on_warning, task->on_warning_user);
	if (task->on_warning && cloche_session_info_of(task->session)->warning)
		tell_text(task->on_warning, cloche_session_info_of(task->session)->warning,
			task->on_warning_user);
	r = cloche_run_execute(run, err);
	if (r < 0)
		return r;
	r = lines_end(&task->lines[0], on_stdout_line, task);
	if (r == 0)
		r = lines_end(&task->lines[1], on_stderr_line, task);
	if (r < 0 && !task->failure.code)
		err_nomem(&task->failure);
	if (task->failure.code) {
		*err = task->failure;
		return err_wrap(err, -err->code, "record of the agent's output in %s",
			session_dir(task->session));
	}
	return 0;
}

static void classify(cloche_task *task)
{
	const cloche_run *run = atomic_load(&task->run);
	struct agent_ending ending = {.exit_code = run->told.exit_code,
		.timed_out = run->told.timed_out,
		.cancelled = run->told.stopped,
		.oom_killed = run->told.oom_killed};

	task->outcome =
		agent_outcome_classify(&ending, &task->transcript, &task->markers, &task->detail);
}

/* Finish the reply in the context, whatever happened. After an infrastructure failure (ran is
 * false) this is an error reply with what came. */
static int finish(cloche_task *task, const char *prompt, bool ran, struct cloche_err *err)
{
	struct session_reply reply;
	int r = 0;

	if (ran)
		classify(task);
	else
		task->outcome = AGENT_CONTAINER_FAILED;
	if (task->outcome == AGENT_SUCCESS)
		r = agent_transcript_response(&task->transcript, &task->response, err);
	else
		r = agent_transcript_error_summary(&task->transcript, &task->error_summary, err);
	if (r < 0)
		return r;
	reply = session_reply_from(
		&task->transcript, task->outcome, task->wall_ms, prompt, task->response);
	task->is_error = reply.is_error;
	return session_finish_reply(task->session, &reply, err);
}

static int prepare_buffers(cloche_task *task, struct cloche_err *err)
{
	uint64_t limit = task->sb->output_limit;
	size_t keep = limit ? (size_t)MIN(limit, (uint64_t)KEEP_OUTPUT) : KEEP_OUTPUT;
	int r = agent_transcript_init(&task->transcript, AGENT_TRANSCRIPT_MAX, err);

	if (r < 0)
		return r;
	task->have_transcript = true;
	for (int i = 0; i < 2; i++) {
		task->lines[i] = LINES_INIT(LINES_MAX_DEFAULT);
		task->output[i] = BUF_INIT(keep);
	}
	task->result_json = BUF_INIT(SESSION_FILE_MAX);
	return 0;
}

static int prepare(cloche_task *task, struct str prompt, bool no_room, cloche_run **ret,
	struct cloche_err *err)
{
	cloche_run *run = NULL;
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	int r = task_prepare_run(task, no_room, &run, err);

	if (r < 0)
		return r;
	o.stdin_data = prompt.n ? prompt.p : "";
	o.stdin_length = prompt.n;
	r = cloche_run_set_options(run, &o, err);
	if (r == 0)
		r = task_note_start(task, run, prompt, err);
	if (r < 0)
		cloche_run_free(run);
	else
		*ret = run;
	return r;
}

/* Run the agent without a room. Only if no room could be made, nothing has begun, and the user
 * allows it. */
static int run_without_room(cloche_task *task, struct str prompt, struct cloche_err *err)
{
	char text[sizeof(err->message) + 64];
	cloche_run *run = NULL;
	int r;

	snprintf(text, sizeof(text), "the agent runs without a sandbox: %s", err->message);
	if (task->on_warning)
		tell_text(task->on_warning, text, task->on_warning_user);
	drop_run(task);
	r = prepare(task, prompt, true, &run, err);
	return r < 0 ? r : run_agent(task, run, err);
}

static int execute(cloche_task *task, const void *prompt, size_t length, struct cloche_err *err)
{
	struct str text = str_make(prompt, length);
	_cleanup_(freep) char *request = str_dup(text);
	struct cloche_err later = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	uint64_t began;
	int r;

	if (!request)
		return err_nomem(err);
	if (str_trim(text).n == 0)
		return err_set(err, E_USAGE, "the prompt is empty");
	task->is_command = str_starts(text, STR("/"));
	r = prepare_buffers(task, err);
	if (r == 0)
		r = prepare(task, text, false, &run, err);
	if (r < 0)
		return r;
	r = session_begin_reply(task->session, request, err);
	if (r < 0) {
		cloche_run_free(run);
		return r;
	}
	began = clock_mono_usec();
	r = run_agent(task, run, err);
	/* What is refused to a room is not given without one. */
	if (r < 0 && r != -E_DENIED && r != -E_USAGE && task_may_do_without_room(task))
		r = run_without_room(task, text, err);
	task->wall_ms = (clock_mono_usec() - began) / USEC_PER_MSEC;
	if (finish(task, request, r == 0, &later) < 0 && r == 0) {
		*err = later;
		r = -later.code;
	}
	/* A failure here is only a warning: the context has all of it, too. */
	if (task_record_end(task, &later) < 0 && task->on_warning)
		tell_text(task->on_warning, later.message, task->on_warning_user);
	return r;
}

int cloche_task_execute(cloche_task *task, const void *prompt, size_t length, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT, later = CLOCHE_ERR_INIT;
	unsigned was = TASK_IDLE;
	int r;

	err = err ? err : &own;
	if (!atomic_compare_exchange_strong(&task->phase, &was, TASK_EXECUTING))
		return err_set(err, E_BUSY, "the task is executing already");
	reset(task);
	r = sandbox_member_begin(&task->member, err);
	if (r == 0) {
		r = execute(task, prompt, length, err);
		sandbox_member_end(&task->member);
	}
	if (task_make_result(task, r == 0, &later) < 0 && r == 0) {
		*err = later;
		r = -later.code;
	}
	atomic_store(&task->phase, TASK_IDLE);
	return r;
}

bool cloche_task_stop(cloche_task *task)
{
	unsigned was = TASK_EXECUTING;
	cloche_run *run;

	if (!atomic_compare_exchange_strong(&task->phase, &was, TASK_STOPPING) && was == TASK_IDLE)
		return false;
	atomic_fetch_add(&task->run_users, 1);
	run = atomic_load(&task->run);
	if (run)
		(void)cloche_run_stop(run);
	atomic_fetch_sub(&task->run_users, 1);
	return true;
}
