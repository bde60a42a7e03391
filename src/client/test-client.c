/* SPDX-License-Identifier: Apache-2.0 */
/* What a process says, hears, and how it ends. */
#include "client/test-job.h"

#include <sys/mman.h>

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
		check(!j.result.end.signaled && !j.result.end.timed_out && !j.result.end.stopped);
		check_int(j.result.end.status, codes[i]);
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
		check(j.result.end.signaled);
		check_int(j.result.end.status, signals[i]);
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
	char env_cmd[] = "env", path[] = "PATH=/usr/bin:/bin", x[] = "X=a b\nc", home[] = "HOME=/x",
	     *argv[] = {env_cmd, NULL};
	char *env[] = {path, x, home, NULL};
	struct job j;

	job_init(&j, "");
	must(exec_spec_set(&j.spec, argv, env, NULL, NULL) == 0);
	job_run(&j);
	/* The room adds the user's, where they are not set. */
	check_out(j, 1, "PATH=/usr/bin:/bin\nX=a b\nc\nHOME=/x\nUSER=root\nLOGNAME=root\n");
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

static void input_from_elsewhere(void)
{
	char *big = calloc(50, CLIENT_CHUNK); /* far more than a pipe holds */
	int fds[2];
	struct job j;

	must(big && fd_pipe(fds) == 0);
	must(fd_write_all(fds[1], "from a pipe", 11) == 0);
	close(fds[1]);
	job_init(&j, "cat");
	j.io.input = CLIENT_INPUT_FD;
	j.io.fd = fds[0];
	job_run(&j);
	check_out(j, 1, "from a pipe");
	job_done(&j);
	close(fds[0]);

	/* epoll takes neither. */
	fds[0] = memfd_create("input", MFD_CLOEXEC);
	must(fds[0] >= 0 && ftruncate(fds[0], 300000) == 0);
	job_init(&j, "wc -c");
	j.io.input = CLIENT_INPUT_FD;
	j.io.fd = fds[0];
	job_run(&j);
	check_out(j, 1, "300000\n");
	job_done(&j);
	close(fds[0]);
	job_init(&j, "wc -c");
	j.io.input = CLIENT_INPUT_FD;
	j.io.fd = 1000; /* closed */
	job_run(&j);
	check_out(j, 1, "0\n");
	job_done(&j);

	job_init(&j, "wc -c");
	j.io.input = CLIENT_INPUT_BYTES;
	j.io.bytes = str_make(big, (size_t)50 * CLIENT_CHUNK);
	job_run(&j);
	check_out(j, 1, "3276800\n");
	job_done(&j);
	free(big);
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
	check_int(j.result.end.status, 7);
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
	check_int(j.result.end.status, 0);
	for (int i = 0; i < 2; i++) {
		struct str got = buf_str(&j.taken.out[i]);
		size_t wrong = 0;

		check_int(got.n, 10000000);
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

	job_init(&j, "head -c 3000000 /dev/zero && printf 1234567890 >&2; exit 4");
	j.io.output_limit = 1000000;
	job_run(&j);
	check_int(j.result.end.status, 4);
	check_int(buf_len(&j.taken.out[0]), 1000000);
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
	check(j.result.end.signaled);
	check_int(j.result.end.status, SIGPIPE);
	job_done(&j);
}

/* --- terminal --- */

static void *resize_soon(void *arg)
{
	struct job *j = arg;

	wait_for_word(j);
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

	job_init(&j, "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.1; done");
	j.spec.tty = true;
	run_beside(&j, resize_soon);
	out = buf_str(&j.taken.out[0]);
	check_int(j.result.end.status, 0);
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
	check_int(j.code, 0);
	check(j.result.end.timed_out);
	check(ended_by(&j, SIGTERM));
	j.spec.timeout_usec = 0;
	free(j.spec.argv[2]);
	j.spec.argv[2] = strdup("exit 5");
	job_exec(&j);
	check_int(j.code, 0);
	check_int(j.result.end.status, 5);
	check(!j.result.end.timed_out);
	check_int(client_stop(j.client, USEC_PER_SEC), 0);
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_STOPPED);
	job_done(&j);
}

static void a_room_that_cannot_be_made(void)
{
	struct job j;

	job_init(&j, "true");
	must((j.room.init_path = strdup("/no/such/source")));
	job_run(&j);
	check(j.code < 0);
	check(strstr(j.err.message, "/no/such/source"));
	check_int(j.ended.reason, CTL_REASON_FAILED);
	job_done(&j);
}

/* The name that is asked for goes to the supervisor, which judges it again. */
static void a_provider_that_is_not_there(void)
{
	static struct {
		char name[16];
		int code;
	} rows[] = {{"nonsense", E_USAGE}, {"srt", 0}, {"native", 0}, {"", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct client_start start = {.m = {.one_shot = true, .provider = rows[i].name}};
		struct job j;
		int config;

		job_init(&j, "true");
		start.room = &j.room;
		check_int(client_new(&start, &j.client, &config, &j.err), 0);
		job_exec(&j);
		check_int(j.code, -rows[i].code);
		check(rows[i].code || strcmp(client_provider(j.client), "native") == 0);
		check(rows[i].code != E_USAGE || strstr(j.err.message, "auto or native"));
		check_int(client_finish(j.client, &j.ended, NULL), 0);
		job_done(&j);
	}
}

static void run_list(void)
{
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
	run_test(a_terminal);
	run_test(a_terminal_keeps_the_last_words);
	run_test(many_processes_one_room);
	run_test(a_room_that_cannot_be_made);
	run_test(a_provider_that_is_not_there);
}

int main(void)
{
	return run_everything(run_list);
}
