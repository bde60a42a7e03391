/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "ipc/roomctl.h"
#include "tap.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static struct chan a, b;

static void setup(void)
{
	int fds[2];

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	must(chan_init(&a, fds[0], ROOMCTL_MAX_PAYLOAD, 2 * ROOMCTL_MAX_PAYLOAD) == 0);
	must(chan_init(&b, fds[1], ROOMCTL_MAX_PAYLOAD, 2 * ROOMCTL_MAX_PAYLOAD) == 0);
}

static struct chan_frame carry(void)
{
	struct chan_frame f;

	must(chan_flush(&a) == 0);
	must(chan_recv_wait(&b, &f, 30000) == 1);
	return f;
}

static void round_trips(void)
{
	static char name[] = "true";
	char *argv[] = {name, NULL};
	struct roomctl_exec exec = {.exec = 3, .fds_mask = 6, .last = true}, got;
	struct roomctl_signal sig = {.exec = 3, .signo = 15, .scope = 2}, got_sig;
	struct roomctl_failed failed = {.exec = 3, .stage = ROOM_STAGE_EXEC, .sys_errno = 13},
			      got_failed;
	struct roomctl_exited exited = {.exec = 3, .status = 0x0300}, got_exited;
	const int fds[] = {STDOUT_FILENO, STDERR_FILENO};
	struct roomctl_resize resize = {.exec = 3, .rows = 24, .cols = 80}, got_resize;
	struct roomctl_stopped stopped = {.exec = 3, .signo = 20};
	struct roomctl_started started = {.exec = 3, .pid = 17}, got_started;
	struct chan_frame f;

	exec_spec_init(&exec.spec);
	must(exec_spec_set(&exec.spec, argv, NULL, NULL, NULL) == 0);
	check_int(roomctl_send_exec(&a, &exec, fds, 2), 0);
	f = carry();
	check_int(f.type, ROOM_EXEC);
	check_int(f.fds_n, 2);
	check(roomctl_get_exec(f.payload, &got));
	check_int(got.fds_mask, 6);
	check(got.last);
	check_z(got.spec.argv[0], "true");
	exec_spec_done(&got.spec);
	exec_spec_done(&exec.spec);
	chan_frame_done(&f);

	check_int(roomctl_send_signal(&a, &sig), 0);
	f = carry();
	check(roomctl_get_signal(f.payload, &got_sig) && got_sig.signo == 15 && got_sig.scope == 2);
	check_int(roomctl_send_stopped(&a, &stopped), 0);
	f = carry();
	check(roomctl_get_stopped(f.payload, &stopped) && stopped.exec == 3 && stopped.signo == 20);

	check_int(roomctl_send_resize(&a, &resize), 0);
	f = carry();
	check(roomctl_get_resize(f.payload, &got_resize) && got_resize.rows == 24 &&
		got_resize.cols == 80);
	check_int(roomctl_send_ready(&a), 0);
	f = carry();
	check_int(f.type, ROOM_READY);
	check_int(roomctl_send_started(&a, &started, STDOUT_FILENO), 0);
	f = carry();
	check(roomctl_get_started(f.payload, &got_started) && got_started.pid == 17 &&
		f.fds_n == 1);
	chan_frame_done(&f);
	check_int(roomctl_send_failed(&a, &failed), 0);
	f = carry();
	check(roomctl_get_failed(f.payload, &got_failed) && got_failed.sys_errno == 13);
	check_int(roomctl_send_exited(&a, &exited), 0);
	f = carry();
	check(roomctl_get_exited(f.payload, &got_exited) && got_exited.status == 0x0300);
}

/* What a hostile init may say is bounded (and what ours says, too). */
static void out_of_range_is_malformed(void)
{
	struct roomctl_failed failed = {.exec = 3, .stage = ROOM_STAGE_END_}, got_failed;
	struct roomctl_exited exited = {.exec = 3, .status = 0x10000}, got_exited;

	check_int(roomctl_send_failed(&a, &failed), -EINVAL);
	failed.stage = ROOM_STAGE_EXEC;
	failed.sys_errno = 100000;
	check_int(roomctl_send_failed(&a, &failed), -EINVAL);
	check_int(roomctl_send_exited(&a, &exited), -EINVAL);
	check_int(chan_pending(&a), 0);
	check(!roomctl_get_failed(STR("\3\0\0\0\6\0\0\0\0"), &got_failed));
	check(!roomctl_get_failed(STR("\3\0\0\0\5\0\0\1\0"), &got_failed));
	check(roomctl_get_failed(STR("\3\0\0\0\5\1\0\0\0"), &got_failed));
	check(!roomctl_get_exited(STR("\3\0\0\0\0\0\1\0"), &got_exited));
	check(!roomctl_get_exited(STR("\3\0\0\0\0\1\0"), &got_exited));
	check(roomctl_get_exited(STR("\3\0\0\0\0\1\0\0"), &got_exited));
}

int main(void)
{
	setup();
	run_test(round_trips);
	run_test(out_of_range_is_malformed);
	chan_done(&a);
	chan_done(&b);
	return tap_done();
}
