/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sandboxes as the control protocol has them, against the real supervisor: outputs that are
 * logged and handed on, processes that are joined, ends that leave a record. */
#include "api/instance/test-conn.h"
#include "base/program.h"

#include <sys/ioctl.h>

static void it_outlives_its_owner_and_says_how_it_ended(void)
{
	struct conn c = create(), d;

	check_int(life_of(id), SANDBOX_LIVE);
	check(record_has("{\"state\":\"running\""));
	check(record_has("\"labels\":{\"k\":\"v\\\"\\\\\"}"));
	check(record_has("\"config\":{\"made\":\"by test\"}"));
	drop_conn(&c);
	d = attach_to(id);
	check_int(run(&d, "exit 3").status, 3);
	stop_it(&d);
	check(record_has("{\"state\":\"stopped\",\"reason\":\"stopped\""));
	check(becomes_zero(count_marked));
	check_int(sandbox_remove(sandboxes, id, NULL), 0);
	check_int(count_dirs(), 0);
}

/* Whoever made it has gone before there was a command: nothing would ever end it. */
static void without_a_command_it_goes_with_its_owner(void)
{
	struct conn c;

	for_one_command = true;
	c = create();
	for_one_command = false;
	check_int(life_of(id), SANDBOX_LIVE);
	drop_conn(&c);
	for (int i = 0; i < 500 && life_of(id) == SANDBOX_LIVE; i++)
		pause_ms(20);
	check(record_has("{\"state\":\"stopped\",\"reason\":\"client-gone\""));
	check_int(sandbox_remove(sandboxes, id, NULL), 0);
	check_int(count_dirs(), 0);
}

static void output_goes_to_the_client_and_into_the_log(void)
{
	struct conn c = create();
	struct running r;
	struct ctl_exec_exited m;

	ask(&c, &r, "echo out; sleep 0.1; echo err >&2; sleep 0.1; echo again; exit 7", 6, 0, false,
		0);
	is_started(&c, &r);
	check_int(r.number, 1);
	m = has_exited(&c, &r);
	check_int(m.status, 7);
	check(!m.signaled);
	check_end_of(r.out[0], "out\nagain\n");
	check_end_of(r.out[1], "err\n");
	check_log(1, 0, "out\nerr\nagain\n");
	check_log(1, 2, "err\n");
	check_int(join(&c, 1).status, 7);
	run_done(&r);
	remove_it(&c);
}

static void environment_directory_and_time_are_the_sandboxes_own(void)
{
	struct conn c = create();
	struct running r;

	ask(&c, &r, "echo $OF $PATH; pwd", 2, 0, false, 0);
	is_started(&c, &r);
	has_exited(&c, &r);
	check_end_of(r.out[0], "exec /usr/local/bin:/usr/bin:/bin\n/tmp\n");
	run_done(&r);
	remove_it(&c);
}

static void a_client_that_does_not_read_holds_only_its_own_process_up(void)
{
	struct conn c = create();
	struct running r, quick;
	struct ctl_exec_exited m;
	_cleanup_(buf_donep) struct buf log = BUF_INIT(64 << 20), got = BUF_INIT(64 << 20);

	ask(&c, &r, "head -c 3000000 /dev/zero; echo done >&2", 2, 0, false, 0);
	is_started(&c, &r);
	ask(&c, &quick, "echo quick", 2, 0, false, 0);
	is_started(&c, &quick);
	has_exited(&c, &quick);
	check_end_of(quick.out[0], "quick\n");
	run_done(&quick);
	wait_for_log(r.number, 1, 1);
	read_log(r.number, 1, &log);
	/* Two pipes of 64 KiB, and not one byte more. */
	check(buf_len(&log) > 0 && buf_len(&log) <= 128 * 1024);
	must(fd_read_to_end(r.out[0], &got) == 0);
	check_int(buf_len(&got), 3000000);
	m = has_exited(&c, &r);
	check_int(m.status, 0);
	check_log(r.number, 2, "done\n");
	buf_clear(&log);
	read_log(r.number, 1, &log);
	check_int(buf_len(&log), 3000000);
	run_done(&r);
	remove_it(&c);
}

static void what_is_left_at_the_end_waits_for_a_slow_reader_alone(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r;
	_cleanup_(buf_donep) struct buf got = BUF_INIT(64 << 20);

	/* More than one pipe, less than two: it ends while its client's pipe is full. */
	ask(&c, &r, "head -c 100000 /dev/zero", 2, 0, false, 0);
	is_started(&c, &r);
	check_int(join(&d, r.number).status, 0);
	must(fd_set_nonblock(c.chan.fd, true) == 0);
	{
		struct pollfd p = {.fd = c.chan.fd, .events = POLLIN};

		check_int(poll(&p, 1, 100), 0); /* not told yet */
	}
	must(fd_read_to_end(r.out[0], &got) == 0);
	check_int(buf_len(&got), 100000);
	check_int(has_exited(&c, &r).status, 0);
	run_done(&r);
	drop_conn(&d);
	remove_it(&c);
}

static void a_grandchild_with_the_pipe_delays_nothing_and_is_still_logged(void)
{
	struct conn c = create();
	struct running r;

	/* It goes on when another command says so, which is after the first has been told to end.
	 */
	ask(&c, &r, "(until [ -e /tmp/go ]; do sleep 0.05; done; echo late) & echo early", 2, 0,
		false, 0);
	is_started(&c, &r);
	has_exited(&c, &r);
	check_end_of(r.out[0], "early\n");
	check_log(r.number, 1, "early\n");
	run(&c, "touch /tmp/go");
	wait_for_log(r.number, 1, strlen("early\nlate\n"));
	check_log(r.number, 1, "early\nlate\n");
	run_done(&r);
	remove_it(&c);
}

static void a_client_that_goes_leaves_its_process_running(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r;

	ask(&c, &r, "echo a; sleep 0.3; echo b; exit 5", 2, 0, false, 0);
	is_started(&c, &r);
	drop_conn(&c);
	run_done(&r);
	check_int(join(&d, 1).status, 5);
	check_log(1, 1, "a\nb\n");
	remove_it(&d);
}

static void many_at_once(void)
{
	enum { N = 60 };
	struct conn c = create();
	struct running r[N];
	char script[64];
	int seen = 0;

	for (int i = 0; i < N; i++) {
		snprintf(script, sizeof(script), "echo %d; exit %d", i, i);
		ask(&c, &r[i], script, 2, 0, false, 0);
	}
	while (seen < 2 * N) {
		struct chan_frame f;
		int got = chan_recv_wait(&c.chan, &f, PATIENCE_MS);

		if (got != 1) {
			tap_fail("%d frames came, then %s", seen, strerror(-got));
			break;
		}
		if (f.type == CTL_EXEC_EXITED) {
			struct ctl_exec_exited m = {0};

			check(ctl_get_exec_exited(f.payload, &m));
			check_int(m.status, m.exec - 1);
		} else {
			check_int(f.type, CTL_EXEC_STARTED);
		}
		chan_frame_done(&f);
		seen++;
	}
	for (int i = 0; i < N; i++) {
		snprintf(script, sizeof(script), "%d\n", i);
		check_end_of(r[i].out[0], script);
		run_done(&r[i]);
	}
	remove_it(&c);
}

/* Far more than fits on the way to init, all before the first answer is read. */
static void a_burst_of_large_requests(void)
{
	enum { N = 100 };
	struct conn c = create();
	struct running r;
	char *script = malloc(60001);
	int started = 0, exited = 0;

	must(script);
	memset(script, ' ', 60000);
	memcpy(script + 59994, "exit 6", 7);
	for (int i = 0; i < N; i++)
		ask(&c, &r, script, 0, 0, false, 0);
	while (exited < N) {
		struct chan_frame f;
		struct ctl_exec_exited m = {0};
		int got = chan_recv_wait(&c.chan, &f, PATIENCE_MS);

		if (got != 1 || (f.type != CTL_EXEC_STARTED && f.type != CTL_EXEC_EXITED)) {
			tap_fail("%d started, %d exited, then %d", started, exited, got);
			break;
		}
		if (f.type == CTL_EXEC_STARTED)
			started++;
		else
			check(ctl_get_exec_exited(f.payload, &m) && m.status == 6 && ++exited);
		chan_frame_done(&f);
	}
	check_int(started, N);
	free(script);
	remove_it(&c);
}

static void wait_for_rows(int tty, unsigned rows)
{
	struct winsize now = {0};

	for (int i = 0; i < 3000; i++) {
		must(ioctl(tty, TIOCGWINSZ, &now) == 0);
		if (now.ws_row == rows)
			return;
		pause_ms(10);
	}
	tap_fail("the terminal has %d rows", now.ws_row);
}

static void a_terminal_is_logged_and_can_be_joined(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r, j = {.fd = -1, .out = {-1, -1}};
	struct ctl_resize size = {.rows = 33, .cols = 99};
	char line[64] = {0};
	size_t n = 0;

	ask(&c, &r, "stty -echo; echo ready; read x; stty size; echo got $x", 2, 0, true, 0);
	is_started(&c, &r);
	check(r.fd >= 0);
	while (n < sizeof(line) - 1 && !strchr(line, '\n')) { /* a terminal may give it in two */
		must(read(r.out[0], line + n, 1) == 1);
		n++;
	}
	check_str(str_from(line), "ready\r\n");
	j.exec = ++d.last;
	must(ctl_send_join(&d.chan, &(struct ctl_join){j.exec, r.number}) == 0);
	is_started(&d, &j);
	check(j.fd >= 0 && isatty(j.fd));
	size.exec = j.exec;
	must(ctl_send_resize(&d.chan, &size) == 0);
	send_all(&d);
	wait_for_rows(j.fd, size.rows);
	check(write(j.fd, "hello\n", 6) == 6);
	check_int(has_exited(&d, &j).status, 0);
	check_int(has_exited(&c, &r).status, 0);
	check_end_of(r.out[0], "33 99\r\ngot hello\r\n");
	check_log(r.number, 1, "ready\r\n33 99\r\ngot hello\r\n");
	run_done(&r);
	run_done(&j);
	drop_conn(&d);
	remove_it(&c);
}

static void join_outputs(struct conn *c, uint32_t number, struct running *ret)
{
	int err[2], out[2];

	must(fd_pipe(out) == 0 && fd_pipe(err) == 0);
	*ret = (struct running){.exec = ++c->last, .fd = -1, .out = {out[0], err[0]}};
	must(ctl_send_join_outputs(&c->chan, &(struct ctl_join){ret->exec, number},
		     (const int[2]){out[1], err[1]}) == 0);
	send_all(c);
	close(out[1]);
	close(err[1]);
}

static uint32_t is_refused(struct conn *c, const struct running *j)
{
	struct chan_frame f = next(c, CTL_EXEC_FAILED);
	struct ctl_exec_failed m = {0};

	check(ctl_get_exec_failed(f.payload, &m) && m.exec == j->exec);
	chan_frame_done(&f);
	return m.code;
}

static void output_can_be_shared_with_one_who_joins(void)
{
	struct conn c = create(), d = attach_to(id), e = attach_to(id);
	struct running r, j, k;
	char big[70000];

	/* More than a pipe holds, of which nobody reads a byte. */
	ask(&c, &r, "while read x; do echo to $x >&2; head -c 70000 /dev/zero; echo; done", 0,
		CTL_EXEC_KEEP_INPUT, false, 0);
	is_started(&c, &r);
	join_outputs(&d, r.number, &j);
	is_started(&d, &j);
	join_outputs(&e, r.number, &k);
	check_int(is_refused(&e, &k), E_BUSY);
	run_done(&k);
	check(write(r.fd, "one\n", 4) == 4);
	must(read(j.out[1], big, sizeof(big)) == 7 && memcmp(big, "to one\n", 7) == 0);
	/* Whoever has gone holds up nobody, and makes room for the next one. */
	run_done(&j);
	join_outputs(&e, r.number, &k);
	is_started(&e, &k);
	check(write(r.fd, "two\n", 4) == 4);
	must(read(k.out[1], big, sizeof(big)) == 7 && memcmp(big, "to two\n", 7) == 0);
	run_done(&k);
	run_done(&r);
	drop_conn(&d);
	drop_conn(&e);
	remove_it(&c);
}

static void output_is_shared_by_two_pipes(void)
{
	struct conn c = create(), d = attach_to(id);
	int file = open("/dev/null", O_WRONLY | O_CLOEXEC), pair[2];
	struct running r, j = {.fd = -1, .out = {-1, -1}};
	struct chan_frame f;

	must(file >= 0 && fd_pipe(pair) == 0);
	ask(&c, &r, "read x", 0, CTL_EXEC_KEEP_INPUT, false, 0);
	is_started(&c, &r);
	j.exec = ++d.last;
	must(ctl_send_join_outputs(&d.chan, &(struct ctl_join){j.exec, r.number},
		     (const int[2]){pair[1], file}) == 0);
	send_all(&d);
	check_int(is_refused(&d, &j), E_USAGE);
	/* One alone is against the protocol. */
	must(message_send(&d.chan, CTL_JOIN, ctl_join_message(),
		     &(struct ctl_join){++d.last, r.number}, &pair[1], 1) == 0);
	send_all(&d);
	check_int(chan_recv_wait(&d.chan, &f, 10000), -EPIPE);
	close(pair[0]);
	close(pair[1]);
	close(file);
	run_done(&r);
	drop_conn(&d);
	remove_it(&c);
}

static void input_can_be_kept_open_for_whoever_joins(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r, j = {.fd = -1, .out = {-1, -1}};

	ask(&c, &r, "read x; echo got $x", 2, CTL_EXEC_KEEP_INPUT, false, 0);
	is_started(&c, &r);
	check(r.fd >= 0);
	j.exec = ++d.last;
	must(ctl_send_join(&d.chan, &(struct ctl_join){j.exec, r.number}) == 0);
	is_started(&d, &j);
	check(j.fd >= 0 && write(j.fd, "word\n", 5) == 5);
	has_exited(&c, &r);
	has_exited(&d, &j);
	check_end_of(r.out[0], "got word\n");
	run_done(&r);
	run_done(&j);
	drop_conn(&d);
	remove_it(&c);
}

static void signals_reach_a_joined_process(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r, j = {.fd = -1, .out = {-1, -1}};
	struct ctl_signal m = {.signo = SIGTERM, .scope = CTL_SCOPE_GROUP};
	struct ctl_exec_exited e;

	ask(&c, &r, "sleep 600", 0, 0, false, 0);
	is_started(&c, &r);
	j.exec = m.exec = ++d.last;
	must(ctl_send_join(&d.chan, &(struct ctl_join){j.exec, r.number}) == 0);
	must(ctl_send_signal(&d.chan, &m) == 0);
	is_started(&d, &j);
	e = has_exited(&d, &j);
	check(e.signaled && e.status == SIGTERM);
	e = has_exited(&c, &r);
	check(e.signaled && e.status == SIGTERM);
	run_done(&r);
	drop_conn(&d);
	remove_it(&c);
}

static void a_timeout_takes_children_in_other_groups_along(void)
{
	struct conn c = create();
	struct running r;
	struct ctl_exec_exited e;

	ask(&c, &r,
		"trap '' TERM; (exec setsid sh -c 'trap \"\" TERM; setsid sleep 700; sleep 701') & "
		"sleep 702; sleep 703",
		0, 0, false, 300 * USEC_PER_MSEC);
	is_started(&c, &r);
	e = has_exited(&c, &r);
	check(e.timed_out && e.signaled && e.status == SIGKILL);
	/* Killed is not yet reaped. */
	check_int(run(&c, "for i in 1 2 3 4 5 6 7 8 9; do n=0; for p in /proc/[0-9]*; do "
			  "read -r x <$p/comm; [ \"$x\" = sleep ] && n=$((n+1)); done 2>/dev/null; "
			  "[ $n = 0 ] && exit 0; sleep 0.1; done; exit $n")
			  .status,
		0);
	run_done(&r);
	remove_it(&c);
}

static void a_flood_keeps_its_end_and_bounds_the_disk(void)
{
	struct conn c = create_with(NULL, EXECLOG_MIN_BYTES);
	_cleanup_(buf_donep) struct buf log = BUF_INIT(64 << 20);
	struct running r;
	struct stat st;
	char path[128];

	ask(&c, &r, "seq 1 500000; exit 9", 0, 0, false, 0);
	is_started(&c, &r);
	check_int(has_exited(&c, &r).status, 9);
	read_log(r.number, 1, &log);
	check(buf_len(&log) <= EXECLOG_MIN_BYTES && buf_len(&log) > EXECLOG_MIN_BYTES / 2);
	check(str_ends(buf_str(&log), STR("\n499999\n500000\n")));
	snprintf(path, sizeof(path), "%s/exec/%u/out", id, r.number);
	must(fstatat(sandboxes, path, &st, 0) == 0);
	check(st.st_blocks * 512 <= EXECLOG_MIN_BYTES + 64 * 1024);
	check_int(st.st_size, 3388895);
	run_done(&r);
	remove_it(&c);
}

static void streams_that_alternate_do_not_fill_the_disk(void)
{
	struct conn c = create_with(NULL, EXECLOG_MIN_BYTES);
	struct running r;
	struct stat st;
	char path[128];

	ask(&c, &r, "i=0; while [ $i -lt 60000 ]; do echo; echo >&2; i=$((i+1)); done", 0, 0, false,
		0);
	is_started(&c, &r);
	check_int(has_exited(&c, &r).status, 0);
	snprintf(path, sizeof(path), "%s/exec/%u/index", id, r.number);
	must(fstatat(sandboxes, path, &st, 0) == 0);
	check(st.st_blocks * 512 <= 5 * 64 * 1024);
	run_done(&r);
	remove_it(&c);
}

static void old_logs_go_and_their_processes_cannot_be_joined(void)
{
	struct conn c = create();
	struct running j = {.exec = 0};
	struct chan_frame f;
	_cleanup_fd_ int first = -1, last = -1;

	for (int i = 0; i < 70; i++)
		run(&c, "echo x");
	for (int i = 0; i < 2000 && (first = open_exec_dir(1)) >= 0; i++) {
		first = fd_close(first);
		pause_ms(10);
	}
	first = open_exec_dir(1);
	last = open_exec_dir(70);
	check(first < 0 && last >= 0);
	j.exec = ++c.last;
	must(ctl_send_join(&c.chan, &(struct ctl_join){j.exec, 1}) == 0);
	f = next(&c, CTL_EXEC_FAILED);
	chan_frame_done(&f);
	check_int(join(&c, 70).status, 0);
	remove_it(&c);
}

static void a_name_has_one_holder(void)
{
	struct conn c = create_with("twin", 0), d;
	char first[RUNDIR_ID_BYTES + 1], found[RUNDIR_ID_BYTES + 1];
	struct cloche_err e = CLOCHE_ERR_INIT;
	struct chan_frame f;

	memcpy(first, id, sizeof(id));
	check_int(sandbox_resolve(sandboxes, "twin", found, NULL), 0);
	check_str(str_from(found), id);
	d = begin("twin", 0);
	f = next(&d, CTL_ERROR);
	check_int(ctl_get_error(f.payload, &e), -E_EXISTS);
	check(strstr(e.message, first) != NULL);
	drop_conn(&d);
	memcpy(id, first, sizeof(id));
	stop_it(&c);
	/* Ended, but still listed: the name is taken. */
	d = begin("twin", 0);
	f = next(&d, CTL_ERROR);
	drop_conn(&d);
	check_int(sandbox_remove(sandboxes, first, NULL), 0);
	c = create_with("twin", 0);
	remove_it(&c);
	check(becomes_zero(count_dirs));
}

static void figures_and_layers_are_answered(void)
{
	struct conn c = create();
	struct ctl_stats_now m = {0};
	struct chan_frame f;

	run(&c, "exit 0");
	must(ctl_send_stats(&c.chan) == 0 && ctl_send_layers(&c.chan) == 0 &&
		ctl_send_stats(&c.chan) == 0);
	f = next(&c, CTL_STATS_NOW);
	check(ctl_get_stats_now(f.payload, &m));
	check(m.uptime_usec > 0 && m.execs_total == 1 && m.execs_running == 0);
	chan_frame_done(&f);
	must(chan_recv_wait(&c.chan, &f, PATIENCE_MS) == 1);
	check(f.type == CTL_LAYERS_ARE ? f.fds_n == 2 : f.type == CTL_REFUSED);
	chan_frame_done(&f);
	f = next(&c, CTL_STATS_NOW);
	chan_frame_done(&f);
	remove_it(&c);
}

static void run_list(void)
{
	signal(SIGPIPE, SIG_IGN);
	sandboxes = fd_close(sandboxes);
	run_test(it_outlives_its_owner_and_says_how_it_ended);
	run_test(without_a_command_it_goes_with_its_owner);
	run_test(output_goes_to_the_client_and_into_the_log);
	run_test(environment_directory_and_time_are_the_sandboxes_own);
	run_test(a_client_that_does_not_read_holds_only_its_own_process_up);
	run_test(what_is_left_at_the_end_waits_for_a_slow_reader_alone);
	run_test(a_grandchild_with_the_pipe_delays_nothing_and_is_still_logged);
	run_test(a_client_that_goes_leaves_its_process_running);
	run_test(many_at_once);
	run_test(a_burst_of_large_requests);
	run_test(a_terminal_is_logged_and_can_be_joined);
	run_test(input_can_be_kept_open_for_whoever_joins);
	run_test(output_can_be_shared_with_one_who_joins);
	run_test(output_is_shared_by_two_pipes);
	run_test(signals_reach_a_joined_process);
	run_test(a_timeout_takes_children_in_other_groups_along);
	run_test(a_flood_keeps_its_end_and_bounds_the_disk);
	run_test(streams_that_alternate_do_not_fill_the_disk);
	run_test(old_logs_go_and_their_processes_cannot_be_joined);
	run_test(a_name_has_one_holder);
	run_test(figures_and_layers_are_answered);
}

int main(void)
{
	return run_everything(run_list);
}
