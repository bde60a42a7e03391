/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that become a stream, and those that do not. */
#include "base/clock.h"
#include "base/fd.h"
#include "provider/program/operations.h"
#include "provider/provider.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST "cloche-provider 1\nid x\nfar cat\nend\n"
/* Read the request, and not a byte more. */
#define HEAR "while read -r key rest; do [ \"$key\" != end ] || break; done\n"

static struct cloche_err err;
static char dir[TAP_DIR_BYTES], path[TAP_DIR_BYTES + 16];

/* A provider whose program is this script. */
static struct provider write_program(const char *script)
{
	struct provider p = program_provider;
	FILE *f;

	snprintf(path, sizeof(path), "%s/program", dir);
	f = fopen(path, "w");
	must(f != NULL);
	must(fprintf(f, "#!/bin/sh\n%s", script) > 0 && fclose(f) == 0);
	must(chmod(path, 0700) == 0);
	p.name = "mine";
	p.path = path;
	return p;
}

static int ask(
	const char *script, bool far, struct words_answer *answer, struct process_stream *stream)
{
	struct provider p = write_program(script);
	struct process run;
	int r;

	err_clear(&err);
	must(process_begin(&run, &p,
		     &(struct process_ask){.verb = "create",
			     .request = STR(REQUEST),
			     .patience_sec = 20,
			     .far = far},
		     &err) == 0);
	r = far ? process_end_or_stream(&run, answer, stream, &err)
		: process_end(&run, answer, &err);
	return r;
}

/* Read until `want` has come, or the end. */
static void check_bytes(int fd, const char *want)
{
	char got[256] = "";
	size_t n = 0, all = strlen(want);

	while (n < all) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t one = poll(&p, 1, 20000) == 1 ? read(fd, got + n, all - n) : 0;

		if (one <= 0)
			break;
		n += (size_t)one;
	}
	check_z(got, want);
}

static void a_program_becomes_the_stream(void)
{
	struct process_stream s = PROCESS_STREAM_NONE;
	struct words_answer a;

	check_int(ask(HEAR "echo cannot pids: no\necho far\nexec cat\n", true, &a, &s), 1);
	check(a.far && !a.ok && a.cannot_n == 1);
	check_int(fd_write_all(s.to, "there and back\n", 15), 0);
	check_bytes(s.from, "there and back\n");
	check_int(kill(s.pid, 0), 0);
	check(WIFSIGNALED(process_stream_end(&s)));
	check(s.pid == 0 && s.to == -1 && s.from == -1 && s.pidfd == -1);
	check_int(process_stream_end(&s), 0);
}

/* What the program says at once behind its answer is the stream's first byte. */
static void no_byte_of_the_stream_is_lost(void)
{
	struct process_stream s = PROCESS_STREAM_NONE;
	struct words_answer a;

	check_int(ask(HEAR "printf 'later word\\nfar\\nok\\nerror x\\nfar\\n'\nexit 7\n", true, &a,
			  &s),
		1);
	check_bytes(s.from, "ok\nerror x\nfar\n");
	check_int(poll(&(struct pollfd){.fd = s.pidfd, .events = POLLIN}, 1, 20000), 1);
	check_int(WEXITSTATUS(process_stream_end(&s)), 7);
}

static void its_input_ends_as_a_pipe_does(void)
{
	struct process_stream s = PROCESS_STREAM_NONE;
	struct words_answer a;

	check_int(ask(HEAR "echo far\ncat >/dev/null\necho all\n", true, &a, &s), 1);
	s.to = fd_close(s.to);
	check_bytes(s.from, "all\n");
	(void)process_stream_end(&s);
}

/* Begin, with no time at all, and wait until the program has ended or cannot go on by itself. */
static int ask_late(const char *script, bool far, bool ends, struct words_answer *answer)
{
	struct provider p = write_program(script);
	struct process run;

	err_clear(&err);
	must(process_begin(&run, &p,
		     &(struct process_ask){.verb = "create", .request = STR(REQUEST), .far = far},
		     &err) == 0);
	if (ends)
		check_int(poll(&(struct pollfd){.fd = run.pidfd, .events = POLLIN}, 1, 20000), 1);
	else
		check_int(poll(&(struct pollfd){.fd = run.from, .events = POLLIN}, 1, 20000), 1);
	return process_end(&run, answer, &err);
}

/* Whoever asks many hears each of them late: it has had its request at once, and its answer counts.
 */
static void an_answer_that_is_there_is_not_late(void)
{
	struct words_answer a;

	check_int(ask_late(HEAR "echo version 7\necho ok\n", false, true, &a), 0);
	check(a.ok);
	check_z(a.version, "7");
	check_int(ask_late(HEAR "echo error no\nexit 1\n", false, true, &a), -E_UNSUPPORTED);
	check_z(err.message, "provider mine: no");
	check_int(
		ask_late(HEAR "echo version 7\nexec sleep 1000\n", false, false, &a), -E_PROTOCOL);
	check_z(err.message, "provider mine did not answer create in 0 s");
}

static int ask_place(const char *script, int patience_sec, struct provider_about *about)
{
	struct provider p = write_program(script);
	struct provider_asked *asked = NULL;

	err_clear(&err);
	must(provider_ask_place(&p, "me@there", patience_sec, &asked, &err) == 0);
	return p.hear_place(asked, about, &err);
}

static void a_place_is_asked(void)
{
	struct provider native = {.name = "native"};
	struct provider_asked *asked = NULL;
	struct provider_about about;

	check_int(ask_place("while read -r key rest; do\n"
			    "case $key in place) echo version $rest;; far) echo error x; exit 1;; "
			    "end) break;; esac\ndone\necho hint try\necho ok\n",
			  20, &about),
		0);
	check_z(about.version, "me@there");
	check_z(about.doubt, "try");
	check_int(ask_place("echo hint try\necho error it is down\nexit 1\n", 20, &about),
		-E_UNSUPPORTED);
	check_z(err.message, "it is down");
	check_z(err.hint, "try");
	check_int(ask_place("exec sleep 1000\n", 0, &about), 1);
	check_int(err.code, 0);
	check_int(provider_ask_place(&native, "there", 1, &asked, &err), -E_UNSUPPORTED);
	check(!asked);
}

static void all_of_its_group_ends(void)
{
	struct process_stream s = PROCESS_STREAM_NONE;
	struct words_answer a;
	char c;

	check_int(ask(HEAR "echo far\nsleep 1000 &\nwait\n", true, &a, &s), 1);
	must(fcntl(s.from, F_GETFD) >= 0);
	{
		int from = fcntl(s.from, F_DUPFD_CLOEXEC, 3);

		(void)process_stream_end(&s);
		/* Nobody has the other end any more. */
		check_int(poll(&(struct pollfd){.fd = from, .events = POLLIN}, 1, 20000), 1);
		check_int(read(from, &c, 1), 0);
		fd_close(from);
	}
}

static void other_answers_are_as_ever(void)
{
	static const struct {
		const char *script;
		bool far;
		int code;
		const char *said;
	} rows[] = {
		{HEAR "echo ok\n", true, 0, ""},
		{HEAR "echo ok\n", false, 0, ""},
		/* It need not read its request. */
		{"echo ok\n", true, 0, ""},
		{HEAR "echo hint try\necho error it is broken\nexit 1\n", true, E_UNSUPPORTED,
			"provider mine: it is broken"},
		{HEAR "exit 3\n", true, E_PROTOCOL,
			"provider mine answered create neither with \"ok\" nor with an error"},
		{HEAR "kill -9 $$\n", true, E_PROTOCOL,
			"provider mine was ended by signal 9 during create"},
		/* Nobody has asked for a stream. */
		{HEAR "echo far\nexec cat\n", false, E_PROTOCOL,
			"provider mine answered create neither with \"ok\" nor with an error"},
		/* A last line that is not whole is none. */
		{HEAR "printf far\n", true, E_PROTOCOL,
			"provider mine answered create neither with \"ok\" nor with an error"},
		{HEAR "yes x\n", true, E_PROTOCOL, "provider mine answered create with too much"},
		{HEAR "yes ''\n", true, E_PROTOCOL, "provider mine answered create with too much"},
		{HEAR "yes ''\n", false, E_PROTOCOL, "provider mine answered create with too much"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct process_stream s = PROCESS_STREAM_NONE;
		struct words_answer a;

		check_int(ask(rows[i].script, rows[i].far, &a, &s), -rows[i].code);
		check_z(rows[i].code ? err.message : "", rows[i].said);
		check_int(s.pid, 0);
	}
}

/* Return (heap) what goes to our standard error while fn runs. */
static char *said_by(void (*fn)(void))
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	_cleanup_fd_ int before = fcntl(2, F_DUPFD_CLOEXEC, 3);
	int pair[2];

	must(before >= 0 && fd_pipe(pair) == 0 && dup2(pair[1], 2) == 2);
	fd_close(pair[1]);
	fn();
	must(dup2(before, 2) == 2);
	must(fd_read_to_end(pair[0], &b) == 0);
	fd_close(pair[0]);
	return str_dup(buf_str(&b));
}

static void speak(void)
{
	struct process_stream s = PROCESS_STREAM_NONE;
	struct words_answer a;

	check_int(ask(HEAR "echo one >&2\necho far\nprintf 'two\\033[31m\\n' >&2\necho x\nread x\n",
			  true, &a, &s),
		1);
	check_bytes(s.from, "x\n");
	(void)process_stream_end(&s);
}

static void flood(void)
{
	struct process_stream s = PROCESS_STREAM_NONE;
	struct words_answer a;

	check_int(ask(HEAR "yes word | head -c 500000 >&2\necho far\nyes word >&2\n", true, &a, &s),
		1);
	(void)process_stream_end(&s);
}

static void talk_on(void)
{
	struct words_answer a;

	check_int(ask_late("exec yes x\n", false, false, &a), -E_PROTOCOL);
	check_int(ask_late("exec yes x\n", true, false, &a), -E_PROTOCOL);
	check_int(ask_late("echo x\nexec yes x >&2\n", true, false, &a), -E_PROTOCOL);
	check_z(err.message, "provider mine did not answer create in 0 s");
}

/* However much it says, and wherever. */
static void nobody_talks_on_after_the_time(void)
{
	_cleanup_(freep) char *said = said_by(talk_on);

	check(said && strlen(said) <= 16 * 1024);
}

/* It may come from the other place. */
static void what_it_says_besides_is_safe_and_bounded(void)
{
	_cleanup_(freep) char *said = said_by(speak), *much = said_by(flood);

	check_z(said, "one\ntwo\\x1B[31m\n");
	must(much != NULL);
	check_int((long long)strlen(much), 16 * 1024);
}

static void requests_say_where(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	check_int(describe_id(&(struct describe_which){"x", "me@a b", "cat\n"}, &b), 0);
	check_str(buf_str(&b), "cloche-provider 1\nid x\nplace me@a\\0040b\nfar cat\\0012\nend\n");
	buf_clear(&b);
	check_int(describe_id(&(struct describe_which){0}, &b), 0);
	check_str(buf_str(&b), "cloche-provider 1\nend\n");
}

/* So that what a crash leaves elsewhere is removed there. */
static void a_record_says_where(void)
{
	_cleanup_(buf_donep) struct buf record = BUF_INIT(65536), heard = BUF_INIT(65536);
	_cleanup_(room_spec_donep) struct room_spec s;
	char script[2 * TAP_DIR_BYTES];
	struct provider p;

	snprintf(script, sizeof(script), "cat >%s/heard\necho ok\n", dir);
	p = write_program(script);
	room_spec_init(&s);
	s.id = strdup("sandbox-abcdefghijklmnopqrstu");
	s.place = strdup("me@there");
	s.init_path = strdup("/init");
	must(setenv("DOCKER_HOST", "unix:///x", 1) == 0);
	check_int(p.plan(&p, &s, &record, &err), 0);
	check(str_find(buf_str(&record), STR("u\nplace=me@there\n")) < buf_len(&record));
	check_int(p.reap(&p, buf_str(&record), &err), 0);
	snprintf(script, sizeof(script), "%s/heard", dir);
	must(fd_read_file(AT_FDCWD, script, &heard, &err) == 0);
	check(str_starts(buf_str(&heard),
		STR("cloche-provider 1\nid sandbox-abcdefghijklmnopqrstu\nplace me@there\nfar ")));
	check(str_ends(buf_str(&heard), STR("reap\\0040sandbox-abcdefghijklmnopqrstu\nend\n")));
	unlink(script);
}

/* Only who is asked to connect can know that the room is gone. */
static void a_room_that_is_gone_is_an_error_of_its_own(void)
{
	static const struct {
		const char *verb;
		int code;
	} rows[] = {{"connect", E_BROKEN}, {"create", E_UNSUPPORTED}};
	struct words_answer answer;
	struct provider p = write_program("printf 'gone\\nerror it has ended\\n'; exit 1\n");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_int(process_run(&p,
				  &(struct process_ask){.verb = rows[i].verb, .patience_sec = 30},
				  &answer, &err),
			-rows[i].code);
		check(strstr(err.message, ": it has ended") != NULL);
	}
}

static void a_far_room_tells_its_lifetime(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(65536);
	_cleanup_(room_spec_donep) struct room_spec s;

	room_spec_init(&s);
	s.id = strdup("sandbox-x");
	check_int(describe_far(&s, "true", &b, &err), 0);
	check(str_find(buf_str(&b), STR("\nlifetime ")) == buf_len(&b));
	s.lifetime_usec = 90 * USEC_PER_SEC;
	check_int(describe_far(&s, "true", &b, &err), 0);
	check(str_find(buf_str(&b), STR("\nlifetime 91\n")) < buf_len(&b));
}

static void a_far_room_names_nothing_of_this_machine(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(65536);
	_cleanup_(room_spec_donep) struct room_spec s;

	room_spec_init(&s);
	s.id = strdup("x");
	s.place = strdup("there");
	s.init_path = strdup("/own/init");
	s.limits.memory_bytes = 1 << 20;
	must(room_spec_add_mount(&s, "/usr", "/own/usr", true, &err) == 0);
	check_int(describe_far(&s, "exec cat", &b, &err), 0);
	must(buf_cstr(&b) != NULL);
	check(strstr(buf_data(&b),
		      "cloche-provider 1\nid x\nplace there\nfar exec\\0040cat\nhostname ") ==
		buf_data(&b));
	check(strstr(buf_data(&b), "\nmemory 1048576\nend\n") != NULL);
	check(strstr(buf_data(&b), "/own/") == NULL && strstr(buf_data(&b), "mount") == NULL);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	tap_dir(dir);
	run_test(a_program_becomes_the_stream);
	run_test(no_byte_of_the_stream_is_lost);
	run_test(its_input_ends_as_a_pipe_does);
	run_test(an_answer_that_is_there_is_not_late);
	run_test(nobody_talks_on_after_the_time);
	run_test(a_place_is_asked);
	run_test(all_of_its_group_ends);
	run_test(other_answers_are_as_ever);
	run_test(what_it_says_besides_is_safe_and_bounded);
	run_test(requests_say_where);
	run_test(a_record_says_where);
	run_test(a_far_room_names_nothing_of_this_machine);
	run_test(a_room_that_is_gone_is_an_error_of_its_own);
	run_test(a_far_room_tells_its_lifetime);
	unlink(path);
	rmdir(dir);
	return tap_done();
}
