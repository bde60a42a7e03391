/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a key and a variable with a sandbox, shows that a command sees the variable, and what the
 * operation log has of it all. */
#include <cloche/run.h>
#include <cloche/state.h>
#include <stdio.h>
#include <string.h>

static int set(const cloche_instance *sandbox, cloche_err *err)
{
	cloche_state *state = NULL;
	const void *value;
	size_t n;
	int r = cloche_state_open(sandbox, &state, err);

	if (r == 0)
		r = cloche_state_set(state, CLOCHE_STATE_ENV, "GREETING", 8, "hello", 5, err);
	if (r == 0)
		r = cloche_state_set(state, CLOCHE_STATE_STORAGE, "turns", 5, "1", 1, err);
	if (r == 0)
		r = cloche_state_set(state, CLOCHE_STATE_STORAGE, "turns", 5, "2", 1, err);
	if (r == 0)
		r = cloche_state_get(state, CLOCHE_STATE_STORAGE, "turns", 5, &value, &n, err);
	if (r == 0)
		printf("turns: %.*s\n", (int)n, (const char *)value);
	cloche_state_close(state);
	return r;
}

static int greet(const cloche_instance *sandbox, cloche_err *err)
{
	static const char *const argv[] = {"sh", "-c", "printf %s $GREETING", NULL};
	cloche_run *run = NULL;
	const cloche_result *end;
	int r = cloche_run_new_in(sandbox, argv, &run, err);

	if (r == 0)
		r = cloche_run_execute(run, err);
	if (r == 0) {
		end = cloche_run_result(run);
		printf("it says: %.*s\n", (int)end->stdout_length, (const char *)end->stdout_data);
	}
	cloche_run_free(run);
	return r;
}

static bool print(const cloche_operation *op, void *user)
{
	printf("%llu %s %.*s = %.*s\n", (unsigned long long)op->number, op->name,
		(int)op->subject_length, (const char *)op->subject, (int)op->object_length,
		(const char *)op->object);
	return true;
}

static int show(const cloche_instance *sandbox, cloche_err *err)
{
	cloche_oplog *log = NULL;
	int r = cloche_oplog_open(cloche_instance_id(sandbox), &log, err);

	if (r == 0)
		r = cloche_oplog_read(log, print, NULL, err);
	if (r == 0)
		printf("%llu bytes\n", (unsigned long long)cloche_oplog_size(log));
	cloche_oplog_free(log);
	return r;
}

int main(void)
{
	cloche_sandbox *configuration = cloche_sandbox_new();
	cloche_instance *sandbox = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (!configuration)
		return 1;
	r = cloche_sandbox_set(configuration, "limits", "best-effort", &err);
	if (r == 0)
		r = cloche_sandbox_set(configuration, "record", "ops", &err);
	if (r == 0)
		r = cloche_instance_create(configuration, NULL, NULL, &sandbox, &err);
	if (r == 0)
		r = set(sandbox, &err);
	if (r == 0)
		r = greet(sandbox, &err);
	if (r == 0)
		r = show(sandbox, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	if (sandbox) {
		(void)cloche_instance_remove(sandbox, true, NULL);
		(void)cloche_oplog_remove(cloche_instance_id(sandbox), NULL);
	}
	cloche_instance_free(sandbox);
	cloche_sandbox_free(configuration);
	return r < 0;
}
