/* SPDX-License-Identifier: Apache-2.0 */
#include "api/instance/planted.h"
#include "api/manager/manager.h"
#include "api/task/task.h"
#include "base/clock.h"
#include "fs/fs.h"

enum { INDENT = 2, MIB = 1 << 20 };

/* Return an empty text if there is none, so that readers need not handle null as well. */
static json_t *text_or_empty(const char *s)
{
	return json_text(s ? s : "");
}

static json_t *sandbox_object(const cloche_run *run)
{
	const cloche_result *end = &run->told;

	return json_pack("{s:s, s:s, s:s, s:{s:I, s:I, s:I}, s:I}", "provider", end->provider,
		"isolation", end->isolation, "id", end->id, "usage", "cpu_ms",
		(json_int_t)end->cpu_ms, "memory_peak_bytes", (json_int_t)end->memory_peak_bytes,
		"pids_peak", (json_int_t)end->pids_peak, "duration_ms",
		(json_int_t)end->duration_ms);
}

/* The same with AgentGate's names and units. An engine's own work inside the room counts as the
 * room's, so what it used is divided by the time in which the sandbox was made and removed, too. */
static json_t *sandbox_info(const cloche_run *run)
{
	const cloche_result *end = &run->told;
	json_t *usage = json_null();
	json_t *container = status_container(end->provider, end->id);

	if (end->cpu_ms > 0 || end->memory_peak_bytes > 0)
		usage = json_pack("{s:f, s:f}", "cpu_percent",
			100.0 * (double)end->cpu_ms * USEC_PER_MSEC /
				(double)MAX(run->lasted_usec, (uint64_t)1),
			"memory_mb", (double)end->memory_peak_bytes / MIB);
	if (json_is_null(container))
		container = json_text(end->id);
	return json_pack("{s:s, s:o, s:o, s:I}", "provider", end->provider, "container_id",
		container, "resource_usage", usage, "duration_ms", (json_int_t)end->duration_ms);
}

static int task_make_json(cloche_task *task, struct cloche_err *err)
{
	const struct agent_transcript *t = &task->transcript;
	const cloche_run *run = atomic_load(&task->run);
	const cloche_result *end = &run->told;
	_cleanup_json_ json_t *doc = json_pack(
		"{s:s, s:s?, s:b, s:o, s:o, s:o, s:O, s:I, s:f, s:I, s:o, s:o, s:o, s:b, "
		"s:b, "
		"s:i, s:I, s:I, "
		"s:o, s:s, s:o, s:o, s:o, s:{s:I, s:I}}",
		"outcome", agent_outcome_name(task->outcome), "detail",
		agent_detail_name(task->detail), "is_error", (int)task->is_error, "session_id",
		text_or_empty(agent_transcript_session_id(t)), "response_text",
		text_or_empty(task->response), "error_summary", json_text(task->error_summary),
		"events", t->events, "duration_ms", (json_int_t)task->told.duration_ms,
		"total_cost_usd", t->total_cost_usd, "num_turns", (json_int_t)t->num_turns, "usage",
		agent_usage(t->usage), "stdout", json_utf8(buf_str(&task->output[0])), "stderr",
		json_utf8(buf_str(&task->output[1])), "stdout_truncated", (int)task->truncated[0],
		"stderr_truncated", (int)task->truncated[1], "exit_code", end->exit_code,
		"web_search_count", (json_int_t)t->web_search_count, "web_fetch_count",
		(json_int_t)t->web_fetch_count, "context_dir",
		json_text(session_dir(task->session)), "execution_context_id",
		cloche_session_info_of(task->session)->context_id, "sandbox", sandbox_object(run),
		"sandbox_info", sandbox_info(run), "planted", planted_list(end->id), "network",
		"allowed", (json_int_t)end->network_allowed, "blocked",
		(json_int_t)end->network_blocked);

	if (!doc || json_text_write(&task->result_json, doc, INDENT) < 0 ||
		!buf_cstr(&task->result_json))
		return err_nomem(err);
	task->told.json = buf_data(&task->result_json);
	return 0;
}

static int task_tell(cloche_task *task, struct cloche_err *err)
{
	const struct agent_transcript *t = &task->transcript;
	const cloche_run *run = atomic_load(&task->run);
	cloche_task_result *told = &task->told;

	*told = (cloche_task_result){.size = sizeof(*told),
		.outcome = (enum cloche_outcome)task->outcome,
		.outcome_name = agent_outcome_name(task->outcome),
		.exit_status = agent_outcome_exit_status(task->outcome),
		.detail = agent_detail_name(task->detail),
		.is_error = task->is_error,
		.response = task->response,
		.error_summary = task->error_summary,
		.stdout_truncated = task->truncated[0],
		.stderr_truncated = task->truncated[1],
		.turns = t->num_turns,
		.duration_ms = task_duration_ms(task),
		.cost_usd = t->total_cost_usd,
		.run = run ? &run->told : NULL};
	if (!task->have_transcript)
		return 0;
	told->session_id = agent_transcript_session_id(t);
	return event_usage(t, &task->usage_extra, &told->usage, err);
}

int task_make_result(cloche_task *task, bool ran, struct cloche_err *err)
{
	int r = task_tell(task, err);

	return r == 0 && ran ? task_make_json(task, err) : r;
}

int task_name_paths(cloche_task *task, struct cloche_err *err)
{
	const char *dir = session_dir(task->session), *asked = task->sb->network_log;

	task->event_log = fs_join(dir, SESSION_EVENTS);
	task->network_log = asked ? strdup(asked) : fs_join(dir, "network-sandbox.log");
	if (!task->event_log || !task->network_log)
		return err_nomem(err);
	task->paths = (cloche_task_paths){.size = sizeof(task->paths),
		.context_dir = dir,
		.context_id = cloche_session_info_of(task->session)->context_id,
		.event_log = task->event_log,
		.network_log = task->network_log};
	return 0;
}

const cloche_task_paths *cloche_task_paths_of(const cloche_task *task)
{
	return &task->paths;
}

const cloche_task_result *cloche_task_result_of(const cloche_task *task)
{
	return &task->told;
}
