/* SPDX-License-Identifier: Apache-2.0 */
/* Managers by the public interface, of threads and of several at a time. */
#include "api/manager/test-managers.h"
#include "client/test-job.h"
#include "manager/memory.h"

#include <jansson.h>

enum { THREADS = 8, FEW = 2, LIFETIME_MS = 4000 };
#define SECONDS(n) ((uint64_t)(n)*1000)
#define FOR_EVER UINT64_MAX

static json_t *status_of(cloche_manager *m, cloche_status **ret)
{
	json_t *all;

	must(cloche_status_read(m, NULL, 0, ret, &err) == 0);
	all = json_loads((*ret)->json, 0, NULL);
	must(all);
	return all;
}

/* --- a manager --- */

static bool see_one(const cloche_managed *sandbox, void *user)
{
	check_z(sandbox->id, user);
	check_z(sandbox->run_id, "run 7");
	check_z(sandbox->name, "by-name");
	check(sandbox->running);
	check(sandbox->created_us + 60 * USEC_PER_SEC > clock_real_usec());
	return true;
}

static void what_is_made_is_tracked_until_it_is_destroyed(void)
{
	cloche_manager *m = open_manager();
	cloche_sandbox *sb = cloche_manager_configure(m);
	cloche_instance *i = NULL;
	char id[64];

	must(sb && cloche_sandbox_set(sb, "name", "by-name", &err) == 0);
	must(cloche_manager_create(m, sb, "run 7", 0, &i, &err) == 0);
	cloche_sandbox_free(sb);
	snprintf(id, sizeof(id), "%s", cloche_instance_id(i));
	must(cloche_instance_refresh(i, &err) == 0);
	check_z(cloche_instance_info_of(i)->provider, "native");
	check_z(cloche_instance_label(i, "cloche.run-id"), "run 7");
	check_z(cloche_instance_label(i, "cloche.lifetime"), "3600");
	check(cloche_instance_label(i, "cloche.manager"));
	check(strstr(cloche_instance_info_of(i)->json, ": 3600000"));
	cloche_instance_free(i);
	must(cloche_manager_each(m, see_one, id, &err) == 0);
	check_int(count(m), 1);
	check_int(cloche_manager_destroy(m, id, &err), 0);
	check_int(count(m), 0);
	check(is_gone(id));
	check_int(cloche_manager_destroy(m, id, &err), -CLOCHE_E_NOT_FOUND);
	/* For ever, in words of a program that does not know of UINT64_MAX's meaning. */
	set_lifetime(m, UINT64_MAX - 1);
	must(cloche_manager_create(m, cloche_manager_defaults(m), NULL, 0, &i, &err) == 0);
	must(cloche_instance_refresh(i, &err) == 0);
	check_z(cloche_instance_label(i, "cloche.lifetime"), "18446744073709552");
	must(cloche_manager_destroy(m, cloche_instance_id(i), &err) == 0);
	cloche_instance_free(i);
	cloche_manager_close(m);
}

static void what_is_wrong_is_refused(void)
{
	cloche_manager *m = open_manager();
	cloche_sandbox *sb = cloche_manager_configure(m);
	cloche_instance *i = NULL;
	char run_id[200];

	memset(run_id, 'a', sizeof(run_id));
	run_id[129] = '\0';
	check_int(cloche_manager_create(m, sb, run_id, 0, &i, &err), -CLOCHE_E_USAGE);
	check_int(cloche_manager_create(m, sb, "", 0, &i, &err), -CLOCHE_E_USAGE);
	check_int(cloche_manager_create(m, sb, "a\nb", 0, &i, &err), -CLOCHE_E_USAGE);
	must(cloche_sandbox_set(sb, "provider", "/bin/false", &err) == 0);
	check(cloche_manager_create(m, sb, "r", 0, &i, &err) < 0);
	check(strstr(err.message, "false"));
	check_int(count(m), 0);
	check(becomes_zero(count_dirs));
	/* What failed holds no place. */
	set_max_runs(m, 1);
	check_int(cloche_manager_enter(m, sb, 0, &err), 0);
	cloche_manager_leave(m, sb);
	cloche_sandbox_free(sb);
	cloche_manager_close(m);
}

/* INV-LIMITS-OR-REFUSAL, with a provider that never limits cpus. */
static void only_a_default_limit_may_be_missing(void)
{
	cloche_manager *m = NULL;

	must(cloche_manager_open(NULL, NULL, &m, &err) == 0);
	for (int asked = 0; asked < 3; asked++) {
		cloche_sandbox *sb = cloche_manager_configure(m);
		cloche_instance *i = NULL;
		int r;

		must(sb && cloche_sandbox_set(sb, "provider", "subprocess", &err) == 0);
		set_memory(sb, 64 << 20);
		if (asked == 1)
			must(cloche_sandbox_set(sb, "cpus", "2", &err) == 0);
		else if (asked == 2)
			must(cloche_sandbox_set(sb, "limits", "strict", &err) == 0);
		r = cloche_manager_create(m, sb, NULL, 0, &i, &err);
		check_int(r, asked ? -CLOCHE_E_LIMITS_UNAVAILABLE : 0);
		cloche_instance_free(i);
		cloche_sandbox_free(sb);
	}
	check_int(cloche_manager_cleanup(m, &err), 0);
	cloche_manager_close(m);
}

static void why_none_could_be_made_stays_known(void)
{
	cloche_manager *m = open_manager();
	cloche_status *s = NULL;
	cloche_instance *i = NULL;
	const char *last;
	json_t *all;

	must(cloche_sandbox_set(cloche_manager_defaults(m), "provider", "/bin/false", &err) == 0);
	check(cloche_manager_create(m, cloche_manager_defaults(m), "r", 0, &i, &err) < 0);
	all = status_of(m, &s);
	last = json_string_value(json_object_get(json_object_get(all, "manager"), "lastError"));
	check(last && strstr(last, err.message));
	json_decref(all);
	cloche_status_free(s);
	cloche_manager_close(m);
}

static void those_of_a_run_are_destroyed_together(void)
{
	cloche_manager *m = open_manager();
	char a[64], b[64], c[64];
	size_t n = 0;

	create(m, "one", a);
	create(m, "two", b);
	create(m, "one", c);
	occupy(a);
	check_int(cloche_manager_destroy_run(m, "one", &n, &err), 0);
	check_int(n, 2);
	check(is_gone(a) && is_gone(c) && runs(b));
	check_int(count(m), 1);
	check_int(cloche_manager_destroy_run(m, "none", &n, &err), 0);
	check_int(n, 0);
	create(m, NULL, a);
	check_int(cloche_manager_cleanup(m, &err), 0);
	check(is_gone(a) && is_gone(b));
	check_int(count(m), 0);
	cloche_manager_close(m);
}

static void managers_leave_each_others_alone(void)
{
	cloche_manager *one = open_manager(), *two = open_manager();
	char a[64], b[64];

	create(one, "r", a);
	create(two, "r", b);
	check_int(cloche_manager_destroy(two, a, &err), -CLOCHE_E_NOT_FOUND);
	check_int(cloche_manager_destroy_run(two, "r", NULL, &err), 0);
	check(is_gone(b) && runs(a));
	check_int(cloche_manager_cleanup(two, &err), 0);
	check(runs(a));
	cloche_manager_close(two);
	check_int(cloche_manager_cleanup(one, &err), 0);
	cloche_manager_close(one);
}

static void what_cannot_be_destroyed_is_tried_again(void)
{
	cloche_manager *m = open_manager();
	cloche_status *s = NULL;
	char id[64], path[300], kept[310];
	cloche_instance *i = NULL;
	json_t *record, *all;
	FILE *f;

	create(m, "r", id);
	must(cloche_instance_open(id, &i, &err) == 0 && cloche_instance_refresh(i, &err) == 0);
	record = json_loads(cloche_instance_info_of(i)->json, 0, NULL);
	snprintf(path, sizeof(path), "%s/%s/owned", runtime, id);
	snprintf(kept, sizeof(kept), "%s.kept", path);
	must(rename(path, kept) == 0);
	f = fopen(path, "w");
	must(f && fputs("native\nno line of a control group\n", f) >= 0 && fclose(f) == 0);
	must(kill((pid_t)json_integer_value(json_object_get(record, "pid")), SIGKILL) == 0);
	for (int k = 0; k < 500 && runs(id); k++)
		pause_ms(20);
	check(cloche_manager_destroy(m, id, &err) < 0);
	check(strstr(err.message, "cannot be removed"));
	check_int(count(m), 1);
	check(cloche_manager_collect(m, &err) < 0);
	all = status_of(m, &s);
	check(json_is_string(json_object_get(json_object_get(all, "manager"), "lastError")));
	json_decref(all);
	cloche_status_free(s);
	must(rename(kept, path) == 0);
	check_int(cloche_manager_collect(m, &err), 0);
	check(is_gone(id));
	check_int(count(m), 0);
	json_decref(record);
	cloche_instance_free(i);
	cloche_manager_close(m);
}

/* --- how many at a time --- */

static atomic_int running_now, running_most, failures;

static void *make_and_destroy(void *arg)
{
	cloche_manager *m = arg;

	for (int k = 0; k < 3; k++) {
		cloche_instance *i = NULL;
		cloche_err why = CLOCHE_ERR_INIT;
		int now;

		if (cloche_manager_create(m, cloche_manager_defaults(m), NULL, FOR_EVER, &i, &why) <
			0) {
			failures++;
			continue;
		}
		now = ++running_now;
		if (now > running_most)
			running_most = now;
		/* Until as many have run at a time as may. */
		for (int n = 0; n < 2000 && running_most < FEW; n++)
			pause_ms(5);
		pause_ms(5);
		running_now--;
		failures += cloche_manager_destroy(m, cloche_instance_id(i), &why) < 0;
		cloche_instance_free(i);
	}
	return NULL;
}

static void no_more_run_than_may(void)
{
	cloche_manager *m = open_manager();
	pthread_t threads[THREADS];

	running_now = running_most = failures = 0;
	set_max_runs(m, FEW);
	for (int k = 0; k < THREADS; k++)
		must(pthread_create(&threads[k], NULL, make_and_destroy, m) == 0);
	for (int k = 0; k < THREADS; k++)
		pthread_join(threads[k], NULL);
	check_int(failures, 0);
	check_int(running_most, FEW);
	check_int(count(m), 0);
	cloche_manager_close(m);
}

static void who_waits_too_long_is_told(void)
{
	cloche_manager *m = open_manager();
	cloche_sandbox *sb = cloche_manager_defaults(m);
	cloche_instance *i = NULL;
	uint64_t began;
	char id[64];

	set_max_runs(m, FEW);
	must(cloche_manager_enter(m, sb, 0, &err) == 0);
	create(m, NULL, id);
	check_int(cloche_manager_create(m, sb, NULL, 0, &i, &err), -CLOCHE_E_BUSY);
	check(strstr(err.message, "at most 2 may run at a time"));
	began = clock_mono_usec();
	check_int(cloche_manager_enter(m, sb, 200, &err), -CLOCHE_E_BUSY);
	check(clock_mono_usec() - began >= 200 * USEC_PER_MSEC);
	/* One that ends by itself gives its place back. */
	must(cloche_instance_open(id, &i, &err) == 0 && cloche_instance_stop(i, 0, &err) == 0);
	cloche_instance_free(i);
	check_int(cloche_manager_enter(m, sb, SECONDS(60), &err), 0);
	cloche_manager_leave(m, sb);
	cloche_manager_leave(m, sb);
	check_int(cloche_manager_cleanup(m, &err), 0);
	cloche_manager_close(m);
}

struct turn {
	cloche_manager *m;
	int number;
};
static atomic_int order[THREADS], in_order;

static void *take_a_turn(void *arg)
{
	const struct turn *t = arg;
	cloche_err why = CLOCHE_ERR_INIT;

	if (cloche_manager_enter(t->m, cloche_manager_defaults(t->m), FOR_EVER, &why) == 0)
		order[in_order++] = t->number;
	cloche_manager_leave(t->m, cloche_manager_defaults(t->m));
	return NULL;
}

static json_int_t waiting_at(cloche_manager *m)
{
	cloche_status *s = NULL;
	json_t *all = status_of(m, &s);
	json_int_t n =
		json_integer_value(json_object_get(json_object_get(all, "manager"), "waiting"));

	json_decref(all);
	cloche_status_free(s);
	return n;
}

static void who_comes_first_is_served_first(void)
{
	cloche_manager *m = open_manager();
	pthread_t threads[THREADS];
	struct turn turns[THREADS];

	in_order = 0;
	set_max_runs(m, 1);
	must(cloche_manager_enter(m, cloche_manager_defaults(m), 0, &err) == 0);
	for (int k = 0; k < THREADS; k++) {
		turns[k] = (struct turn){m, k};
		must(pthread_create(&threads[k], NULL, take_a_turn, &turns[k]) == 0);
		for (int i = 0; i < 500 && waiting_at(m) <= k; i++)
			pause_ms(5);
	}
	check_int(waiting_at(m), THREADS);
	cloche_manager_leave(m, cloche_manager_defaults(m));
	for (int k = 0; k < THREADS; k++)
		pthread_join(threads[k], NULL);
	for (int k = 0; k < THREADS; k++)
		check_int(order[k], k);
	cloche_manager_close(m);
}

static void memory_is_promised_once(void)
{
	cloche_manager *one = open_manager(), *two = open_manager();
	cloche_sandbox *sb = cloche_manager_configure(one);
	struct memory here;
	uint64_t total;

	memory_read(&here);
	total = here.total;
	set_memory(sb, total * 2);
	check_int(cloche_manager_enter(one, sb, SECONDS(60), &err), -CLOCHE_E_LIMIT);
	check(err.hint[0]);
	/* Many small ones fill it as one large one would. */
	set_memory(sb, total / 16);
	for (int k = 0; k < 15; k++)
		check_int(cloche_manager_enter(k % 2 ? one : two, sb, 0, &err), 0);
	check_int(cloche_manager_enter(one, sb, 0, &err), 0);
	check_int(cloche_manager_enter(one, sb, 0, &err), -CLOCHE_E_BUSY);
	check_int(cloche_manager_enter(two, sb, 100, &err), -CLOCHE_E_BUSY);
	check(strstr(err.message, "would exceed the"));
	cloche_manager_leave(one, sb);
	check_int(cloche_manager_enter(two, sb, 0, &err), 0);
	/* What a manager has promised to the process's own runs goes with it. */
	cloche_manager_close(one);
	check_int(cloche_manager_enter(two, sb, 0, &err), 0);
	cloche_sandbox_free(sb);
	cloche_manager_close(two);
}

/* What runs on another machine takes nothing of this one's memory. */
static void memory_elsewhere_is_not_promised(void)
{
	cloche_manager *m = open_manager();
	cloche_sandbox *there = cloche_manager_configure(m), *cluster = cloche_manager_configure(m);
	struct memory here;

	memory_read(&here);
	must(cloche_sandbox_set(there, "place", "there", &err) == 0);
	must(cloche_sandbox_set(cluster, "provider", "kubernetes", &err) == 0);
	set_memory(there, here.total * 2);
	set_memory(cluster, here.total * 2);
	check_int(cloche_manager_enter(m, there, 0, &err), 0);
	check_int(cloche_manager_enter(m, cluster, 0, &err), 0);
	cloche_manager_leave(m, there);
	cloche_manager_leave(m, cluster);
	set_memory(there, here.total);
	check_int(cloche_manager_enter(m, there, 0, &err), 0);
	cloche_manager_leave(m, there);
	cloche_sandbox_free(there);
	cloche_sandbox_free(cluster);
	cloche_manager_close(m);
}

static void memory_of_what_outlives_its_manager_stays_promised(void)
{
	cloche_manager *one = open_manager(), *two = open_manager();
	cloche_sandbox *sb = cloche_manager_configure(one);
	cloche_instance *i = NULL;
	struct memory here;

	memory_read(&here);
	set_memory(sb, here.total / 16);
	must(cloche_manager_create(one, sb, NULL, 0, &i, &err) == 0);
	for (int k = 0; k < 15; k++)
		check_int(cloche_manager_enter(two, sb, 0, &err), 0);
	check_int(cloche_manager_enter(two, sb, 0, &err), -CLOCHE_E_BUSY);
	cloche_manager_close(one);
	check(runs(cloche_instance_id(i)));
	check_int(cloche_manager_enter(two, sb, 0, &err), -CLOCHE_E_BUSY);
	check(strstr(err.message, "would exceed the"));
	check_int(cloche_instance_remove(i, true, &err), 0);
	check_int(cloche_manager_enter(two, sb, 0, &err), 0);
	cloche_instance_free(i);
	cloche_sandbox_free(sb);
	cloche_manager_close(two);
}

/* --- how it is --- */

static void the_status_says_how_it_is(void)
{
	cloche_manager *m = open_manager();
	cloche_status *s = NULL;
	const json_t *mine, *one;
	json_t *all;
	char id[64];

	set_max_runs(m, 3);
	create(m, "r", id);
	occupy(id);
	all = status_of(m, &s);
	check_z(json_string_value(json_object_get(all, "provider")), "native");
	check_int(json_integer_value(json_object_get(all, "activeSandboxes")), 1);
	one = json_array_get(json_object_get(all, "sandboxes"), 0);
	check_z(json_string_value(json_object_get(one, "runId")), "r");
	check(json_is_null(json_object_get(one, "containerId")));
	check_int(s->sandboxes, 1);
	check_int(s->commands_running, 1);
	check_z(s->providers[0]->name, "native");
	check(s->providers[0]->available);
	mine = json_object_get(all, "manager");
	check_z(json_string_value(json_object_get(mine, "provider")), "auto");
	check_int(json_integer_value(json_object_get(mine, "activeSandboxes")), 1);
	check_int(json_integer_value(json_object_get(mine, "activeRuns")), 1);
	check_int(json_integer_value(json_object_get(mine, "maxConcurrentRuns")), 3);
	check_int(json_integer_value(json_object_get(mine, "promisedMemoryMB")), 64);
	check(json_is_null(json_object_get(mine, "lastCleanup")));
	json_decref(all);
	cloche_status_free(s);
	check_int(cloche_manager_cleanup(m, &err), 0);
	all = status_of(m, &s);
	mine = json_object_get(all, "manager");
	check_int(json_integer_value(json_object_get(mine, "promisedMemoryMB")), 0);
	check(json_is_string(json_object_get(mine, "lastCleanup")));
	json_decref(all);
	cloche_status_free(s);
	cloche_manager_close(m);
}

static void it_says_whether_it_can_take_work(void)
{
	cloche_manager *m = open_manager();

	check(cloche_manager_is_live(m));
	check_int(cloche_manager_is_ready(m, &err), 0);
	must(cloche_sandbox_set(cloche_manager_defaults(m), "provider", "/bin/false", &err) == 0);
	check(cloche_manager_is_ready(m, &err) < 0);
	check(err.message[0]);
	cloche_manager_close(m);
}

static void look_at_native(const cloche_provider_status *provider, void *user)
{
	if (strcmp(provider->name, "native") == 0)
		*(bool *)user = provider->available;
}

static void without_a_supervisor_nothing_works(void)
{
	_cleanup_(freep) char *before =
		getenv("CLOCHE_LIBEXEC") ? strdup(getenv("CLOCHE_LIBEXEC")) : NULL;
	cloche_manager *m = open_manager();
	bool works = true;

	must(setenv("CLOCHE_LIBEXEC", "/nowhere", 1) == 0);
	check_int(cloche_manager_is_ready(m, &err), -CLOCHE_E_NOT_FOUND);
	check(strstr(err.message, "cloche-supervisor"));
	cloche_provider_each(look_at_native, &works);
	check(!works);
	must((before ? setenv("CLOCHE_LIBEXEC", before, 1) : unsetenv("CLOCHE_LIBEXEC")) == 0);
	check_int(cloche_manager_is_ready(m, &err), 0);
	cloche_manager_close(m);
}

static bool is_one_for_all(void)
{
	cloche_manager_options options = CLOCHE_MANAGER_OPTIONS_INIT;
	cloche_manager *one = NULL, *two = NULL;

	/* What this process ends with has other directories. */
	options.cleanup_at_exit = false;
	return cloche_manager_shared(&one, &err) == 0 && cloche_manager_shared(&two, &err) == 0 &&
	       one && one == two && cloche_manager_set_options(one, &options, &err) == 0;
}

/* In a process of its own: nothing ends the thread of this manager, and a process that is forked
 * while the thread holds the lock could never take it. */
static void there_is_one_for_all(void)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0)
		_exit(is_one_for_all() ? 0 : 1);
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

static void run_list(void)
{
	run_test(what_is_made_is_tracked_until_it_is_destroyed);
	run_test(what_is_wrong_is_refused);
	run_test(only_a_default_limit_may_be_missing);
	run_test(why_none_could_be_made_stays_known);
	run_test(those_of_a_run_are_destroyed_together);
	run_test(managers_leave_each_others_alone);
	run_test(what_cannot_be_destroyed_is_tried_again);
	run_test(no_more_run_than_may);
	run_test(who_waits_too_long_is_told);
	run_test(who_comes_first_is_served_first);
	run_test(memory_is_promised_once);
	run_test(memory_elsewhere_is_not_promised);
	run_test(memory_of_what_outlives_its_manager_stays_promised);
	run_test(the_status_says_how_it_is);
	run_test(it_says_whether_it_can_take_work);
	run_test(without_a_supervisor_nothing_works);
	run_test(there_is_one_for_all);
}

int main(void)
{
	return run_everything(run_list);
}
