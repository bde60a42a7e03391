/* SPDX-License-Identifier: Apache-2.0 */
/* The real supervisor and the real init, in rooms of the native provider: as the user who runs this
 * and, where that is root, again as an ordinary user. What is started carries a marker in its argv,
 * so that whatever is left behind can be found. */
#include "api/client_internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/fs.h"
#include "base/rand.h"
#include "base/strv.h"
#include "ipc/netconf.h"
#include "ipc/rundir.h"
#include "provider/provider.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUT_MAX = 32 * 1024 * 1024, ORDINARY_UID = 54321 };

static char marker[32], group_prefix[64], base[128], runtime[160];

/* What a process wrote. */
struct taken {
	struct buf out[2];
	int refuse; /* stream whose reader goes away, or 0 */
};

static int take(void *user, int stream, const char *p, size_t n)
{
	struct taken *t = user;

	if (t->refuse == stream)
		return -1;
	must(buf_add(&t->out[stream - 1], p, n) == 0);
	return 0;
}

struct job {
	struct room_spec room;
	struct exec_spec spec;
	struct client_io io;
	struct taken taken;
	struct client_result result;
	struct ctl_ended ended;
	struct client *client;
	struct cloche_err err;
	bool long_lived;
	uint64_t grace_usec;
	int code; /* of client_exec */
};

static void job_init(struct job *j, const char *script)
{
	char sh[] = "sh", c[] = "-c", *text = strdup(script);
	char *argv[] = {sh, c, text, marker, NULL};
	char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=/tmp";
	char *env[] = {path, home, NULL};

	must(text);
	*j = (struct job){.io = CLIENT_IO_INIT, .grace_usec = 5 * USEC_PER_SEC};
	room_spec_init(&j->room);
	exec_spec_init(&j->spec);
	must(exec_spec_set(&j->spec, argv, env, NULL, NULL) == 0);
	j->taken.out[0] = j->taken.out[1] = BUF_INIT(OUT_MAX);
	j->io.write = take;
	j->io.user = &j->taken;
	free(text);
}

static void job_done(struct job *j)
{
	j->client = client_free(j->client);
	buf_done(&j->taken.out[0]);
	buf_done(&j->taken.out[1]);
	exec_spec_done(&j->spec);
	room_spec_done(&j->room);
}

static void job_start(struct job *j)
{
	struct client_start start = {
		.room = &j->room, .one_shot = !j->long_lived, .grace_usec = j->grace_usec};
	int config;

	if (client_new(&start, &j->client, &config, &j->err) < 0) {
		printf("Bail out! %s\n", j->err.message);
		exit(1);
	}
	check_int(config, -1);
}

static void job_exec(struct job *j)
{
	j->io.user = &j->taken;
	j->code = client_exec(j->client, &j->spec, &j->io, &j->result, &j->err);
}

static void job_run(struct job *j)
{
	job_start(j);
	job_exec(j);
	check_int(client_finish(j->client, &j->ended, NULL), 0);
}

#define check_out(j, stream, want) check_str(buf_str(&(j).taken.out[(stream)-1]), want)

/* --- what is left of us on this machine --- */

static bool has_marker(const char *pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	if (fs_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return false;
	return str_find(buf_str(&b), str_from(marker)) < buf_len(&b);
}

static int count_marked(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int n = 0;

	must(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9' && atoi(e->d_name) != getpid() &&
		     has_marker(e->d_name);
	closedir(dir);
	return n;
}

static int count_dirs(void)
{
	DIR *dir = opendir(runtime);
	struct dirent *e;
	int n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static bool becomes_zero(int (*count)(void))
{
	for (int i = 0; i < 400; i++) {
		if (count() == 0)
			return true;
		pause_ms(10);
	}
	return false;
}

/* --- endings --- */

static void exit_codes(void)
{
	static const int codes[] = {0, 1, 3, 125, 255};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		char script[32];
		struct job j;

		snprintf(script, sizeof(script), "exit %d", codes[i]);
		job_init(&j, script);
		job_run(&j);
		check_int(j.code, 0);
		check(!j.result.signaled && !j.result.timed_out && !j.result.stopped);
		check_int(j.result.status, codes[i]);
		check_int(j.ended.reason, CTL_REASON_EXITED);
		check_z(client_provider(j.client), "native");
		check(rundir_is_id(str_from(client_id(j.client))));
		job_done(&j);
	}
}

static void endings_by_signal(void)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGSEGV, SIGPIPE, SIGINT, SIGQUIT};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		char script[32];
		struct job j;

		snprintf(script, sizeof(script), "kill -%d $$; sleep 5", signals[i]);
		job_init(&j, script);
		job_run(&j);
		check_int(j.code, 0);
		check(j.result.signaled);
		check_int(j.result.status, signals[i]);
		job_done(&j);
	}
}

static void fails_to_start(const char *command, const char *cwd, int code, const char *text)
{
	char *copy = strdup(command), *argv[] = {copy, NULL};
	char path[] = "PATH=/nowhere:/usr/bin:/bin", *env[] = {path, NULL};
	struct job j;

	job_init(&j, "");
	must(exec_spec_set(&j.spec, argv, env, cwd, NULL) == 0);
	job_run(&j);
	check_int(j.code, -code);
	if (!strstr(j.err.message, text) || !strstr(j.err.message, command))
		tap_fail("\"%s\" tells neither \"%s\" nor \"%s\"", j.err.message, text, command);
	check_int(j.ended.reason, CTL_REASON_EXITED);
	job_done(&j);
	free(copy);
}

static void commands_that_cannot_run(void)
{
	fails_to_start("no-such-command", NULL, E_COMMAND_NOT_FOUND, "not found");
	fails_to_start("/no/such/command", NULL, E_COMMAND_NOT_FOUND, "not found");
	fails_to_start("/etc/passwd/x", NULL, E_COMMAND_NOT_FOUND, "not found");
	fails_to_start("/etc/passwd", NULL, E_CANNOT_EXEC, "Permission denied");
	fails_to_start("/usr", NULL, E_CANNOT_EXEC, "Permission denied");
	fails_to_start("true", "/no/such/dir", E_CANNOT_EXEC, "working directory");
}

static void a_missing_interpreter_is_named(void)
{
	struct job j;
	char *argv[] = {(char[]){"/tmp/script"}, NULL};

	job_init(&j, "printf '#!/no/such/interpreter\\n' > /tmp/script; chmod 755 /tmp/script; "
		     "echo '' > /tmp/text; chmod 755 /tmp/text");
	j.long_lived = true;
	job_start(&j);
	job_exec(&j);
	check_int(j.code, 0);
	must(exec_spec_set(&j.spec, argv, NULL, NULL, NULL) == 0);
	job_exec(&j);
	check_int(j.code, -E_CANNOT_EXEC);
	check(strstr(j.err.message, "interpreter"));
	/* A file without an interpreter line is not given to a shell. */
	argv[0] = (char[]){"/tmp/text"};
	must(exec_spec_set(&j.spec, argv, NULL, NULL, NULL) == 0);
	job_exec(&j);
	check_int(j.code, -E_CANNOT_EXEC);
	check_int(client_stop(j.client, 0), 0);
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_STOPPED);
	job_done(&j);
}

static void signals_are_as_usual(void)
{
	char grep[] = "/usr/bin/grep", c[] = "-c", what[] = "^Sig\\(Blk\\|Ign\\):.0*$",
	     status[] = "/proc/self/status", *argv[] = {grep, c, what, status, NULL};
	struct job j;

	job_init(&j, "");
	must(exec_spec_set(&j.spec, argv, NULL, NULL, NULL) == 0);
	job_run(&j);
	check_out(j, 1, "2\n");
	job_done(&j);
}

static void surroundings(void)
{
	char env_cmd[] = "env", path[] = "PATH=/usr/bin:/bin", x[] = "X=a b\nc",
	     *argv[] = {env_cmd, NULL};
	char *env[] = {path, x, NULL};
	struct job j;

	job_init(&j, "");
	must(exec_spec_set(&j.spec, argv, env, NULL, NULL) == 0);
	job_run(&j);
	check_out(j, 1, "PATH=/usr/bin:/bin\nX=a b\nc\n");
	job_done(&j);

	/* $0 is the marker, so nothing but the shell's own words. */
	job_init(&j, "pwd; umask; echo $$; ls /proc/self/fd | wc -l; "
		     "ps -o sid= -p $$ | tr -d ' '");
	free(j.spec.cwd);
	j.spec.cwd = strdup("/usr");
	j.spec.umask = 027;
	job_run(&j);
	check_out(j, 1, "/usr\n0027\n2\n4\n2\n");
	check_out(j, 2, "");
	job_done(&j);
}

/* --- input and output --- */

static void input_is_half_closed(void)
{
	struct job j;

	job_init(&j, "wc -c; echo done");
	j.io.input = CLIENT_INPUT_BYTES;
	j.io.bytes = STR("twelve bytes");
	job_run(&j);
	check_out(j, 1, "12\ndone\n");
	job_done(&j);

	job_init(&j, "cat; echo done");
	job_run(&j);
	check_out(j, 1, "done\n");
	job_done(&j);
}

static long count_down(void *user, char *p, size_t n)
{
	struct taken *t = user;

	if (t->refuse-- <= 0)
		return 0;
	memset(p, 'x', n);
	return (long)n;
}

static void input_from_elsewhere(void)
{
	int fds[2];
	struct job j;

	must(fd_pipe(fds) == 0);
	must(fd_write_all(fds[1], "from a pipe", 11) == 0);
	close(fds[1]);
	job_init(&j, "cat");
	j.io.input = CLIENT_INPUT_FD;
	j.io.fd = fds[0];
	job_run(&j);
	check_out(j, 1, "from a pipe");
	job_done(&j);
	close(fds[0]);

	job_init(&j, "wc -c");
	j.io.input = CLIENT_INPUT_CALL;
	j.io.read = count_down;
	j.taken.refuse = 50; /* pieces of 64 KiB; far more than a pipe holds */
	job_run(&j);
	check_out(j, 1, "3276800\n");
	job_done(&j);
}

static void a_process_need_not_read(void)
{
	char *big = malloc(1 << 20);
	struct job j;

	must(big);
	memset(big, 'y', 1 << 20);
	job_init(&j, "exec 0<&-; echo closed; sleep 0.1; exit 7");
	j.io.input = CLIENT_INPUT_BYTES;
	j.io.bytes = str_make(big, 1 << 20);
	job_run(&j);
	check_int(j.result.status, 7);
	check_out(j, 1, "closed\n");
	job_done(&j);
	free(big);
}

static void much_output_on_both_streams(void)
{
	struct job j;

	job_init(&j, "head -c 10000000 /dev/zero | tr '\\0' a & "
		     "head -c 10000000 /dev/zero | tr '\\0' b >&2; wait");
	job_run(&j);
	check_int(j.result.status, 0);
	for (int i = 0; i < 2; i++) {
		struct str got = buf_str(&j.taken.out[i]);
		size_t wrong = 0;

		check_int(got.n, 10000000);
		check_int(j.result.bytes[i], 10000000);
		check(!j.result.truncated[i]);
		for (size_t k = 0; k < got.n; k++)
			wrong += got.p[k] != "ab"[i];
		check_int(wrong, 0);
	}
	job_done(&j);
}

static void the_last_words_are_kept(void)
{
	/* What fits in the pipe when the process ends arrives whole, every time. */
	for (int i = 0; i < 20; i++) {
		struct job j;

		job_init(&j, "head -c 60000 /dev/zero; printf end >&2");
		job_run(&j);
		check_int(buf_len(&j.taken.out[0]), 60000);
		check_out(j, 2, "end");
		job_done(&j);
	}
}

static void output_is_limited(void)
{
	struct job j;

	job_init(&j, "head -c 3000000 /dev/zero; printf 1234567890 >&2; exit 4");
	j.io.output_limit = 1000000;
	job_run(&j);
	check_int(j.result.status, 4);
	check_int(buf_len(&j.taken.out[0]), 1000000);
	check_int(j.result.bytes[0], 3000000);
	check(j.result.truncated[0]);
	check(!j.result.truncated[1]);
	check_out(j, 2, "1234567890");
	job_done(&j);
}

static void a_reader_may_go_away(void)
{
	struct job j;

	job_init(&j, "exec yes");
	j.taken.refuse = 1;
	job_run(&j);
	check_int(j.code, 0);
	check(j.result.signaled);
	check_int(j.result.status, SIGPIPE);
	job_done(&j);
}

/* --- time --- */

static void nobody_waits_for_grandchildren(void)
{
	uint64_t start = clock_mono_usec();
	struct job j;

	job_init(&j, "sleep 60 & echo hi");
	job_run(&j);
	check_int(j.result.status, 0);
	check_out(j, 1, "hi\n");
	check(clock_mono_usec() - start < 2 * USEC_PER_SEC);
	job_done(&j);
}

static void a_timeout_ends_everything(void)
{
	uint64_t start = clock_mono_usec();
	struct job j;

	job_init(&j, "echo before; (trap '' HUP; sleep 60) & sleep 60");
	j.spec.timeout_usec = 300 * USEC_PER_MSEC;
	job_run(&j);
	check_int(j.code, 0);
	check(j.result.timed_out);
	check(j.result.signaled);
	check_int(j.result.status, SIGTERM);
	check_out(j, 1, "before\n");
	check_int(j.ended.reason, CTL_REASON_TIMEOUT);
	check(clock_mono_usec() - start < 1 * USEC_PER_SEC);
	job_done(&j);
	check_int(count_marked(), 0);
}

static void a_timeout_does_not_ask_twice(void)
{
	uint64_t start = clock_mono_usec(), took;
	struct job j;

	job_init(&j, "trap '' TERM; echo deaf; while :; do sleep 1; done");
	j.spec.timeout_usec = 200 * USEC_PER_MSEC;
	j.grace_usec = 400 * USEC_PER_MSEC;
	job_run(&j);
	took = clock_mono_usec() - start;
	check(j.result.timed_out && j.result.signaled);
	check_int(j.result.status, SIGKILL);
	check_out(j, 1, "deaf\n");
	check(took >= 600 * USEC_PER_MSEC && took < 2 * USEC_PER_SEC);
	job_done(&j);
}

static void a_trapped_timeout_keeps_its_code(void)
{
	struct job j;

	job_init(&j, "trap 'echo bye; exit 9' TERM; while :; do sleep 0.05; done");
	j.spec.timeout_usec = 200 * USEC_PER_MSEC;
	job_run(&j);
	check(j.result.timed_out && !j.result.signaled);
	check_int(j.result.status, 9);
	check_out(j, 1, "bye\n");
	job_done(&j);
}

/* --- from another thread --- */

static void *stop_soon(void *arg)
{
	struct job *j = arg;

	pause_ms(200);
	check_int(client_stop(j->client, 5 * USEC_PER_SEC), 0);
	return NULL;
}

static void *stop_twice(void *arg)
{
	struct job *j = arg;

	pause_ms(200);
	check_int(client_stop(j->client, 60 * USEC_PER_SEC), 0);
	pause_ms(100);
	check_int(client_stop(j->client, 0), 0);
	return NULL;
}

static void *interrupt_soon(void *arg)
{
	struct job *j = arg;

	pause_ms(200);
	check_int(client_signal(j->client, SIGINT, CTL_SCOPE_GROUP), 0);
	return NULL;
}

static void run_beside(struct job *j, void *(*other)(void *))
{
	pthread_t thread;

	job_start(j);
	must(pthread_create(&thread, NULL, other, j) == 0);
	job_exec(j);
	pthread_join(thread, NULL);
	check_int(client_finish(j->client, &j->ended, NULL), 0);
}

static void stopped_by_another_thread(void)
{
	uint64_t start = clock_mono_usec();
	struct job j;

	job_init(&j, "echo up; sleep 60");
	run_beside(&j, stop_soon);
	check_int(j.code, 0);
	check(j.result.stopped && j.result.signaled && !j.result.timed_out);
	check_int(j.result.status, SIGTERM);
	check_out(j, 1, "up\n");
	check_int(j.ended.reason, CTL_REASON_STOPPED);
	check_int(client_stop(j.client, 0), -E_NOT_FOUND);
	job_done(&j);

	job_init(&j, "trap '' TERM; while :; do sleep 1; done");
	run_beside(&j, stop_twice);
	check(j.result.stopped && j.result.signaled);
	check_int(j.result.status, SIGKILL);
	check(clock_mono_usec() - start < 3 * USEC_PER_SEC);
	job_done(&j);
}

static void signalled_by_another_thread(void)
{
	struct job j;

	job_init(&j, "trap 'echo got; exit 6' INT; while :; do sleep 0.05; done");
	run_beside(&j, interrupt_soon);
	check_int(j.result.status, 6);
	check(!j.result.signaled && !j.result.stopped);
	check_out(j, 1, "got\n");
	job_done(&j);
}

/* --- terminal --- */

static void *resize_soon(void *arg)
{
	struct job *j = arg;

	pause_ms(300);
	check_int(client_resize(j->client, 51, 133), 0);
	return NULL;
}

static void a_terminal(void)
{
	struct job j;
	struct str out;

	job_init(&j, "tty; stty size; test -t 0 && test -t 2 && echo all; read line; echo \"got "
		     "$line\"");
	j.spec.tty = true;
	j.spec.rows = 50;
	j.spec.cols = 132;
	j.io.input = CLIENT_INPUT_BYTES;
	j.io.bytes = STR("word\n");
	job_run(&j);
	out = buf_str(&j.taken.out[0]);
	check(str_find(out, STR("/dev/pts/0\r\n")) < out.n);
	check(str_find(out, STR("50 132\r\n")) < out.n);
	check(str_find(out, STR("all\r\n")) < out.n);
	check(str_find(out, STR("got word\r\n")) < out.n);
	job_done(&j);

	job_init(&j,
		"trap 'stty size; exit 0' WINCH; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; "
		"do sleep 0.1; done; exit 1");
	j.spec.tty = true;
	run_beside(&j, resize_soon);
	out = buf_str(&j.taken.out[0]);
	check_int(j.result.status, 0);
	check(str_find(out, STR("51 133\r\n")) < out.n);
	job_done(&j);
}

static void a_terminal_keeps_the_last_words(void)
{
	for (int i = 0; i < 20; i++) {
		struct job j;

		job_init(&j, "echo last words");
		j.spec.tty = true;
		job_run(&j);
		check_out(j, 1, "last words\r\n");
		job_done(&j);
	}
}

/* --- rooms that live on --- */

static void many_processes_one_room(void)
{
	struct job j;

	job_init(&j, "echo x >> /tmp/count; wc -l < /tmp/count");
	j.long_lived = true;
	job_start(&j);
	check_int(client_wait_started(j.client, &j.err), 0);
	for (int i = 1; i <= 30; i++) {
		char want[16];

		buf_clear(&j.taken.out[0]);
		job_exec(&j);
		check_int(j.code, 0);
		snprintf(want, sizeof(want), "%d\n", i);
		check_out(j, 1, want);
	}
	/* A timeout there ends that process and nothing else. */
	j.spec.timeout_usec = 100 * USEC_PER_MSEC;
	free(j.spec.argv[2]);
	j.spec.argv[2] = strdup("sleep 60");
	job_exec(&j);
	check(j.result.timed_out && j.result.signaled);
	j.spec.timeout_usec = 0;
	free(j.spec.argv[2]);
	j.spec.argv[2] = strdup("exit 5");
	job_exec(&j);
	check_int(j.code, 0);
	check_int(j.result.status, 5);
	check(!j.result.timed_out);
	check_int(client_stop(j.client, USEC_PER_SEC), 0);
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_STOPPED);
	job_done(&j);
}

static void the_sandbox_has_a_deadline(void)
{
	struct client_start start = {
		.timeout_usec = 200 * USEC_PER_MSEC, .grace_usec = USEC_PER_SEC};
	struct job j;
	int config;

	job_init(&j, "sleep 60");
	start.room = &j.room;
	must(client_new(&start, &j.client, &config, &j.err) == 0);
	job_exec(&j);
	check_int(j.code, 0);
	check(j.result.timed_out && j.result.signaled);
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_TIMEOUT);
	job_done(&j);
}

static void a_room_that_cannot_be_made(void)
{
	struct job j;

	job_init(&j, "true");
	must(room_spec_add_mount(&j.room, "/no/such/source", "/mnt", true, NULL) == 0);
	job_run(&j);
	check(j.code < 0);
	check(strstr(j.err.message, "/no/such/source"));
	check_int(j.ended.reason, CTL_REASON_FAILED);
	job_done(&j);
}

/* --- violence --- */

static void kill_of_the_supervisor(void)
{
	struct job j;

	job_init(&j, "sleep 60 & sleep 60");
	j.long_lived = true;
	job_start(&j);
	check_int(client_wait_started(j.client, &j.err), 0);
	kill(j.client->pid, SIGKILL);
	job_exec(&j);
	check(j.code < 0);
	check(strstr(j.err.message, "supervisor"));
	job_done(&j);
	check(becomes_zero(count_marked));
}

/* The one child of a process, or 0. */
static pid_t child_of(pid_t pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (fs_read_file(AT_FDCWD, path, &b, NULL) < 0 || !buf_cstr(&b))
		return 0;
	return (pid_t)atoi(buf_data(&b));
}

static void *kill_init_soon(void *arg)
{
	struct job *j = arg;
	pid_t init;

	pause_ms(200);
	init = child_of(j->client->pid);
	must(init > 1);
	kill(init, SIGKILL);
	return NULL;
}

static void kill_of_init(void)
{
	struct job j;

	job_init(&j, "echo up; sleep 60");
	run_beside(&j, kill_init_soon);
	check_int(j.code, 0);
	check(j.result.signaled);
	check_int(j.result.status, SIGKILL);
	check_out(j, 1, "up\n");
	check_int(j.ended.reason, CTL_REASON_INIT_DIED);
	job_done(&j);
}

static void the_room_cannot_end_init(void)
{
	struct job j;

	job_init(&j, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -HUP 1; ls -l /proc/1/exe 2>&1 | "
		     "grep -c 'denied'; exit 8");
	job_run(&j);
	check_int(j.code, 0);
	check_int(j.result.status, 8);
	check_out(j, 1, "1\n");
	job_done(&j);
}

enum victim { VICTIM_CLIENT, VICTIM_SUPERVISOR, VICTIM_INIT, VICTIMS };

/* In a child of its own: a client whose supervisor, init or self is killed at some moment. */
static void _noreturn_ be_killed(enum victim victim, long after_usec)
{
	const struct timespec moment = {.tv_nsec = after_usec * 1000};
	char id[RUNDIR_ID_BYTES + 1];
	struct job j;
	pid_t target;

	job_init(&j, "(sleep 60 &) ; setsid sleep 60 & sleep 60");
	j.room.limits =
		(struct room_limits){.memory_bytes = 256 << 20, .pids = 100, .best_effort = true};
	/* An id whose control group can be told from everybody else's. */
	rundir_make_id(id);
	memcpy(id, group_prefix + strlen("cloche-"), strlen(group_prefix) - strlen("cloche-"));
	j.room.id = strdup(id);
	job_start(&j);
	target = victim == VICTIM_CLIENT ? getpid() : j.client->pid;
	if (fork() == 0) {
		nanosleep(&moment, NULL);
		if (victim == VICTIM_INIT)
			target = child_of(target);
		if (target > 1)
			kill(target, SIGKILL);
		_exit(0);
	}
	if (victim == VICTIM_INIT)
		j.spec.timeout_usec = 300 * USEC_PER_MSEC; /* the moment may come before init */
	job_exec(&j);
	_exit(0);
}

static int count_groups_below(const char *path, int depth)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir))) {
		_cleanup_(freep) char *sub = NULL;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		n += str_starts(str_from(e->d_name), str_from(group_prefix));
		sub = fs_join(path, e->d_name);
		if (sub && depth > 0)
			n += count_groups_below(sub, depth - 1);
	}
	if (dir)
		closedir(dir);
	return n;
}

static int count_groups(void)
{
	return count_groups_below("/sys/fs/cgroup", 4);
}

static void nothing_is_left_after_violence(void)
{
	struct job j;

	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0)
			be_killed((enum victim)(i % VICTIMS), (long)rand_below(15000));
		must(pid > 0);
		must(waitpid(pid, NULL, 0) == pid);
	}
	check(becomes_zero(count_marked));
	/* Whoever starts next cleans up what crashes left. */
	job_init(&j, "true");
	job_run(&j);
	check_int(j.code, 0);
	job_done(&j);
	check(becomes_zero(count_dirs));
	check(becomes_zero(count_groups));
}

static void a_living_sandbox_is_left_alone(void)
{
	struct job a, b;

	job_init(&a, "echo still here");
	a.long_lived = true;
	job_start(&a);
	check_int(client_wait_started(a.client, &a.err), 0);
	for (int i = 0; i < 3; i++) {
		job_init(&b, "true");
		job_run(&b);
		job_done(&b);
	}
	pause_ms(100);
	check_int(count_dirs(), 1);
	job_exec(&a);
	check_out(a, 1, "still here\n");
	check_int(client_stop(a.client, 0), 0);
	check_int(client_finish(a.client, &a.ended, NULL), 0);
	job_done(&a);
	check(becomes_zero(count_dirs));
}

static void closed_standard_descriptors(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct job j;
		bool ok;

		close(0);
		close(1);
		close(2);
		job_init(&j, "cat; echo out; echo err >&2; exit 3");
		j.io.input = CLIENT_INPUT_BYTES;
		j.io.bytes = STR("in ");
		job_run(&j);
		ok = j.code == 0 && j.result.status == 3 &&
		     str_eq(buf_str(&j.taken.out[0]), STR("in out\n")) &&
		     str_eq(buf_str(&j.taken.out[1]), STR("err\n"));
		_exit(ok ? 0 : 1);
	}
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	must(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void nothing_leaks_here(void)
{
	int before = count_fds();

	for (int i = 0; i < 20; i++) {
		struct job j;

		job_init(&j, i % 2 ? "exit 0" : "cat");
		j.spec.tty = i % 4 == 0;
		job_run(&j);
		job_done(&j);
	}
	check_int(count_fds(), before);
}

/* --- gateway and broker --- */

/* The child of a process with that name, or 0. */
static pid_t child_named(pid_t pid, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[64], *at, *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (fs_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return 0;
	for (at = buf_cstr(&b); at; at = end) {
		_cleanup_(buf_donep) struct buf comm = BUF_INIT(64);
		long child = strtol(at, &end, 10);

		if (end == at)
			return 0;
		snprintf(path, sizeof(path), "/proc/%ld/comm", child);
		if (fs_read_file(AT_FDCWD, path, &comm, NULL) == 0 &&
			str_starts(buf_str(&comm), str_from(name)))
			return (pid_t)child;
	}
	return 0;
}

/* Dead, or a zombie that nobody has waited for yet. */
static bool is_gone(pid_t pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[64], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fs_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return true;
	at = buf_cstr(&b) ? strrchr(buf_data(&b), ')') : NULL;
	return at && at[1] == ' ' && at[2] == 'Z';
}

static bool goes_away(pid_t pid)
{
	for (int i = 0; i < 300; i++) {
		if (is_gone(pid))
			return true;
		pause_ms(10);
	}
	return false;
}

struct network {
	struct job job;
	struct chan config;
	pid_t broker, gateway;
};

static void network_start(struct network *n, const char *script)
{
	struct client_start start = {.one_shot = true, .grace_usec = USEC_PER_SEC};
	struct chan_frame f;
	int config;

	job_init(&n->job, script);
	n->job.room.net = ROOM_NET_GATEWAY;
	start.room = &n->job.room;
	must(client_new(&start, &n->job.client, &config, &n->job.err) == 0);
	must(chan_init(&n->config, config, NETCONF_MAX_PAYLOAD, NETCONF_MAX_PAYLOAD) == 0);
	must(chan_send(&n->config, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(client_wait_started(n->job.client, &n->job.err) == 0);
	must(chan_recv_wait(&n->config, &f, 5000) == 1);
	check_int(f.type, NETCONF_OK);
	n->broker = child_named(n->job.client->pid, "cloche-broker");
	n->gateway = child_named(n->job.client->pid, "cloche-gateway");
	must(n->broker > 0 && n->gateway > 0);
}

static void network_done(struct network *n)
{
	chan_done(&n->config);
	job_done(&n->job);
	check(goes_away(n->broker));
	check(goes_away(n->gateway));
}

static void a_network_comes_and_goes(void)
{
	struct network n;

	/* Nothing is allowed: the gateway itself answers. */
	network_start(&n,
		"grep -c BEGIN /run/cloche/ca.crt; "
		"exec 3<>/dev/tcp/192.0.2.1/80; printf 'GET / HTTP/1.1\\r\\nHost: a.test\\r\\n"
		"Connection: close\\r\\n\\r\\n' >&3; head -n 1 <&3");
	free(n.job.spec.argv[0]);
	n.job.spec.argv[0] = strdup("bash");
	job_exec(&n.job);
	check_int(n.job.code, 0);
	check_int(n.job.result.status, 0);
	check_out(n.job, 1, "1\nHTTP/1.1 403 Forbidden\r\n");
	check_out(n.job, 2, "");
	check_int(client_finish(n.job.client, &n.job.ended, NULL), 0);
	check_int(n.job.ended.reason, CTL_REASON_EXITED);
	network_done(&n);
}

static void *kill_soon(void *arg)
{
	pause_ms(200);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

/* No room with half a network. */
static void the_room_ends_with_its_network(void)
{
	for (int i = 0; i < 2; i++) {
		uint64_t start = clock_mono_usec();
		struct network n;
		pthread_t thread;

		network_start(&n, "sleep 60");
		must(pthread_create(&thread, NULL, kill_soon, i ? &n.broker : &n.gateway) == 0);
		job_exec(&n.job);
		pthread_join(thread, NULL);
		check_int(n.job.code, -E_NETWORK);
		check_int(client_finish(n.job.client, &n.job.ended, NULL), 0);
		check_int(n.job.ended.reason, CTL_REASON_FAILED);
		check(clock_mono_usec() - start < 3 * USEC_PER_SEC);
		network_done(&n);
		check(becomes_zero(count_marked));
	}
}

static void the_network_ends_with_the_supervisor(void)
{
	struct network n;

	network_start(&n, "sleep 60");
	kill(n.job.client->pid, SIGKILL);
	job_exec(&n.job);
	check(n.job.code < 0);
	network_done(&n);
	check(becomes_zero(count_marked));
}

static void a_refused_configuration(void)
{
	struct client_start start = {.one_shot = true, .grace_usec = USEC_PER_SEC};
	struct chan config;
	struct job j;
	int fd;

	job_init(&j, "sleep 60");
	j.room.net = ROOM_NET_GATEWAY;
	start.room = &j.room;
	must(client_new(&start, &j.client, &fd, &j.err) == 0);
	must(chan_init(&config, fd, NETCONF_MAX_PAYLOAD, NETCONF_MAX_PAYLOAD) == 0);
	must(netconf_send_two(&config, NETCONF_ALLOWLIST, STR("label"), STR("domains: [")) == 0);
	must(chan_send(&config, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(chan_flush(&config) == 0);
	job_exec(&j);
	check(j.code < 0);
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_FAILED);
	chan_done(&config);
	job_done(&j);
	check(becomes_zero(count_marked));
}

/* --- set-up --- */

static void copy_program(const char *build, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(64 << 20);
	char from[512], to[256];

	snprintf(from, sizeof(from), "%s/bin/%s/%s", build, name, name);
	snprintf(to, sizeof(to), "%s/%s", base, name);
	if (fs_read_file(AT_FDCWD, from, &b, NULL) < 0) {
		printf("1..0 # SKIP %s has not been built\n", from);
		exit(0);
	}
	must(fs_write_atomic(AT_FDCWD, to, buf_str(&b), 0755, false, NULL) == 0);
	must(chmod(to, 0755) == 0);
}

/* Programs where every user can run them. */
static void set_up(void)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	must(n > 0);
	self[n] = '\0';
	slash = strrchr(self, '/');
	*slash = '\0';
	snprintf(base, sizeof(base), "/tmp/cloche-test-client-%d", getpid());
	must(mkdir(base, 0755) == 0 && chmod(base, 0755) == 0);
	copy_program(self, "cloche-supervisor");
	copy_program(self, "cloche-init");
	copy_program(self, "cloche-gateway");
	copy_program(self, "cloche-broker");
	setenv("CLOCHE_LIBEXEC", base, 1);
}

static void set_runtime(const char *who)
{
	snprintf(runtime, sizeof(runtime), "%s-run-%s", base, who);
	setenv("CLOCHE_RUNTIME_DIR", runtime, 1);
	rand_id(marker, 20);
	snprintf(group_prefix, sizeof(group_prefix), "cloche-sandbox-%.8s", marker);
}

static int run_all(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (native_provider.probe(&err) < 0) {
		printf("1..0 # SKIP no rooms here: %s\n", err.message);
		return 0;
	}
	run_test(exit_codes);
	run_test(endings_by_signal);
	run_test(commands_that_cannot_run);
	run_test(a_missing_interpreter_is_named);
	run_test(signals_are_as_usual);
	run_test(surroundings);
	run_test(input_is_half_closed);
	run_test(input_from_elsewhere);
	run_test(a_process_need_not_read);
	run_test(much_output_on_both_streams);
	run_test(the_last_words_are_kept);
	run_test(output_is_limited);
	run_test(a_reader_may_go_away);
	run_test(nobody_waits_for_grandchildren);
	run_test(a_timeout_ends_everything);
	run_test(a_timeout_does_not_ask_twice);
	run_test(a_trapped_timeout_keeps_its_code);
	run_test(stopped_by_another_thread);
	run_test(signalled_by_another_thread);
	run_test(a_terminal);
	run_test(a_terminal_keeps_the_last_words);
	run_test(many_processes_one_room);
	run_test(the_sandbox_has_a_deadline);
	run_test(a_room_that_cannot_be_made);
	run_test(kill_of_the_supervisor);
	run_test(kill_of_init);
	run_test(the_room_cannot_end_init);
	run_test(a_network_comes_and_goes);
	run_test(the_room_ends_with_its_network);
	run_test(the_network_ends_with_the_supervisor);
	run_test(a_refused_configuration);
	run_test(a_living_sandbox_is_left_alone);
	run_test(nothing_is_left_after_violence);
	run_test(closed_standard_descriptors);
	run_test(nothing_leaks_here);
	return 0;
}

/* The same once more as somebody without privileges; its lines become comments of one test. */
static void as_an_ordinary_user(void)
{
	char line[512];
	int fds[2], status;
	FILE *lines;
	pid_t pid;

	must(fd_pipe(fds) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		must(dup2(fds[1], 1) == 1);
		must(setgroups(0, NULL) == 0);
		must(setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) == 0);
		must(setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) == 0);
		/* Changing user made us undumpable, and our own /proc root's. */
		prctl(PR_SET_DUMPABLE, 1);
		tap_count = tap_failed = 0;
		set_runtime("user");
		run_all();
		exit(tap_done());
	}
	close(fds[1]);
	lines = fdopen(fds[0], "r");
	must(lines);
	while (fgets(line, sizeof(line), lines))
		printf("# user: %s", line);
	fclose(lines);
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	set_runtime("user");
	fs_remove_tree(AT_FDCWD, runtime);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	set_up();
	set_runtime("self");
	run_all();
	fs_remove_tree(AT_FDCWD, runtime);
	if (geteuid() == 0)
		run_test(as_an_ordinary_user);
	fs_remove_tree(AT_FDCWD, base);
	return tap_done();
}
