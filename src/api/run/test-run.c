/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface as a program of somebody else uses it: run, stop from another thread, a task
 * with an agent that is a script. The agent here is a stand-in for a vendor's program; the real one
 * runs in the demonstration. */
#include "client/test-job.h"

#include <cloche/code.h>
#include <cloche/network_log.h>
#include <cloche/run.h>
#include <cloche/session.h>
#include <cloche/state.h>
#include <cloche/task.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static cloche_err err;
static char dir[TAP_DIR_BYTES];

static cloche_run *new_run(const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_run *run = NULL;

	must(sb && cloche_run_new(sb, argv, &run, &err) == 0);
	cloche_sandbox_free(sb);
	return run;
}

static struct str output(const cloche_run *run)
{
	const cloche_result *end = cloche_run_result(run);

	return str_make(end->stdout_data, end->stdout_length);
}

static void test_a_run_and_its_result(void)
{
	cloche_run *run = new_run("cat; echo err >&2; exit 9");
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;

	o.stdin_data = "bytes\n";
	o.stdin_length = 6;
	must(cloche_run_set_options(run, &o, &err) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 9);
	check_str(output(run), "bytes\n");
	check_int((int)cloche_run_result(run)->stderr_length, 4);
	check_int((int)cloche_run_result(run)->size, sizeof(cloche_result));
	check(!cloche_run_result(run)->stopped && !cloche_run_result(run)->timed_out);
	check_z(cloche_run_result(run)->provider, "native");
	check(strncmp(cloche_run_result(run)->id, "sandbox-", 8) == 0);
	check_int(cloche_run_execute(run, &err), -CLOCHE_E_USAGE);
	cloche_run_free(run);
}

/* Make and execute a run with a mount. */
static int run_with_a_mount(void)
{
	const char *argv[] = {"true", NULL};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_run *run = NULL;
	int r;

	must(sb);
	r = cloche_sandbox_add_mount(sb, dir, "/mnt", true, &err);
	if (r == 0)
		r = cloche_run_new(sb, argv, &run, &err);
	if (r == 0)
		r = cloche_run_execute(run, &err);
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return r;
}

static void test_a_lack_of_descriptors_is_no_lack_of_memory(void)
{
	struct rlimit old, now;
	int next = dup(0), r = -1;

	must(next >= 0 && getrlimit(RLIMIT_NOFILE, &old) == 0);
	close(next);
	now = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max};
	for (; r < 0 && now.rlim_cur < (rlim_t)next + 64; now.rlim_cur++) {
		must(setrlimit(RLIMIT_NOFILE, &now) == 0);
		r = run_with_a_mount();
		if (r < 0)
			check_int(r, -CLOCHE_E_SYSTEM);
	}
	must(setrlimit(RLIMIT_NOFILE, &old) == 0);
	check_int(r, 0);
	check(now.rlim_cur > (rlim_t)next + 2);
	check_int(dup(0), next);
	close(next);
}

static void test_what_cannot_start_is_a_result(void)
{
	const char *argv[] = {"no-such-command", NULL};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_run *run = NULL;

	must(sb && cloche_run_new(sb, argv, &run, &err) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 127);
	check(strstr(cloche_run_result(run)->start_failure, "no-such-command") != NULL);
	cloche_run_free(run);
	cloche_sandbox_free(sb);
}

static cloche_run *new_code(const char *name, enum cloche_code_kind kind, const char *code)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	const cloche_code c = {sizeof(c), name, kind, code, strlen(code), NULL};
	cloche_run *run = NULL;

	must(sb && cloche_run_new_code(sb, &c, &run, &err) == 0);
	cloche_sandbox_free(sb);
	return run;
}

static void test_code_is_a_run(void)
{
	cloche_run *run = new_code("shell", CLOCHE_CODE_PROGRAM, "cat; echo out; exit 3");
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	size_t n;

	/* Its input is taken. */
	o.stdin_data = "x";
	o.stdin_length = 1;
	check_int(cloche_run_set_options(run, &o, &err), -CLOCHE_E_USAGE);
	o.stdin_data = NULL;
	o.stdin_fd = o.tty_fd = 0;
	check_int(cloche_run_set_options(run, &o, &err), 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 3);
	check_str(output(run), "out\n");
	check(!cloche_code_result(run, 0, "text", &n, NULL) && n == 0);
	cloche_run_free(run);

	run = new_code("shell", CLOCHE_CODE_PROGRAM, "echo out");
	o = (cloche_run_options)CLOCHE_RUN_OPTIONS_INIT;
	o.detached = true;
	check_int(cloche_run_set_options(run, &o, &err), 0);
	check_int(cloche_run_execute(run, &err), -CLOCHE_E_USAGE);
	cloche_run_free(run);
}

static void test_an_expression_has_a_value(void)
{
	cloche_run *run = new_code(
		"python", CLOCHE_CODE_EXPRESSION, "[print('out'), {'a': [1, 0.1]}, '\\0'][1:]");
	const char *text;
	bool cut = true;
	size_t n;

	check(!cloche_code_result(run, 0, "text", &n, NULL) && n == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 0);
	check_str(output(run), "out\n");
	text = cloche_code_result(run, 0, "text", &n, &cut);
	check(!cut);
	check_str(str_make(text, n), "[{'a': [1, 0.1]}, '\\x00']");
	check_z(cloche_code_result(run, 0, "json", &n, NULL), "[{\"a\": [1, 0.1]}, \"\\u0000\"]");
	check(!cloche_code_result(run, 0, "repr", &n, NULL));
	cloche_run_free(run);
}

/* The names of the events, and the arguments of some, without what differs each time. */
static bool note_event(const cloche_operation *op, void *user)
{
	struct buf *b = user;

	if (strncmp(op->name, "fs.", 3) == 0)
		return true;
	must(buf_printf(b, "%s%s%s%s\n", op->name, strstr(op->json, "(code)") ? " (code)" : "",
		     strstr(op->json, "\"value\":\"42\",\"stdout\":\"out\\n\"") ? " 42" : "",
		     strstr(op->json, "linecache") || strstr(op->json, "\\u0000") ? " frame"
										  : "") == 0);
	return true;
}

static void test_a_value_is_on_record(void)
{
	static const char code[] = "print('out') or 42";
	const cloche_code c = {
		sizeof(c), "python", CLOCHE_CODE_EXPRESSION, code, strlen(code), NULL};
	_cleanup_(buf_donep) struct buf events = BUF_INIT(4096);
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_oplog *log = NULL;
	cloche_run *run = NULL;

	setenv("CLOCHE_STATE_DIR", dir, 1);
	must(sb && cloche_sandbox_set(sb, "record", "full", &err) == 0);
	must(cloche_run_new_code(sb, &c, &run, &err) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_str(output(run), "out\n");
	must(cloche_oplog_open(cloche_run_result(run)->id, &log, &err) == 0);
	must(cloche_oplog_read(log, note_event, &events, &err) == 0);
	check(strstr(buf_cstr(&events), "exec.start (code)\nexec.end\n"));
	check(strstr(buf_cstr(&events), "code.call 42\n"));
	cloche_oplog_free(log);
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	unsetenv("CLOCHE_STATE_DIR");
}

static void test_code_that_cannot_run(void)
{
	static const struct {
		cloche_code code;
		int error;
	} rows[] = {
		{{sizeof(cloche_code), "perl", CLOCHE_CODE_PROGRAM, "", 0, NULL}, CLOCHE_E_USAGE},
		{{sizeof(cloche_code), "shell", CLOCHE_CODE_EXPRESSION, "", 0, NULL},
			CLOCHE_E_USAGE},
		{{sizeof(cloche_code), "python", CLOCHE_CODE_PROGRAM, "", 0, "ctx"},
			CLOCHE_E_USAGE},
		{{sizeof(cloche_code), "shell", CLOCHE_CODE_PROGRAM, "", CLOCHE_CODE_MAX + 1, NULL},
			CLOCHE_E_LIMIT},
		{{0, "shell", CLOCHE_CODE_PROGRAM, "", 0, NULL}, CLOCHE_E_USAGE},
	};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_run *run = NULL;

	must(sb);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_int(cloche_run_new_code(sb, &rows[i].code, &run, &err), -rows[i].error);
	check(!run);
	cloche_sandbox_free(sb);
}

static void *stop_soon(void *run)
{
	usleep(200 * 1000);
	return cloche_run_stop(run) ? run : NULL;
}

static void test_stop_comes_from_another_thread(void)
{
	cloche_run *run = new_run("echo before; sleep 60");
	pthread_t thread;
	void *stopped;

	must(pthread_create(&thread, NULL, stop_soon, run) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	must(pthread_join(thread, &stopped) == 0);
	check(stopped == run);
	check(cloche_run_result(run)->stopped);
	check_str(output(run), "before\n");
	check_int(cloche_run_result(run)->signal, SIGTERM);
	cloche_run_free(run);
}

static void test_what_has_ended_cannot_be_stopped(void)
{
	cloche_run *run = new_run("exit 3");

	check_int(cloche_run_execute(run, &err), 0);
	check(!cloche_run_stop(run) && !cloche_run_signal(run, SIGTERM) && !cloche_run_leave(run));
	check(!cloche_run_result(run)->stopped);
	check_int(cloche_run_result(run)->exit_code, 3);
	cloche_run_free(run);
}

static void test_a_stop_before_the_start_is_not_lost(void)
{
	cloche_run *run = new_run("sleep 60");

	cloche_run_stop(run);
	(void)cloche_run_execute(run, &err);
	check(cloche_run_result(run)->stopped);
	/* It hears TERM like any other: the grace period does not have to pass. */
	check(cloche_run_result(run)->signal != SIGKILL);
	cloche_run_free(run);
}

static void test_two_runs_at_once(void)
{
	enum { RUNS = 4 };
	cloche_run *runs[RUNS];
	pthread_t threads[RUNS];

	for (int i = 0; i < RUNS; i++) {
		runs[i] = new_run("sleep 60");
		must(pthread_create(&threads[i], NULL, stop_soon, runs[i]) == 0);
	}
	for (int i = 0; i < RUNS; i++) {
		check_int(cloche_run_execute(runs[i], &err) >= 0 ||
				  cloche_run_result(runs[i])->stopped,
			1);
		must(pthread_join(threads[i], NULL) == 0);
		cloche_run_free(runs[i]);
	}
}

/* --- a task --- */

static const char agent[] =
	"#!/bin/sh\n"
	"read -r prompt\n"
	"echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\",\"model\":\"m\"}'\n"
	"case \"$prompt\" in\n"
	"*hang*) echo '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\","
	"\"text\":\"partial\"}]}}'; sleep 60;;\n"
	"*fail*) echo 'API Error: 400' >&2; exit 1;;\n"
	"esac\n"
	"printf "
	"'{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"key "
	"%s\"}]}}\\n' "
	"\"$ANTHROPIC_API_KEY\"\n"
	"echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":2,"
	"\"total_cost_usd\":0.25,\"duration_ms\":12,\"result\":\"done\","
	"\"usage\":{\"output_tokens\":5,\"service_tier\":\"standard\"},\"session_id\":\"s-1\"}'\n";

#define REAL_KEY "sk-ant-0123456789abcdefghijklmnop"

static cloche_task *new_task_of(cloche_sandbox *sb, const char *context)
{
	_cleanup_(freep) char *path = fs_join(dir, context), *program = fs_join(dir, "claude");
	cloche_task *task = NULL;

	must(path && program && sb);
	must(fs_write_atomic(AT_FDCWD, program, str_from(agent), 0755, false, &err) == 0);
	must(chmod(program, 0755) == 0);
	if (cloche_task_new(sb, NULL, path, "ctx-1", &task, &err) < 0)
		tap_fail("%s", err.message);
	must(task && cloche_task_set(task, "agent-binary", program, &err) == 0);
	cloche_sandbox_free(sb);
	return task;
}

static cloche_task *new_task(const char *context)
{
	return new_task_of(cloche_sandbox_new(), context);
}

static void execute(cloche_task *task, const char *prompt)
{
	err = (cloche_err)CLOCHE_ERR_INIT;
	if (cloche_task_execute(task, prompt, strlen(prompt), &err) < 0)
		tap_fail("execute: %s", err.message);
}

static void note_agent_event(cloche_event *event, void *user)
{
	const char *json = cloche_event_json(event);

	check(json && json[0] == '{');
	must(buf_printf(user, "%s:%s ", event->type_name, event->text[0] ? "text" : "") == 0);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void test_a_task_succeeds_and_is_kept(void)
{
	_cleanup_(freep) char *path = fs_join(dir, "one");
	cloche_session *session = NULL;
	cloche_task *task = new_task("one");
	_cleanup_(buf_donep) struct buf typed = BUF_INIT(256);

	check(!is_there(cloche_task_paths_of(task)->event_log));
	check(!is_there(cloche_task_paths_of(task)->network_log));
	cloche_task_on_event(task, note_agent_event, &typed);
	execute(task, "work\n");
	check_str(buf_str(&typed), "system: assistant:text result:text ");
	cloche_task_on_event(task, NULL, NULL);
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	check_z(cloche_task_result_of(task)->session_id, "s-1");
	check_int(cloche_task_result_of(task)->turns, 2);
	check(cloche_task_result_of(task)->response &&
		strncmp(cloche_task_result_of(task)->response, "key ", 4) == 0);
	check(cloche_task_result_of(task)->response &&
		!strstr(cloche_task_result_of(task)->response, REAL_KEY));
	check(cloche_task_result_of(task)->json &&
		!strstr(cloche_task_result_of(task)->json, REAL_KEY));
	execute(task, "again\n");
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	check_int(cloche_task_set(task, "resume", "last", &err), 0);
	check_int(cloche_task_set(task, "max-turns", "3", &err), 0);
	check_int(cloche_task_set(task, "max-turns", "0", &err), -CLOCHE_E_USAGE);
	check_int(cloche_task_set(task, "no-such", "3", &err), -CLOCHE_E_USAGE);
	cloche_task_free(task);
	must(cloche_session_load(path, &session, &err) == 0);
	check_z(cloche_session_info_of(session)->context_id, "ctx-1");
	check_int(cloche_session_info_of(session)->reply_count, 2);
	check_z(cloche_session_info_of(session)->id_for_resume, "s-1");
	cloche_session_free(session);
}

static void test_what_a_task_left(void)
{
	_cleanup_(freep) char *path = fs_join(dir, "five");
	cloche_task *task = new_task("five");
	cloche_event_stream *stream = cloche_event_stream_new(NULL, NULL);
	cloche_network_log *log = NULL;
	cloche_session *session = NULL;

	must(stream && path);
	check(cloche_task_result_of(task)->usage.output_tokens == 0);
	execute(task, "work\n");
	check_int(cloche_task_result_of(task)->usage.input_tokens, 0);
	check_int(cloche_task_result_of(task)->usage.output_tokens, 5);
	check_z(cloche_task_result_of(task)->usage.extra, "{\"service_tier\":\"standard\"}");
	must(cloche_session_load(cloche_task_paths_of(task)->context_dir, &session, &err) == 0);
	check_int(cloche_session_info_of(session)->reply_count, 1);
	check_z(cloche_session_info_of(session)->id_for_resume, "s-1");
	/* It does not change with the task. */
	execute(task, "work\n");
	check_int(cloche_session_info_of(session)->reply_count, 1);
	cloche_session_free(session);
	must(cloche_session_load(cloche_task_paths_of(task)->context_dir, &session, &err) == 0);
	check_int(cloche_session_info_of(session)->reply_count, 2);
	cloche_session_free(session);
	must(is_there(cloche_task_paths_of(task)->event_log));
	must(is_there(cloche_task_paths_of(task)->network_log));
	check(str_starts(str_from(cloche_task_paths_of(task)->event_log), str_from(path)));
	must(cloche_event_stream_feed_file(stream, cloche_task_paths_of(task)->event_log, &err) ==
		0);
	check_int(cloche_event_stream_summary(stream)->events, 6);
	must(cloche_network_log_open(cloche_task_paths_of(task)->network_log, &log, &err) == 0);
	cloche_network_log_close(log);
	cloche_event_stream_free(stream);
	cloche_task_free(task);
}

static void test_a_task_without_a_network(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_task *task;

	must(sb && cloche_sandbox_set(sb, "net", "none", &err) == 0);
	task = new_task_of(sb, "six");
	execute(task, "work\n");
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	check(is_there(cloche_task_paths_of(task)->event_log));
	check(!is_there(cloche_task_paths_of(task)->network_log));
	cloche_task_free(task);
}

static void *stop_task_soon(void *task)
{
	usleep(700 * 1000);
	cloche_task_stop(task);
	return NULL;
}

static void test_a_stopped_task_keeps_what_came(void)
{
	cloche_task *task = new_task("two");
	pthread_t thread;

	must(pthread_create(&thread, NULL, stop_task_soon, task) == 0);
	execute(task, "hang\n");
	must(pthread_join(thread, NULL) == 0);
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_CONTAINER_FAILED);
	check_z(cloche_task_result_of(task)->detail, "cancelled");
	check_z(cloche_task_result_of(task)->session_id, "s-1");
	execute(task, "fail\n");
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SESSION_CORRUPTED);
	cloche_task_free(task);
}

static void test_a_context_is_used_by_one_task_at_a_time(void)
{
	_cleanup_(freep) char *path = fs_join(dir, "three");
	cloche_task *task = new_task("three"), *other = NULL;
	cloche_sandbox *sb = cloche_sandbox_new();

	check_int(cloche_task_new(sb, NULL, path, NULL, &other, &err), -CLOCHE_E_BUSY);
	cloche_task_free(task);
	check_int(cloche_task_new(sb, NULL, path, NULL, &other, &err), 0);
	cloche_task_free(other);
	check_int(cloche_task_new(sb, "nobody", path, NULL, &other, &err), -CLOCHE_E_USAGE);
	cloche_sandbox_free(sb);
}

static void test_a_missing_credential_is_named(void)
{
	cloche_task *task = new_task("four");

	unsetenv("ANTHROPIC_API_KEY");
	check_int(cloche_task_execute(task, "x", 1, &err), -CLOCHE_E_CONFIG);
	check(strstr(err.message, "ANTHROPIC_API_KEY") && err.hint[0]);
	cloche_task_free(task);
}

int main(void)
{
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (native_provider.probe(&native_provider, &(struct provider_about){0}, &why) < 0) {
		printf("1..0 # SKIP no rooms here: %s\n", why.message);
		return 0;
	}
	set_up();
	set_runtime("run");
	tap_dir(dir);
	setenv("ANTHROPIC_API_KEY", REAL_KEY, 1);
	run_test(test_a_run_and_its_result);
	run_test(test_a_lack_of_descriptors_is_no_lack_of_memory);
	run_test(test_what_cannot_start_is_a_result);
	run_test(test_code_is_a_run);
	run_test(test_an_expression_has_a_value);
	run_test(test_a_value_is_on_record);
	run_test(test_code_that_cannot_run);
	run_test(test_stop_comes_from_another_thread);
	run_test(test_what_has_ended_cannot_be_stopped);
	run_test(test_a_stop_before_the_start_is_not_lost);
	run_test(test_two_runs_at_once);
	run_test(test_a_task_succeeds_and_is_kept);
	run_test(test_what_a_task_left);
	run_test(test_a_task_without_a_network);
	run_test(test_a_stopped_task_keeps_what_came);
	run_test(test_a_context_is_used_by_one_task_at_a_time);
	run_test(test_a_missing_credential_is_named);
	(void)fs_remove_tree(AT_FDCWD, dir);
	(void)fs_remove_tree(AT_FDCWD, base);
	(void)fs_remove_tree(AT_FDCWD, runtime);
	return tap_done();
}
