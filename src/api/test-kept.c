/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sandboxes as the control protocol has them, against the real supervisor: outputs that are
 * logged and handed on, processes that are joined, ends that leave a record. */
#include "test-kept.h"
#include "base/program.h"

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
	pause_ms(100);
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
	uint64_t before = clock_mono_usec();

	ask(&c, &r, "(sleep 0.5; echo late) & echo early", 2, 0, false, 0);
	is_started(&c, &r);
	has_exited(&c, &r);
	check(clock_mono_usec() - before < 400 * USEC_PER_MSEC);
	check_end_of(r.out[0], "early\n");
	pause_ms(900);
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

static void a_terminal_is_logged_and_can_be_joined(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r, j = {.fd = -1, .out = {-1, -1}};
	struct ctl_resize size = {.rows = 33, .cols = 99};
	char line[64] = {0};

	ask(&c, &r, "stty -echo; echo ready; read x; stty size; echo got $x", 2, 0, true, 0);
	is_started(&c, &r);
	check(r.fd >= 0);
	check(read(r.out[0], line, sizeof(line) - 1) > 0);
	check_str(str_from(line), "ready\r\n");
	j.exec = ++d.last;
	must(ctl_send_join(&d.chan, j.exec, r.number) == 0);
	is_started(&d, &j);
	check(j.fd >= 0 && isatty(j.fd));
	size.exec = j.exec;
	must(ctl_send_resize(&d.chan, &size) == 0);
	send_all(&d);
	pause_ms(100);
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

static void input_can_be_kept_open_for_whoever_joins(void)
{
	struct conn c = create(), d = attach_to(id);
	struct running r, j = {.fd = -1, .out = {-1, -1}};

	ask(&c, &r, "read x; echo got $x", 2, CTL_EXEC_KEEP_INPUT, false, 0);
	is_started(&c, &r);
	check(r.fd >= 0);
	j.exec = ++d.last;
	must(ctl_send_join(&d.chan, j.exec, r.number) == 0);
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
	must(ctl_send_join(&d.chan, j.exec, r.number) == 0);
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
	for (int i = 0; i < 200 && (first = open_exec_dir(1)) >= 0; i++) {
		first = fd_close(first);
		pause_ms(10);
	}
	first = open_exec_dir(1);
	last = open_exec_dir(70);
	check(first < 0 && last >= 0);
	j.exec = ++c.last;
	must(ctl_send_join(&c.chan, j.exec, 1) == 0);
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
	struct ctl_stats m = {0};
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

static int listen_on(uint32_t address, uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(address)}};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 16) == 0);
	must(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void only_loopback_listeners_are_forwarded(void)
{
	struct conn c = create();
	struct cloche_err e = CLOCHE_ERR_INIT;
	struct ctl_forward m = {.guest_port = 80, .host_address = STR("0.0.0.0")};
	uint16_t request;
	int fd = listen_on(INADDR_ANY, &m.host_port), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct chan_frame f;

	must(ctl_send_forward(&c.chan, &m, fd) == 0 && ctl_send_forward(&c.chan, &m, null) == 0);
	for (int i = 0; i < 2; i++) {
		f = next(&c, CTL_REFUSED);
		check_int(ctl_get_refused(f.payload, &request, &e), -E_DENIED);
		check_int(request, CTL_FORWARD);
	}
	close(fd);
	close(null);
	remove_it(&c);
}

static void forward_to(struct conn *c, uint16_t guest, uint16_t *ret_host)
{
	struct ctl_forward m = {.guest_port = guest, .host_address = STR("127.0.0.1")};
	int fd = listen_on(INADDR_LOOPBACK, &m.host_port);
	struct chan_frame f;

	must(ctl_send_forward(&c->chan, &m, fd) == 0);
	f = next(c, CTL_FORWARDED);
	chan_frame_done(&f);
	close(fd);
	*ret_host = m.host_port;
}

static int call(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr = {htonl(INADDR_LOOPBACK)},
		.sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return fd_close(fd);
	return fd;
}

#define PY_SERVER                                                                                  \
	"exec python3 -c 'import socket,threading\n"                                               \
	"def serve(c):\n"                                                                          \
	"  d=b\"\"\n"                                                                              \
	"  while True:\n"                                                                          \
	"    x=c.recv(65536)\n"                                                                    \
	"    if not x: break\n"                                                                    \
	"    d+=x\n"                                                                               \
	"  c.sendall(d.upper()); c.close()\n"                                                      \
	"s=socket.socket(); s.bind((\"127.0.0.1\",8080)); s.listen(64)\n"                          \
	"print(\"up\",flush=True)\n"                                                               \
	"while True: threading.Thread(target=serve,args=s.accept()[:1]).start()\n'"

static void a_port_leads_into_the_room(void)
{
	enum { N = 20, SIZE = 300000 };
	struct conn c = create();
	struct running r;
	uint16_t port, nobody;
	int calls[N], fd;
	char *data = malloc(SIZE), line[8] = {0};

	must(data);
	ask(&c, &r, PY_SERVER, 2, 0, false, 0);
	is_started(&c, &r);
	must(read(r.out[0], line, sizeof(line)) == 3);
	forward_to(&c, 8080, &port);
	forward_to(&c, 8081, &nobody);
	check(record_has("\"guest_port\":8080,\"host_address\":\"127.0.0.1\""));
	memset(data, 'a', SIZE);
	for (int i = 0; i < N; i++) {
		calls[i] = call(port);
		check(calls[i] >= 0);
		check_int(fd_write_all(calls[i], data, i == 0 ? SIZE : 100), 0);
		check_int(shutdown(calls[i], SHUT_WR), 0);
	}
	memset(data, 'A', SIZE);
	for (int i = 0; i < N; i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(SIZE + 10);

		check_int(fd_read_to_end(calls[i], &b), 0);
		check(str_eq(buf_str(&b), str_make(data, i == 0 ? SIZE : 100)));
		close(calls[i]);
	}
	fd = call(nobody);
	check(fd < 0 || read(fd, line, 1) <= 0);
	fd_close(fd);
	run_done(&r);
	remove_it(&c);
	check_int(call(port), -1);
	free(data);
}

static void a_killed_supervisor_leaves_nothing_after_a_sweep(void)
{
	struct conn c = create();
	struct running r;
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	struct sandbox_entry e;
	const char *at;

	ask(&c, &r, "sleep 800", 0, 0, false, 0);
	is_started(&c, &r);
	must(sandbox_open(sandboxes, id, &e, NULL) == 0);
	must(sandbox_read_record(&e, &b, NULL) == 0);
	sandbox_entry_done(&e);
	at = strstr(buf_cstr(&b), "\"pid\":");
	must(at && kill((pid_t)strtol(at + 6, NULL, 10), SIGKILL) == 0);
	check(becomes_zero(count_marked));
	for (int i = 0; i < 200 && life_of(id) == SANDBOX_LIVE; i++)
		pause_ms(10);
	check_int(life_of(id), SANDBOX_CRASHED);
	sandboxes_sweep(sandboxes, NULL, NULL);
	check_int(count_dirs(), 0);
	drop_conn(&c);
}

static void what_clients_may_not_send_ends_them_alone(void)
{
	struct conn c = create();

	for (int i = 0; i < 6; i++) {
		struct conn d = attach_to(id);
		struct chan_frame f;
		struct ctl_exec m = {.exec = 1};
		int r = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
		const int fds[3] = {null, null, null};

		exec_spec_init(&m.spec);
		switch (i) {
		case 0:
			r = ctl_send_attach(&d.chan);
			break;
		case 1:
			r = chan_send(&d.chan, CTL_STATS, STR("x"), NULL, 0);
			break;
		case 2:
			r = chan_send(&d.chan, CTL_JOIN, STR("x"), NULL, 0);
			break;
		case 3:
			r = chan_send(&d.chan, CTL_LAYERS, STR_NULL, fds, 1);
			break;
		case 4: /* handles rise */
			r = ctl_send_join(&d.chan, 5, 1);
			if (r == 0)
				r = ctl_send_join(&d.chan, 5, 1);
			break;
		default: /* a terminal takes no descriptors but its copy */
			m.spec.tty = true;
			m.stdio[0] = CTL_STDIO_FD;
			r = ctl_send_exec(&d.chan, &m, fds);
		}
		must(r == 0);
		while ((r = chan_recv_wait(&d.chan, &f, PATIENCE_MS)) == 1)
			chan_frame_done(&f);
		check_int(r, -EPIPE);
		close(null);
		drop_conn(&d);
	}
	check_int(run(&c, "exit 4").status, 4);
	remove_it(&c);
}

static void a_flood_of_requests_harms_its_sender_alone(void)
{
	enum { FLOOD = 60000, CROWD = 300 };
	struct conn c = create(), d = attach_to(id), crowd[CROWD];
	int sent = 0, away = 0;
	struct sandbox_entry e;

	/* It never reads an answer. */
	while (sent < FLOOD && ctl_send_stats(&d.chan) == 0) {
		sent++;
		if (sent % 1000 == 0 && chan_flush_wait(&d.chan, 100) < 0)
			break;
	}
	check_int(run(&c, "exit 4").status, 4);
	drop_conn(&d);

	must(sandbox_open(sandboxes, id, &e, NULL) == 0);
	for (int i = 0; i < CROWD; i++) {
		int fd = sandbox_connect(&e, NULL);

		crowd[i] = (struct conn){0};
		must(fd >= 0 && chan_init(&crowd[i].chan, fd, CTL_MAX_PAYLOAD, 4096) == 0);
	}
	sandbox_entry_done(&e);
	check_int(run(&c, "exit 5").status, 5);
	for (int tries = 0; tries < 500 && away < CROWD - 256; tries++) {
		away = 0;
		for (int i = 0; i < CROWD; i++) {
			struct pollfd p = {.fd = crowd[i].chan.fd, .events = POLLIN};

			away += poll(&p, 1, 0) == 1;
		}
		pause_ms(10);
	}
	for (int i = 0; i < CROWD; i++)
		drop_conn(&crowd[i]);
	check(away >= CROWD - 256);
	d = attach_to(id);
	check_int(run(&d, "exit 6").status, 6);
	drop_conn(&d);
	remove_it(&c);
}

static void output_to_something_else_than_a_pipe_is_refused(void)
{
	struct conn c = create();
	struct ctl_exec m = {.exec = ++c.last, .stdio = {0, CTL_STDIO_FD, 0}};
	char t[] = "true", *argv[] = {t, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int fds[3] = {-1, null, -1};
	struct ctl_exec_failed e = {0};
	struct chan_frame f;

	exec_spec_init(&m.spec);
	must(exec_spec_set(&m.spec, argv, NULL, NULL, NULL) == 0);
	must(ctl_send_exec(&c.chan, &m, fds) == 0);
	f = next(&c, CTL_EXEC_FAILED);
	check(ctl_get_exec_failed(f.payload, &e));
	check_int(e.code, E_USAGE);
	exec_spec_done(&m.spec);
	close(null);
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
	run_test(signals_reach_a_joined_process);
	run_test(a_timeout_takes_children_in_other_groups_along);
	run_test(a_flood_keeps_its_end_and_bounds_the_disk);
	run_test(streams_that_alternate_do_not_fill_the_disk);
	run_test(old_logs_go_and_their_processes_cannot_be_joined);
	run_test(a_name_has_one_holder);
	run_test(figures_and_layers_are_answered);
	run_test(only_loopback_listeners_are_forwarded);
	run_test(a_port_leads_into_the_room);
	run_test(a_killed_supervisor_leaves_nothing_after_a_sweep);
	run_test(what_clients_may_not_send_ends_them_alone);
	run_test(a_flood_of_requests_harms_its_sender_alone);
	run_test(output_to_something_else_than_a_pipe_is_refused);
}

int main(void)
{
	return run_everything();
}
