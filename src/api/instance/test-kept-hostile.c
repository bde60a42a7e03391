/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sandboxes whose clients break the control protocol, or whose supervisor is killed. */
#include "api/instance/test-conn.h"

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
	for (int i = 0; i < 2000 && life_of(id) == SANDBOX_LIVE; i++)
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
		static char command[] = "true";
		char *argv[] = {command, NULL};

		exec_spec_init(&m.spec);
		switch (i) {
		case 0:
			r = ctl_send_attach(&d.chan, &(struct ctl_attach){.version = CTL_VERSION});
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
			r = ctl_send_join(&d.chan, &(struct ctl_join){5, 1});
			if (r == 0)
				r = ctl_send_join(&d.chan, &(struct ctl_join){5, 1});
			break;
		default: /* a terminal takes no descriptors but its copy */
			must(exec_spec_set(&m.spec, argv, NULL, NULL, NULL) == 0);
			m.spec.tty = true;
			m.stdio[0] = CTL_STDIO_FD;
			r = ctl_send_exec(&d.chan, &m, fds);
			ctl_exec_done(&m);
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

	/* It never reads an answer. */
	while (sent < FLOOD && ctl_send_stats(&d.chan) == 0) {
		sent++;
		if (sent % 1000 == 0 && chan_flush_wait(&d.chan, 100) < 0)
			break;
	}
	check_int(run(&c, "exit 4").status, 4);
	drop_conn(&d);

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = (struct conn){0};
		must(chan_init(&crowd[i].chan, connect_to(id), CTL_MAX_PAYLOAD, 4096) == 0);
	}
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

static bool is_refused_to_stop(struct conn *c)
{
	struct ctl_refused m;
	struct chan_frame f;
	bool refused;

	must(ctl_send_stop(&c->chan, &(struct ctl_stop){.if_idle = true}) == 0);
	must(chan_recv_wait(&c->chan, &f, PATIENCE_MS) == 1);
	refused = f.type == CTL_REFUSED && ctl_get_refused(f.payload, &m) && m.err.code == E_BUSY;
	check(!refused || m.request == CTL_STOP);
	chan_frame_done(&f);
	return refused;
}

/* A command, and a process of which no log is kept. */
static void it_can_be_stopped_where_nothing_runs_alone(void)
{
	struct conn c = create(), d;
	struct running r;

	for (int raw = 0; raw < 2; raw++) {
		d = attach_to(id);
		ask(&d, &r, "echo up; exec sleep 1000", 0, raw ? CTL_EXEC_RAW : 0, false, 0);
		is_started(&d, &r);
		check(is_refused_to_stop(&c));
		must(ctl_send_signal(
			     &d.chan, &(struct ctl_signal){r.exec, SIGKILL, CTL_SCOPE_GROUP}) == 0);
		check(has_exited(&d, &r).signaled);
		run_done(&r);
		drop_conn(&d);
	}
	check(!is_refused_to_stop(&c));
	drop_conn(&c);
	check(becomes_zero(count_marked));
	for (int i = 0; i < 500 && life_of(id) == SANDBOX_LIVE; i++)
		pause_ms(20);
	check(record_has("{\"state\":\"stopped\",\"reason\":\"stopped\""));
	check_int(sandbox_remove(sandboxes, id, NULL), 0);
}

static void run_list(void)
{
	signal(SIGPIPE, SIG_IGN);
	sandboxes = fd_close(sandboxes);
	run_test(a_killed_supervisor_leaves_nothing_after_a_sweep);
	run_test(what_clients_may_not_send_ends_them_alone);
	run_test(a_flood_of_requests_harms_its_sender_alone);
	run_test(output_to_something_else_than_a_pipe_is_refused);
	run_test(it_can_be_stopped_where_nothing_runs_alone);
}

int main(void)
{
	return run_everything(run_list);
}
