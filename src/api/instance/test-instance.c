/* SPDX-License-Identifier: Apache-2.0 */
/* Long-lived sandboxes by the public interface, as a program with threads uses it. */
#include "client/test-job.h"

#include <cloche/files.h>
#include <cloche/instance.h>
#include <cloche/manager.h>
#include <cloche/state.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

enum { THREADS = 10, LOG_BYTES = 256 * 1024 };

static cloche_err err;
static cloche_instance *box;

static void no_warning(const char *text, void *user)
{
}

static cloche_instance *create(const char *name, unsigned log_bytes)
{
	char text[16];
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_instance *i = NULL;

	must(sb && cloche_sandbox_set_env(sb, "OF", "sandbox", &err) == 0);
	if (name)
		must(cloche_sandbox_set(sb, "name", name, &err) == 0);
	must(cloche_sandbox_set(sb, "label", "kind=test", &err) == 0);
	snprintf(text, sizeof(text), "%u", log_bytes);
	if (log_bytes)
		must(cloche_sandbox_set(sb, "output-limit", text, &err) == 0);
	if (cloche_instance_create(sb, no_warning, NULL, &i, &err) < 0)
		tap_fail("create: %s", err.message);
	cloche_sandbox_free(sb);
	return i;
}

static cloche_run *new_run(const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	cloche_run *run = NULL;

	must(cloche_run_new_in(box, argv, &run, &err) == 0);
	return run;
}

static struct str output(const cloche_run *run)
{
	const cloche_result *end = cloche_run_result(run);

	return str_make(end->stdout_data, end->stdout_length);
}

static uint32_t start(const char *script, bool keep_input)
{
	cloche_run *run = new_run(script);
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	uint32_t number;

	o.detached = true;
	o.keep_input = keep_input;
	check_int(cloche_run_set_options(run, &o, &err), 0);
	if (cloche_run_execute(run, &err) < 0)
		tap_fail("start: %s", err.message);
	number = cloche_run_result(run)->number;
	check(number > 0);
	cloche_run_free(run);
	return number;
}

static void test_what_a_handle_tells(void)
{
	cloche_instance *i = NULL;
	char begin[16];

	check_int(cloche_instance_open("first", &i, &err), 0);
	check_z(cloche_instance_id(i), cloche_instance_id(box));
	check_int(cloche_instance_refresh(i, &err), 0);
	check_int(cloche_instance_info_of(i)->state, CLOCHE_INSTANCE_RUNNING);
	check_z(cloche_instance_info_of(i)->state_name, "running");
	check_z(cloche_instance_info_of(i)->name, "first");
	check_z(cloche_instance_label(i, "kind"), "test");
	check(!cloche_instance_label(i, "none"));
	check_z(cloche_instance_info_of(i)->provider, "native");
	check(cloche_instance_info_of(i)->created_us > 0 &&
		cloche_instance_info_of(i)->ended_us == 0);
	check(strstr(cloche_instance_info_of(i)->json, "\"labels\""));
	cloche_instance_free(i);
	snprintf(begin, sizeof(begin), "%.12s", cloche_instance_id(box) + 8);
	check_int(cloche_instance_open(begin, &i, &err), 0);
	check_z(cloche_instance_id(i), cloche_instance_id(box));
	cloche_instance_free(i);
	check_int(cloche_instance_open("nobody", &i, &err), -CLOCHE_E_NOT_FOUND);
	check(err.hint[0]);
	check_int(cloche_instance_open("sandbox-aaaaaaaaaaaaaaaaaaaaa", &i, &err),
		-CLOCHE_E_NOT_FOUND);
}

static void test_a_command_has_its_own_settings(void)
{
	cloche_run *run = new_run("echo $OF $MINE; pwd; cat; exit 6");
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;

	check_int(cloche_run_set_env(run, "MINE", "of the command", &err), 0);
	check_int(cloche_run_set_env(run, "A=B", "x", &err), -CLOCHE_E_USAGE);
	o.workdir = "/usr";
	check_int(cloche_run_set_options(run, &o, &err), 0);
	o.workdir = "usr";
	check_int(cloche_run_set_options(run, &o, &err), -CLOCHE_E_USAGE);
	o.workdir = NULL;
	o.uid = 0;
	check_int(cloche_run_set_options(run, &o, &err), -CLOCHE_E_USAGE);
	o.uid = UINT32_MAX;
	o.stdin_data = "input\n";
	o.stdin_length = 6;
	check_int(cloche_run_set_options(run, &o, &err), 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 6);
	check_str(output(run), "sandbox of the command\n/usr\ninput\n");
	check(cloche_run_result(run)->number > 0 && !cloche_run_result(run)->left);
	check_int(cloche_run_execute(run, &err), -CLOCHE_E_USAGE);
	cloche_run_free(run);
	run = new_run("sleep 60");
	o = (cloche_run_options)CLOCHE_RUN_OPTIONS_INIT;
	o.timeout_ms = 150;
	check_int(cloche_run_set_options(run, &o, &err), 0);
	check_int(cloche_run_execute(run, &err), 0);
	check(cloche_run_result(run)->timed_out);
	check_int(cloche_run_result(run)->exit_code, 124);
	cloche_run_free(run);
	/* A time that nobody sees the end of: in microseconds this is more than 64 bits. */
	run = new_run("sleep .1");
	o.timeout_ms = UINT64_MAX / 1000 + 2;
	check_int(cloche_run_set_options(run, &o, &err), 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 0);
	cloche_run_free(run);
}

/* Forks must not get a wider policy than the one that was set, just because that was not kept. */
static void test_a_policy_that_is_not_kept_for_forks(void)
{
	cloche_allowlist *list = cloche_allowlist_new();
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_policy_change change = {0};
	cloche_instance *i = NULL;
	char made[512];

	must(sb && list && cloche_allowlist_add_host(list, "a.test", &err) == 0);
	must(cloche_sandbox_set_allowlist(sb, list, &err) == 0);
	must(cloche_instance_create(sb, no_warning, NULL, &i, &err) == 0);
	check_int(cloche_instance_set_allowlist(i, list, &change, &err), 0);
	snprintf(made, sizeof(made), "%s/%s/" RUNDIR_MADE, runtime, cloche_instance_id(i));
	must(unlink(made) == 0 && mkdir(made, 0700) == 0);
	check(cloche_instance_set_allowlist(i, list, &change, &err) < 0);
	check(strstr(err.message, "forks") != NULL);
	check_int(change.rules, 1);
	must(rmdir(made) == 0); /* as a sandbox of an older version */
	check_int(cloche_instance_set_allowlist(i, list, &change, &err), 0);
	check_int(cloche_instance_remove(i, true, &err), 0);
	cloche_instance_free(i);
	cloche_sandbox_free(sb);
	cloche_allowlist_free(list);
}

/* Return whether one of 0, 1 and 2 is open for writing. */
static bool stdio_is_taken(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int flags = fcntl(fd, F_GETFL);

		if (flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY)
			return true;
	}
	return false;
}

/* Return 0 if all is well. */
static int use_without_stdio(void)
{
	cloche_manager *manager = NULL;
	cloche_files *files = NULL;
	cloche_state *state = NULL;
	cloche_log *log = NULL;
	cloche_run *run = new_run("echo out");

	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	if (cloche_run_execute(run, &err) < 0 || cloche_run_result(run)->stdout_length != 4)
		return 1;
	cloche_run_free(run);
	if (cloche_manager_open(NULL, NULL, &manager, &err) < 0 || stdio_is_taken())
		return 2;
	cloche_manager_close(manager);
	if (cloche_log_open(box, 0, &log, &err) < 0 || stdio_is_taken())
		return 3;
	cloche_log_free(log);
	if (cloche_state_open(box, &state, &err) < 0 ||
		cloche_state_set(state, CLOCHE_STATE_STORAGE, "k", 1, "v", 1, &err) < 0 ||
		stdio_is_taken())
		return 4;
	cloche_state_close(state);
	if (cloche_files_open(box, 0, 0, &files, &err) < 0 || stdio_is_taken())
		return 5;
	cloche_files_close(files);
	return 0;
}

/* A daemon may have closed them. What it prints then must not get into our sockets and files. */
static void test_stdio_that_is_closed_stays_free(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(use_without_stdio());
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

static void *one_of_many(void *user)
{
	long n = (long)user;
	char script[64];
	cloche_run *run;
	long wrong = 0;

	for (int i = 0; i < 5 && !wrong; i++) {
		const char *const argv[] = {"sh", "-c", script, NULL};
		cloche_err own = CLOCHE_ERR_INIT;

		snprintf(script, sizeof(script), "echo %ld; exit %ld", n, n);
		wrong = cloche_run_new_in(box, argv, &run, &own) < 0 ||
			cloche_run_execute(run, &own) < 0 || cloche_run_result(run)->exit_code != n;
		cloche_run_free(run);
	}
	return (void *)wrong;
}

static void test_threads_share_a_handle(void)
{
	pthread_t threads[THREADS];
	void *wrong;

	for (long i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, one_of_many, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++) {
		must(pthread_join(threads[i], &wrong) == 0);
		check(wrong == NULL);
	}
}

/* What a follower was given, and when it had enough. */
struct heard {
	struct buf out[2];
	uint64_t next;
	size_t enough;
	bool gap;
	cloche_log *stop; /* after the first piece */
};

static bool hear(bool is_stderr, uint64_t offset, const void *data, size_t n, void *user)
{
	struct heard *h = user;

	h->gap |= offset != h->next;
	h->next = offset + n;
	must(buf_add(&h->out[is_stderr], data, n) == 0);
	if (h->stop)
		cloche_log_stop(h->stop);
	return !h->enough || buf_len(&h->out[0]) < h->enough;
}

static struct heard new_heard(void)
{
	return (struct heard){.out = {BUF_INIT(OUT_MAX), BUF_INIT(OUT_MAX)}};
}

static void heard_done(struct heard *h)
{
	buf_done(&h->out[0]);
	buf_done(&h->out[1]);
}

static void test_a_log_is_followed_and_read_again(void)
{
	uint32_t number = start("echo a; echo b >&2; sleep 0.2; echo c; echo d >&2", false);
	struct heard h = new_heard();
	cloche_log *log = NULL;
	cloche_log_state e = {.size = sizeof(e)};
	cloche_log_piece piece;
	uint64_t at = 0;
	char text[16];

	must(cloche_log_open(box, number, &log, &err) == 0);
	check_int(cloche_log_follow(log, 0, hear, &h, &at, &err), 0);
	check_str(buf_str(&h.out[0]), "a\nc\n");
	check_str(buf_str(&h.out[1]), "b\nd\n");
	check(!h.gap && at == 8);
	heard_done(&h);
	check_int(cloche_log_look(log, &e, &err), 0);
	check(e.number == number && e.start == 0 && e.end == 8 && e.ended && !e.missing_why);
	/* One stream at a time, never more than there is room for. */
	check_int(cloche_log_read(log, 0, text, sizeof(text), &piece, &err), 0);
	check(piece.offset == 0 && piece.length == 2 && !piece.is_stderr && !piece.ended);
	check_int(cloche_log_read(log, 3, text, 1, &piece, &err), 0);
	check(piece.offset == 3 && piece.length == 1 && piece.is_stderr && text[0] == '\n');
	check_int(cloche_log_read(log, 8, text, sizeof(text), &piece, &err), 0);
	check(piece.length == 0 && piece.ended);
	check_int(cloche_log_read(log, 1000, text, sizeof(text), &piece, &err), 0);
	check(piece.length == 0);
	cloche_log_free(log);
	check_int(cloche_log_open(box, 4000, &log, &err), -CLOCHE_E_NOT_FOUND);
	check(err.hint[0]);
}

static void test_a_follower_stops_when_told(void)
{
	uint32_t number = start("echo up; sleep 600", false);
	struct heard h = new_heard();
	cloche_log *log = NULL;
	uint64_t at;

	must(cloche_log_open(box, number, &log, &err) == 0);
	h.stop = log;
	check_int(cloche_log_follow(log, 0, hear, &h, &at, &err), 0);
	check(at == 3);
	cloche_log_free(log);
	h.stop = NULL;
	h.enough = 1;
	h.next = 0;
	must(cloche_log_open(box, number, &log, &err) == 0);
	check_int(cloche_log_follow(log, 0, hear, &h, NULL, &err), 0);
	cloche_log_free(log);
	heard_done(&h);
}

static void test_old_output_is_given_up(void)
{
	uint32_t number = start("yes 0123456789 | head -c 4000000", false);
	struct heard h = new_heard();
	cloche_log *log = NULL;
	cloche_log_state e = {.size = sizeof(e)};
	cloche_log_piece piece;
	char text[64];

	must(cloche_log_open(box, number, &log, &err) == 0);
	check_int(cloche_log_follow(log, 0, hear, &h, NULL, &err), 0);
	heard_done(&h);
	check_int(cloche_log_look(log, &e, &err), 0);
	e.size = 0;
	check_int(cloche_log_look(log, &e, &err), -CLOCHE_E_USAGE);
	check(e.ended && e.end == 4000000 && e.start > 0);
	check(e.end - e.start >= LOG_BYTES / 2 && e.end - e.start <= 2 * LOG_BYTES);
	/* Whoever asks for what is gone gets what there is, and is told where that begins. */
	check_int(cloche_log_read(log, 0, text, sizeof(text), &piece, &err), 0);
	check(piece.offset == e.start && piece.length == sizeof(text));
	check_int(text[0], "0123456789\n"[e.start % 11]);
	cloche_log_free(log);
}

static void test_a_command_is_joined(void)
{
	uint32_t number = start("read x; echo got $x; exit 3", true);
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	cloche_run *run = NULL;

	must(cloche_run_new_joining(box, number, &run, &err) == 0);
	o.stdin_data = "this\n";
	o.stdin_length = 5;
	must(cloche_run_set_options(run, &o, &err) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 3);
	check_str(output(run), "got this\n");
	cloche_run_free(run);
	/* Again, after its end, the last bytes alone. */
	must(cloche_run_new_joining(box, number, &run, &err) == 0);
	o.stdin_data = NULL;
	o.log_tail = 2;
	must(cloche_run_set_options(run, &o, &err) == 0);
	o.log_tail = 5;
	must(cloche_run_set_options(run, &o, &err) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_result(run)->exit_code, 3);
	check_str(output(run), "this\n");
	cloche_run_free(run);
	must(cloche_run_new_joining(box, 4000, &run, &err) == 0);
	check_int(cloche_run_execute(run, &err), -CLOCHE_E_NOT_FOUND);
	cloche_run_free(run);
}

struct later {
	cloche_run *run;
	bool (*what)(cloche_run *run);
};

static void *do_later(void *user)
{
	struct later *l = user;

	usleep(150 * 1000);
	l->what(l->run);
	return NULL;
}

static void execute_until(cloche_run *run, bool (*what)(cloche_run *run))
{
	struct later l = {run, what};
	pthread_t thread;

	must(pthread_create(&thread, NULL, do_later, &l) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	must(pthread_join(thread, NULL) == 0);
}

static bool running(uint32_t number)
{
	char text[64];

	snprintf(text, sizeof(text), "\"number\": %u,", number);
	must(cloche_instance_refresh(box, &err) == 0);
	/* The state stands before the number. */
	const char *json = cloche_instance_info_of(box)->json, *at = strstr(json, text);

	must(at);
	while (at > json && *at != '{')
		at--;
	return strncmp(at + 1, "\n      \"state\": \"running\"", 24) == 0;
}

static void test_stop_ends_the_command_alone(void)
{
	uint32_t other = start("sleep 600", false);
	cloche_run *run = new_run("sleep 600");

	execute_until(run, cloche_run_stop);
	check_int(cloche_run_result(run)->signal, SIGTERM);
	check(cloche_run_result(run)->stopped);
	cloche_run_free(run);
	check(running(other));
}

static void test_leave_leaves_it_running(void)
{
	cloche_run *run = new_run("sleep 600");

	execute_until(run, cloche_run_leave);
	check(cloche_run_result(run)->left);
	check(running(cloche_run_result(run)->number));
	cloche_run_free(run);
	run = new_run("sleep 600");
	check(!cloche_run_leave(run)); /* noted, though */
	check_int(cloche_run_execute(run, &err), 0);
	check(cloche_run_result(run)->left);
	cloche_run_free(run);
}

static void *type_later(void *user)
{
	static const char *const keys[] = {"a\x10", "b\n", "\x10", "\x11"};
	int *fd = user;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		usleep(120 * 1000);
		must(write(*fd, keys[i], strlen(keys[i])) > 0);
	}
	return NULL;
}

static void test_keys_detach(void)
{
	cloche_run *run = new_run("stty raw -echo; head -c 3 | od -An -c; sleep 600");
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	pthread_t thread;

	must(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(slave >= 0);
	o.tty_fd = o.stdin_fd = slave;
	o.detach_keys = "\x10";
	check_int(cloche_run_set_options(run, &o, &err), -CLOCHE_E_USAGE);
	o.detach_keys = "\x10\x11";
	check_int(cloche_run_set_options(run, &o, &err), 0);
	must(pthread_create(&thread, NULL, type_later, &master) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	must(pthread_join(thread, NULL) == 0);
	check(cloche_run_result(run)->left);
	/* The first of the keys alone was the command's. */
	check(str_find(output(run), STR("a 020   b")) < output(run).n);
	check(running(cloche_run_result(run)->number));
	cloche_run_free(run);
	fd_close(slave);
	fd_close(master);
}

static bool count_one(const cloche_instance *i, void *user)
{
	++*(int *)user;
	return true;
}

static void count_pruned(const char *id, bool crashed, void *user)
{
	++*(int *)user;
	check(!crashed);
}

static void test_ends(void)
{
	cloche_instance *second = create(NULL, 0), *again = NULL;
	cloche_stats stats = {.size = 0};
	cloche_synced synced = {.size = 0};
	int n = 0;

	must(second);
	check_int(cloche_instance_list(false, count_one, &n, &err), 0);
	check_int(n, 2);
	check_int(cloche_instance_stats(second, &stats, &err), -CLOCHE_E_USAGE);
	stats.size = sizeof(stats);
	check_int(cloche_instance_stats(second, &stats, &err), 0);
	check(stats.at_us > 0 && stats.commands_total == 0);
	check_int(cloche_instance_sync(second, NULL, NULL, &synced, &err), -CLOCHE_E_USAGE);
	synced.size = sizeof(synced);
	check_int(cloche_instance_sync(second, NULL, NULL, &synced, &err), -CLOCHE_E_UNSUPPORTED);
	check_int(cloche_instance_sync(second, NULL, NULL, NULL, NULL), -CLOCHE_E_UNSUPPORTED);
	check_int(cloche_instance_remove(second, false, &err), -CLOCHE_E_BUSY);
	check(err.hint[0]);
	check_int(cloche_instance_stop(second, 1000, &err), 0);
	check_int(cloche_instance_stop(second, 1000, &err), 0);
	check_int(cloche_instance_refresh(second, &err), 0);
	check_int(cloche_instance_info_of(second)->state, CLOCHE_INSTANCE_STOPPED);
	check(cloche_instance_info_of(second)->ended_us > 0);
	check_int(cloche_instance_stats(second, &stats, &err), -CLOCHE_E_NOT_FOUND);
	check_int(cloche_instance_sync(second, NULL, NULL, &synced, &err), -CLOCHE_E_NOT_FOUND);
	n = 0;
	check_int(cloche_instance_prune(count_pruned, &n, &err), 0);
	check_int(n, 1);
	check_int(cloche_instance_open(cloche_instance_id(second), &again, &err),
		-CLOCHE_E_NOT_FOUND);
	check_int(cloche_instance_remove(second, true, &err), 0);
	cloche_instance_free(second);
	check_int(cloche_instance_remove(box, true, &err), 0);
	n = 0;
	check_int(cloche_instance_list(true, count_one, &n, &err), 0);
	check_int(n, 0);
}

static void test_labels_and_names_are_checked(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	uint64_t ms = 0;

	must(sb);
	check_int(cloche_sandbox_set(sb, "label", "novalue", &err), -CLOCHE_E_USAGE);
	check_int(cloche_sandbox_set(sb, "label", "=x", &err), -CLOCHE_E_USAGE);
	check_int(cloche_sandbox_set(sb, "label", "a b=x", &err), -CLOCHE_E_USAGE);
	check_int(cloche_sandbox_set(sb, "label", "a=\xff", &err), -CLOCHE_E_USAGE);
	for (int i = 0; i < CTL_MAX_LABELS; i++) {
		char label[32];

		snprintf(label, sizeof(label), "key%d=", i);
		check_int(cloche_sandbox_set(sb, "label", label, &err), 0);
	}
	check_int(cloche_sandbox_set(sb, "label", "key0=again", &err), 0);
	check_int(cloche_sandbox_set(sb, "label", "more=x", &err), -CLOCHE_E_LIMIT);
	check_int(cloche_sandbox_set(sb, "runtime", "cobol", &err), -CLOCHE_E_USAGE);
	check_int(cloche_sandbox_set(sb, "runtime", NULL, &err), 0);
	check_int(cloche_parse_duration("1.5s", &ms, &err), 0);
	check(ms == 1500);
	check_int(cloche_parse_duration("soon", &ms, &err), -CLOCHE_E_USAGE);
	cloche_sandbox_free(sb);
}

/* Its supervisor ends while it is asked to. */
static void test_stop_while_it_ends_by_itself(void)
{
	const char *argv[] = {"sleep", NULL, NULL};
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;

	o.detached = true;
	for (int i = 0; i < 40; i++) {
		cloche_sandbox *sb = cloche_sandbox_new();
		cloche_instance *once = NULL;
		cloche_run *run = NULL;
		char time[32];

		snprintf(time, sizeof(time), "0.%03d", i / 4);
		argv[1] = time;
		must(sb && cloche_run_new(sb, argv, &run, &err) == 0 &&
			cloche_run_set_options(run, &o, &err) == 0);
		check_int(cloche_run_execute(run, &err), 0);
		must(cloche_instance_open(cloche_run_result(run)->id, &once, &err) == 0);
		cloche_run_free(run);
		check_int(cloche_instance_stop(once, 1000, &err), 0);
		check_int(cloche_instance_remove(once, false, &err), 0);
		cloche_instance_free(once);
		cloche_sandbox_free(sb);
	}
}

int main(void)
{
	struct cloche_err why = CLOCHE_ERR_INIT;

	run_test(test_labels_and_names_are_checked);
	if (native_provider.probe(&native_provider, &(struct provider_about){0}, &why) < 0) {
		printf("# no rooms here: %s\n", why.message);
		return tap_done();
	}
	set_up();
	set_runtime("instance");
	box = create("first", LOG_BYTES);
	must(box);
	run_test(test_what_a_handle_tells);
	run_test(test_a_command_has_its_own_settings);
	run_test(test_stdio_that_is_closed_stays_free);
	run_test(test_a_policy_that_is_not_kept_for_forks);
	run_test(test_threads_share_a_handle);
	run_test(test_a_log_is_followed_and_read_again);
	run_test(test_a_follower_stops_when_told);
	run_test(test_old_output_is_given_up);
	run_test(test_a_command_is_joined);
	run_test(test_stop_ends_the_command_alone);
	run_test(test_leave_leaves_it_running);
	run_test(test_keys_detach);
	run_test(test_ends);
	run_test(test_stop_while_it_ends_by_itself);
	cloche_instance_free(box);
	(void)fs_remove_tree(AT_FDCWD, base);
	(void)fs_remove_tree(AT_FDCWD, runtime);
	return tap_done();
}
