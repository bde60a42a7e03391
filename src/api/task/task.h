/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A task's own state, shared by the files that make it up: task.c (life), task_prepare.c (the
 * sandbox that the driver needs), task_result.c (the result, and where it is). */

#include "agent/driver.h"
#include "agent/lines.h"
#include "agent/outcome.h"
#include "agent/transcript.h"
#include "api/run/run.h"
#include "api/task/event.h"
#include "session/store.h"
#include <cloche/task.h>

#include <stdatomic.h>

/* One variable, so that nobody can be told to stop between two. */
enum task_phase { TASK_IDLE, TASK_EXECUTING, TASK_STOPPING };

struct cloche_task {
	cloche_sandbox *sb;
	struct sandbox_member member; /* of a task that cloche_sandbox_create_task() made */
	struct agent_driver *driver;
	cloche_session *session;
	char *model, *effort, *system_prompt, *binary, *resume;
	unsigned max_turns;
	char *event_log, *network_log; /* paths; the files may not exist */
	char *usage_extra;             /* of told.usage */
	cloche_event_fn on_event;
	cloche_warning_fn on_progress, on_warning;
	void *on_event_user, *on_progress_user, *on_warning_user;

	atomic_uint phase; /* enum task_phase */
	/* of the current execution, or of the last one */
	_Atomic(cloche_run *) run;
	atomic_uint run_users;
	bool is_command; /* the prompt */
	bool have_transcript;
	struct agent_transcript transcript;
	struct agent_markers markers;
	struct lines lines[2]; /* stdout, stderr */
	struct buf output[2];
	bool truncated[2];         /* of output */
	struct cloche_err failure; /* an event that could not be recorded */
	uint64_t wall_ms;
	enum agent_outcome outcome;
	enum agent_detail detail;
	bool is_error; /* as in the reply */
	char *response, *error_summary;
	struct buf result_json;
	cloche_task_result told;
	cloche_task_paths paths;
};

/* Make the run from the caller's sandbox, with what the driver needs added, and the command line.
 * no_room: use the provider subprocess, whatever the sandbox says. */
_warn_unused_ int task_prepare_run(
	cloche_task *task, bool no_room, cloche_run **ret, struct cloche_err *err);
/* Return whether the run has failed because no room can be made, and the user allows it without
 * one. */
bool task_may_do_without_room(const cloche_task *task);

/* If the sandbox has a full record: note what the command is before it begins, and record how it
 * ended. */
_warn_unused_ int task_note_start(
	const cloche_task *task, cloche_run *run, struct str prompt, struct cloche_err *err);
_warn_unused_ int task_record_end(const cloche_task *task, struct cloche_err *err);

/* Fill task->told, and its document if the agent ran. */
_warn_unused_ int task_make_result(cloche_task *task, bool ran, struct cloche_err *err);

/* Set task->paths. */
_warn_unused_ int task_name_paths(cloche_task *task, struct cloche_err *err);

/* Return the time that the agent reports, or else the time that passed. */
static inline uint64_t task_duration_ms(const cloche_task *task)
{
	return task->transcript.duration_ms ? task->transcript.duration_ms : task->wall_ms;
}

DEFINE_CLEANUP(cloche_task, cloche_task_free)
