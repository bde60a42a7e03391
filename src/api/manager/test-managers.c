/* SPDX-License-Identifier: Apache-2.0 */
#include "api/manager/test-managers.h"

#include "client/test-job.h"

cloche_err err;

static void print_warning(const char *text, void *user)
{
	/* Limits cannot be had by everybody everywhere. */
	if (!strstr(text, " limit: "))
		printf("# %s\n", text);
}

void set_max_runs(cloche_manager *m, unsigned runs)
{
	cloche_manager_options options = CLOCHE_MANAGER_OPTIONS_INIT;

	options.max_runs = runs;
	must(cloche_manager_set_options(m, &options, &err) == 0);
}

void set_memory(cloche_sandbox *sb, uint64_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	must(cloche_sandbox_set(sb, "memory", text, &err) == 0);
}

void set_interval(cloche_manager *m, uint64_t milliseconds)
{
	cloche_manager_options options = CLOCHE_MANAGER_OPTIONS_INIT;

	options.cleanup_interval_ms = milliseconds;
	must(cloche_manager_set_options(m, &options, &err) == 0);
}

void set_lifetime(cloche_manager *m, uint64_t milliseconds)
{
	cloche_manager_options options = CLOCHE_MANAGER_OPTIONS_INIT;

	options.lifetime_ms = milliseconds;
	must(cloche_manager_set_options(m, &options, &err) == 0);
}

void clean_up_at_exit(cloche_manager *m)
{
	cloche_manager_options options = CLOCHE_MANAGER_OPTIONS_INIT;

	options.cleanup_at_exit = true;
	must(cloche_manager_set_options(m, &options, &err) == 0);
}

cloche_manager *open_manager(void)
{
	cloche_manager *m = NULL;

	if (cloche_manager_open(print_warning, NULL, &m, &err) < 0)
		tap_bail(__FILE__, __LINE__, err.message);
	set_max_runs(m, 0);
	set_interval(m, 0);
	must(cloche_sandbox_set(cloche_manager_defaults(m), "memory", "64m", &err) == 0);
	must(cloche_sandbox_set(cloche_manager_defaults(m), "limits", "best-effort", &err) == 0);
	return m;
}

/* Its id, in memory of the caller's. */
const char *create(cloche_manager *m, const char *run_id, char ret[64])
{
	cloche_instance *i = NULL;

	if (cloche_manager_create(m, cloche_manager_defaults(m), run_id, SECONDS(60), &i, &err) <
		0) {
		tap_fail("create: %s", err.message);
		return "";
	}
	snprintf(ret, 64, "%s", cloche_instance_id(i));
	cloche_instance_free(i);
	return ret;
}

/* Starts a command that stays. */
void occupy(const char *id)
{
	const char *const argv[] = {"sleep", "1000", NULL};
	cloche_instance *i = NULL;
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	cloche_run *run = NULL;

	o.detached = true;
	must(cloche_instance_open(id, &i, &err) == 0 &&
		cloche_run_new_in(i, argv, &run, &err) == 0 &&
		cloche_run_set_options(run, &o, &err) == 0);
	if (cloche_run_execute(run, &err) < 0)
		tap_fail("exec: %s", err.message);
	cloche_run_free(run);
	cloche_instance_free(i);
}

bool runs(const char *id)
{
	cloche_instance *i = NULL;
	bool running = cloche_instance_open(id, &i, NULL) == 0 &&
		       cloche_instance_refresh(i, NULL) == 0 &&
		       cloche_instance_info_of(i)->state == CLOCHE_INSTANCE_RUNNING;

	cloche_instance_free(i);
	return running;
}

bool is_gone(const char *id)
{
	cloche_instance *i = NULL;
	int r = cloche_instance_open(id, &i, NULL);

	cloche_instance_free(i);
	return r == -CLOCHE_E_NOT_FOUND;
}

bool becomes_gone(const char *id)
{
	for (int k = 0; k < 500 && !is_gone(id); k++)
		pause_ms(20);
	return is_gone(id);
}

static bool count_one(const cloche_managed *sandbox, void *user)
{
	++*(size_t *)user;
	return true;
}

size_t count(cloche_manager *m)
{
	size_t n = 0;

	must(cloche_manager_each(m, count_one, &n, &err) == 0);
	return n;
}
