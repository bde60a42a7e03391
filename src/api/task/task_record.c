/* SPDX-License-Identifier: Apache-2.0 */
/* What a full record of a sandbox says about an agent beside its command: which agent it was, its
 * prompt, and the outcome. */
#include "api/record/state.h"
#include "api/task/task.h"

enum { MAX_PROMPT = 64 << 10 };

int task_note_start(
	const cloche_task *task, cloche_run *run, struct str prompt, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(CTL_MAX_NOTE);
	struct jsonout o = {.b = &b};

	if (!sandbox_is_recorded(run->sb))
		return 0;
	jsonout_open(&o, "agent", '{');
	jsonout_text(&o, "driver", task->driver->name);
	jsonout_text(&o, "model",
		task->model ? task->model : cloche_session_info_of(task->session)->model);
	jsonout_number(&o, "bytes", prompt.n);
	jsonout_str(&o, "prompt", str_prefix(prompt, MAX_PROMPT));
	jsonout_close(&o, '}');
	run->note = o.error < 0 ? NULL : str_dup(buf_str(&b));
	return run->note ? 0 : err_nomem(err);
}

int task_record_end(const cloche_task *task, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(CTL_MAX_NOTE);
	_cleanup_(state_home_done) struct state_home home = STATE_HOME_INIT;
	_cleanup_json_ json_t *args = NULL;
	const cloche_run *run = atomic_load(&task->run);
	int r;

	if (!run || !run->told.is_recorded || !run->told.id[0])
		return 0;
	args = json_pack("{s:s, s:s?, s:I, s:f, s:I}", "outcome", agent_outcome_name(task->outcome),
		"detail", agent_detail_name(task->detail), "turns",
		(json_int_t)task->transcript.num_turns, "cost_usd", task->transcript.total_cost_usd,
		"duration_ms", (json_int_t)task_duration_ms(task));
	if (!args || json_text_write(&text, args, JSON_TEXT_COMPACT) < 0)
		return err_nomem(err);
	r = state_home_of_run(run->told.id, run->sb->record_sync, &home, err);
	return r < 0 ? r : state_home_add_event(&home, STATE_AGENT_END, buf_str(&text), err);
}
