/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/strv.h"
#include "ipc/control.h"
#include "tap.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connected pair of channels. */
struct pair {
	struct chan a, b;
};

static struct pair make_pair(void)
{
	struct pair p;
	int fds[2];

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	must(chan_init(&p.a, fds[0], CTL_MAX_PAYLOAD, 2 * CTL_MAX_PAYLOAD) == 0);
	must(chan_init(&p.b, fds[1], CTL_MAX_PAYLOAD, 2 * CTL_MAX_PAYLOAD) == 0);
	return p;
}

static void done_pair(struct pair *p)
{
	chan_done(&p->a);
	chan_done(&p->b);
}

static struct chan_frame carry(struct pair *p)
{
	struct chan_frame f;

	must(chan_flush(&p->a) == 0);
	must(chan_recv_wait(&p->b, &f, 30000) == 1);
	return f;
}

static struct exec_spec sample_exec(void)
{
	static char sh[] = "sh", c[] = "-c", cmd[] = "echo $X; exit 3", x[] = "X=1",
		    path[] = "PATH=/bin", cwd[] = "/tmp";
	char *argv[] = {sh, c, cmd, NULL}, *env[] = {x, path, NULL};
	struct exec_spec s;

	exec_spec_init(&s);
	must(exec_spec_set(&s, argv, env, cwd, NULL) == 0);
	s.uid = 1000;
	s.gid = 1001;
	s.timeout_usec = 1234567;
	return s;
}

static bool same_strv(char *const *a, char *const *b)
{
	if (strv_count(a) != strv_count(b))
		return false;
	for (size_t i = 0; a && a[i]; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return true;
}

static void check_same_exec(const struct exec_spec *a, const struct exec_spec *b)
{
	check(same_strv(a->argv, b->argv));
	check(same_strv(a->env, b->env));
	check_z(a->cwd, b->cwd);
	check_int(a->uid, b->uid);
	check_int(a->gid, b->gid);
	check_int(a->umask, b->umask);
	check_int(a->tty, b->tty);
	check_int(a->rows, b->rows);
	check_int(a->cols, b->cols);
	check_int(a->timeout_usec, b->timeout_usec);
}

static void start_round_trip(void)
{
	static char id[] = "sandbox-0123456789abcdefghijk", name[] = "n\xc3\xa4me",
		    provider[] = "native", label[] = "a=b";
	char *labels[] = {label, NULL};
	struct ctl_start m = {.version = CTL_VERSION,
		.one_shot = true,
		.gateway = true,
		.id = id,
		.name = name,
		.provider = provider,
		.labels = labels,
		.timeout_usec = 5,
		.grace_usec = 6,
		.room = STR("opaque\0bytes")};
	struct pair p = make_pair();
	struct ctl_start got;
	struct chan_frame f;
	int null = STDOUT_FILENO;

	check_int(ctl_send_start(&p.a, &m, &null), 0);
	f = carry(&p);
	check_int(f.type, CTL_START);
	check_int(f.fds_n, 1);
	check(ctl_get_start(f.payload, &got));
	check_int(got.version, CTL_VERSION);
	check(got.one_shot && !got.detached && got.gateway);
	check_z(got.id, id);
	check_z(got.name, name);
	check_z(got.provider, provider);
	check(same_strv(got.labels, labels));
	check_int(got.timeout_usec, 5);
	check_int(got.grace_usec, 6);
	check(str_eq(got.room, m.room));
	ctl_start_done(&got);
	chan_frame_done(&f);
	done_pair(&p);
}

static void exec_round_trip(void)
{
	struct ctl_exec m = {.exec = 7,
		.stdio = {CTL_STDIO_FD, CTL_STDIO_NULL, CTL_STDIO_FD},
		.spec = sample_exec()};
	const int fds[3] = {STDOUT_FILENO, -1, STDERR_FILENO};
	struct pair p = make_pair();
	struct ctl_exec got;
	struct chan_frame f;

	check_int(ctl_send_exec(&p.a, &m, fds), 0);
	f = carry(&p);
	check_int(f.type, CTL_EXEC);
	check_int(f.fds_n, 2);
	check(ctl_get_exec(f.payload, &got));
	check_int(ctl_exec_fds(&got), 2);
	check_int(got.exec, 7);
	for (int i = 0; i < 3; i++)
		check_int(got.stdio[i], m.stdio[i]);
	check_same_exec(&got.spec, &m.spec);
	ctl_exec_done(&got);
	ctl_exec_done(&m);
	chan_frame_done(&f);
	done_pair(&p);
}

static void small_ones_round_trip(void)
{
	struct ctl_signal sig = {.exec = 3, .signo = 15, .scope = CTL_SCOPE_GROUP}, got_sig;
	struct ctl_resize size = {.exec = 3, .rows = 50, .cols = 132}, got_size;
	struct ctl_exec_started running = {.exec = 6, .pid = 8, .number = 11, .tty = true};
	struct ctl_exec_started got_running;
	struct ctl_started started = {.id = STR("sandbox-x"),
				   .provider = STR("native"),
				   .isolation = STR("sandbox"),
				   .pid = 9},
			   got_started;
	struct ctl_exec_failed failed = {.exec = 4,
				       .code = E_COMMAND_NOT_FOUND,
				       .sys_errno = 2,
				       .message = STR("command not found")},
			       got_failed;
	struct ctl_exec_exited exited = {.exec = 5,
				       .signaled = true,
				       .status = 9,
				       .timed_out = true,
				       .oom_killed = true,
				       .stopped = true,
				       .duration_usec = 77},
			       got_exited;
	struct ctl_ended ended = {.reason = CTL_REASON_TIMEOUT, .usage = {1, 2, 3}}, got_ended;
	struct cloche_err err = CLOCHE_ERR_INIT, got_err = CLOCHE_ERR_INIT;
	struct pair p = make_pair();
	struct ctl_attach attach = {.version = CTL_VERSION};
	struct ctl_stop stop = {.grace_usec = 42, .if_idle = true}, got_stop;
	const int out = STDOUT_FILENO;
	struct ctl_warning warning = {.text = STR("careful")}, got_warning;
	struct chan_frame f;

#define CARRY(send, get)                                                                           \
	do {                                                                                       \
		check_int(send, 0);                                                                \
		f = carry(&p);                                                                     \
		check(get);                                                                        \
	} while (0)

	CARRY(ctl_send_attach(&p.a, &attach), ctl_get_attach(f.payload, &attach));
	check_int(attach.version, CTL_VERSION);
	CARRY(ctl_send_signal(&p.a, &sig), ctl_get_signal(f.payload, &got_sig));
	check_int(got_sig.signo, 15);
	check_int(got_sig.scope, CTL_SCOPE_GROUP);
	CARRY(ctl_send_resize(&p.a, &size), ctl_get_resize(f.payload, &got_size));
	check_int(got_size.cols, 132);
	CARRY(ctl_send_stop(&p.a, &stop), ctl_get_stop(f.payload, &got_stop));
	check_int(got_stop.grace_usec, 42);
	check(got_stop.if_idle);
	CARRY(ctl_send_warning(&p.a, &warning), ctl_get_warning(f.payload, &got_warning));
	check_str(got_warning.text, "careful");
	CARRY(ctl_send_started(&p.a, &started), ctl_get_started(f.payload, &got_started));
	check_str(got_started.provider, "native");
	check_int(got_started.pid, 9);
	CARRY(ctl_send_exec_started(&p.a, &running, STDOUT_FILENO),
		ctl_get_exec_started(f.payload, &got_running));
	check_int(got_running.exec, 6);
	check_int(got_running.pid, 8);
	check_int(got_running.number, 11);
	check(got_running.tty);
	check_int(f.fds_n, 1);
	chan_frame_done(&f);
	CARRY(ctl_send_exec_failed(&p.a, &failed), ctl_get_exec_failed(f.payload, &got_failed));
	check_str(got_failed.message, "command not found");
	CARRY(ctl_send_exec_exited(&p.a, &exited), ctl_get_exec_exited(f.payload, &got_exited));
	check(got_exited.signaled && got_exited.timed_out && got_exited.oom_killed &&
		got_exited.stopped && !got_exited.pids_refused);
	check_int(got_exited.duration_usec, 77);
	CARRY(ctl_send_ended(&p.a, &ended), ctl_get_ended(f.payload, &got_ended));
	check_int(got_ended.reason, CTL_REASON_TIMEOUT);
	check_int(got_ended.usage.pids_peak, 3);
	CARRY(ctl_send_policy(&p.a, &out), f.type == CTL_POLICY && f.fds_n == 1);
	chan_frame_done(&f);
	CARRY(ctl_send_complete(&p.a), f.type == CTL_COMPLETE && f.payload.n == 0);
	CARRY(ctl_send_completed(&p.a), f.type == CTL_COMPLETED && f.payload.n == 0);
	CARRY(ctl_send_sync(&p.a, &out), f.type == CTL_SYNC && f.fds_n == 1);
	chan_frame_done(&f);
	CARRY(ctl_send_synced(&p.a), f.type == CTL_SYNCED && f.payload.n == 0);
	CARRY(ctl_send_brings(&p.a), f.type == CTL_BRINGS && f.payload.n == 0);
	CARRY(ctl_send_policy_passed(&p.a), f.type == CTL_POLICY_PASSED && f.payload.n == 0);
	err_set(&err, E_NETWORK, "gone");
	err.sys_errno = 2;
	err_hint(&err, "look");
	CARRY(ctl_send_error(&p.a, &err), ctl_get_error(f.payload, &got_err) == -E_NETWORK);
	check_z(got_err.message, "gone");
	check_z(got_err.hint, "look");
	check_int(got_err.sys_errno, 2);
	done_pair(&p);
}

static void signals_and_sizes_out_of_range(void)
{
	struct ctl_signal sig = {.exec = 1, .signo = 0, .scope = CTL_SCOPE_PROCESS}, got;
	struct ctl_resize size = {.rows = EXEC_MAX_DIMENSION + 1}, got_size;
	struct pair p = make_pair();

	check_int(ctl_send_signal(&p.a, &sig), -EINVAL);
	sig.signo = 65;
	check_int(ctl_send_signal(&p.a, &sig), -EINVAL);
	check_int(ctl_send_resize(&p.a, &size), -EINVAL);
	check_int(chan_pending(&p.a), 0);
	check(!ctl_get_signal(STR("\1\0\0\0\0\0"), &got));
	check(!ctl_get_signal(STR("\1\0\0\0\x41\0"), &got));
	check(ctl_get_signal(STR("\1\0\0\0\x40\0"), &got));
	check(!ctl_get_resize(STR("\1\0\0\0\1\x10\1\0"), &got_size));
	check(ctl_get_resize(STR("\1\0\0\0\0\x10\1\0"), &got_size));
	done_pair(&p);
}

/* Decodes as whatever it may be; must neither crash nor leak (sanitizers watch). */
static bool decode_any(uint16_t type, struct str payload)
{
	union {
		struct ctl_signal signal;
		struct ctl_resize resize;
		struct ctl_started started;
		struct ctl_exec_failed failed;
		struct ctl_exec_exited exited;
		struct ctl_ended ended;
	} u;
	struct ctl_start start;
	struct ctl_exec exec;
	bool ok;

	switch (type) {
	case CTL_START:
		ok = ctl_get_start(payload, &start);
		ctl_start_done(&start);
		return ok;
	case CTL_EXEC:
		ok = ctl_get_exec(payload, &exec);
		ctl_exec_done(&exec);
		return ok;
	case CTL_SIGNAL:
		return ctl_get_signal(payload, &u.signal);
	case CTL_RESIZE:
		return ctl_get_resize(payload, &u.resize);
	case CTL_STARTED:
		return ctl_get_started(payload, &u.started);
	case CTL_EXEC_FAILED:
		return ctl_get_exec_failed(payload, &u.failed);
	case CTL_EXEC_EXITED:
		return ctl_get_exec_exited(payload, &u.exited);
	default:
		return ctl_get_ended(payload, &u.ended);
	}
}

/* Every truncation is refused, and no flipped bit does harm. */
static void torture(uint16_t type, struct str whole)
{
	check(decode_any(type, whole));
	for (size_t n = 0; n < whole.n; n++) {
		/* In memory of its own, so that a read past the end is seen. */
		char *copy = str_dup(str_prefix(whole, n));

		must(copy);
		if (decode_any(type, str_make(copy, n)))
			tap_fail("type %u: the first %zu of %zu bytes were accepted", type, n,
				whole.n);
		free(copy);
	}
	for (size_t bit = 0; bit < whole.n * 8; bit++) {
		char *copy = str_dup(whole);

		must(copy);
		copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << (bit % 8)));
		(void)decode_any(type, str_make(copy, whole.n));
		free(copy);
	}
}

static void torn_and_flipped(void)
{
	static char name[] = "x";
	struct ctl_start start = {.version = 1, .name = name, .room = STR("room")};
	struct ctl_exec exec = {.exec = 1, .spec = sample_exec()};
	struct ctl_signal sig = {.exec = 1, .signo = 9};
	struct ctl_started started = {.id = STR("i"), .provider = STR("p")};
	struct ctl_exec_failed failed = {.exec = 1, .code = E_CANNOT_EXEC, .message = STR("m")};
	struct ctl_exec_exited exited = {.exec = 1};
	struct ctl_ended ended = {.reason = CTL_REASON_EXITED};
	struct pair p = make_pair();
	const int none[3] = {-1, -1, -1};

	check_int(ctl_send_start(&p.a, &start, NULL), 0);
	check_int(ctl_send_exec(&p.a, &exec, none), 0);
	check_int(ctl_send_signal(&p.a, &sig), 0);
	check_int(ctl_send_started(&p.a, &started), 0);
	check_int(ctl_send_exec_failed(&p.a, &failed), 0);
	check_int(ctl_send_exec_exited(&p.a, &exited), 0);
	check_int(ctl_send_ended(&p.a, &ended), 0);
	for (int i = 0; i < 7; i++) {
		struct chan_frame f = carry(&p);

		torture(f.type, f.payload);
	}
	ctl_exec_done(&exec);
	done_pair(&p);
}

static void requests_round_trip(void)
{
	struct ctl_stats_now stats = {.now_usec = 1, .cpu_usec = 2, .net_received = 3}, got_stats;
	struct ctl_forward fw = {.guest_port = 8000,
				   .host_port = 18000,
				   .host_address = STR("127.0.0.1")},
			   got_fw;
	struct pair p = make_pair();
	struct ctl_join join = {.exec = 5, .number = 17}, got_join;
	struct ctl_refused refused = {.request = CTL_JOIN}, got_refused;
	const int two[2] = {STDIN_FILENO, STDOUT_FILENO};
	struct chan_frame f;

	CARRY(ctl_send_join(&p.a, &join), ctl_get_join(f.payload, &got_join));
	check_int(got_join.exec, 5);
	check_int(got_join.number, 17);
	check_int(ctl_send_join_outputs(&p.a, &join, two), 0);
	f = carry(&p);
	check(f.type == CTL_JOIN && f.fds_n == 2 && ctl_get_join(f.payload, &got_join));
	chan_frame_done(&f);
	CARRY(ctl_send_stats_now(&p.a, &stats), ctl_get_stats_now(f.payload, &got_stats));
	check_int(got_stats.now_usec, 1);
	check_int(got_stats.cpu_usec, 2);
	check_int(got_stats.net_received, 3);
	CARRY(ctl_send_forward(&p.a, &fw, STDOUT_FILENO), ctl_get_forward(f.payload, &got_fw));
	check_int(got_fw.guest_port, 8000);
	check_int(got_fw.host_port, 18000);
	check_str(got_fw.host_address, "127.0.0.1");
	check_int(f.fds_n, 1);
	chan_frame_done(&f);
	check_int(ctl_send_layers_are(&p.a, two), 0);
	f = carry(&p);
	check_int(f.fds_n, 2);
	chan_frame_done(&f);
	err_set(&refused.err, E_NOT_FOUND, "no process 9");
	CARRY(ctl_send_refused(&p.a, &refused), ctl_get_refused(f.payload, &got_refused));
	check_int(got_refused.request, CTL_JOIN);
	check_int(got_refused.err.code, E_NOT_FOUND);
	check_z(got_refused.err.message, "no process 9");
	done_pair(&p);
}

int main(void)
{
	run_test(start_round_trip);
	run_test(exec_round_trip);
	run_test(small_ones_round_trip);
	run_test(requests_round_trip);
	run_test(signals_and_sizes_out_of_range);
	run_test(torn_and_flipped);
	return tap_done();
}
