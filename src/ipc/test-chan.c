/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/rand.h"
#include "ipc/chan.h"
#include "linger.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct chan a, b;

static void open_pair(size_t max_payload, size_t max_out)
{
	int fds[2];

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	must(chan_init(&a, fds[0], max_payload, max_out) == 0);
	must(chan_init(&b, fds[1], max_payload, max_out) == 0);
}

static void close_pair(void)
{
	chan_done(&a);
	chan_done(&b);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_frames_arrive_in_order_with_their_descriptors(void)
{
	int before = open_fds(), p[2];
	struct chan_frame f;
	struct stat st, want;

	open_pair(1000, 100000);
	must(fd_pipe(p) == 0 && fstat(p[0], &want) == 0);
	check_int(chan_send(&a, 1, STR("first"), NULL, 0), 0);
	check_int(chan_send(&a, 2, STR("second"), p, 2), 0);
	check_int(chan_send(&a, 3, STR(""), p, 1), 0);
	check_int(chan_flush(&a), 0);
	check_int(chan_pending(&a), 0);
	check_int(chan_recv(&b, &f), 1);
	check_int(f.type, 1);
	check_str(f.payload, "first");
	check_int(f.fds_n, 0);
	check_int(chan_recv(&b, &f), 1);
	check_int(f.fds_n, 2);
	check(fstat(f.fds[0], &st) == 0 && st.st_ino == want.st_ino);
	check(fcntl(f.fds[0], F_GETFD) == FD_CLOEXEC);
	chan_frame_done(&f);
	check_int(chan_recv(&b, &f), 1);
	check_int(f.type, 3);
	check_int(f.fds_n, 1);
	chan_frame_done(&f);
	check_int(chan_recv(&b, &f), 0);
	close(p[0]);
	close(p[1]);
	close_pair();
	check_int(open_fds(), before);
}

static void test_untaken_descriptors_are_closed(void)
{
	int before = open_fds(), p[2];

	open_pair(1000, 100000);
	must(fd_pipe(p) == 0);
	check_int(chan_send(&a, 1, STR("x"), p, 2), 0);
	check_int(chan_flush(&a), 0);
	check_int(chan_send(&a, 1, STR("never sent"), p, 2), 0);
	{
		struct chan_frame f;

		check_int(chan_recv(&b, &f), 1);
		chan_frame_done(&f);
	}
	close(p[0]);
	close(p[1]);
	close_pair();
	check_int(open_fds(), before);
}

static void test_everything_arrives_however_little_is_read(void)
{
	enum { FRAMES = 400 };
	static char big[9000];
	struct chan_frame f;
	int sent = 0, got = 0;

	open_pair(sizeof(big), 1 << 16);
	while (got < FRAMES) {
		int r;

		while (sent < FRAMES) {
			size_t n = (size_t)sent * 7919 % sizeof(big);

			memset(big, sent, n);
			if (chan_send(&a, (uint16_t)sent, str_make(big, n), NULL, 0) < 0)
				break;
			sent++;
		}
		must(chan_flush(&a) == 0);
		r = chan_recv(&b, &f);
		must(r >= 0);
		if (r == 0)
			continue;
		check_int(f.type, got);
		check_int(f.payload.n, (size_t)got * 7919 % sizeof(big));
		if (f.payload.n)
			check_int((unsigned char)f.payload.p[f.payload.n - 1], got & 0xff);
		got++;
	}
	close_pair();
}

static void test_hostile_headers_end_the_channel(void)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
		{"\xff\xff\xff\xff\1\0\0\0", 8}, /* too long */
		{"\0\0\0\0\1\0\1\0", 8},         /* a descriptor that did not come */
		{"\0\0\0\0\1\0\0\1", 8},         /* reserved byte */
		{"\0\0\0\0\1\0\xff\0", 8},       /* too many descriptors */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct chan_frame f;

		open_pair(1000, 1000);
		must(write(a.fd, cases[i].bytes, cases[i].n) == (ssize_t)cases[i].n);
		check_int(chan_recv(&b, &f), -EPROTO);
		close_pair();
	}
}

static void test_limits_of_sending(void)
{
	char big[200] = {0};

	open_pair(100, 300);
	check_int(chan_send(&a, 1, str_make(big, 101), NULL, 0), -E2BIG);
	check_int(chan_pending(&a), 0);
	check_int(chan_send(&a, 1, str_make(big, 100), NULL, 0), 0);
	check_int(chan_send(&a, 1, str_make(big, 100), NULL, 0), 0);
	check(chan_send(&a, 1, str_make(big, 100), NULL, 0) < 0);
	check_int(chan_pending(&a), 216);
	close_pair();
}

static void test_the_end_is_told(void)
{
	struct chan_frame f;

	open_pair(100, 300);
	check_int(chan_send(&a, 9, STR("last"), NULL, 0), 0);
	check_int(chan_flush(&a), 0);
	chan_done(&a);
	check_int(chan_recv_wait(&b, &f, 30000), 1);
	check_str(f.payload, "last");
	check_int(chan_recv_wait(&b, &f, 30000), -EPIPE);
	check(b.eof);
	check_int(chan_send(&b, 9, STR("x"), NULL, 0), 0);
	check_int(chan_flush(&b), -EPIPE);
	chan_done(&b);
}

/* A watched channel asks the socket once; what it says then is only delayed to the next time. */
static void test_descriptors_that_linger_hold_nobody_up(void)
{
	int before, fds[4];
	struct chan_frame f;

	/* (Which keeps a listener open.) */
	fd_close_foreign(linger_socket());
	before = open_fds();
	open_pair(1000, 100000);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = linger_socket();
	check_int(chan_send(&a, 1, STR("taken by nobody"), fds, 2), 0);
	check_int(chan_send(&a, 2, STR("not even read"), fds + 2, 2), 0);
	check_int(chan_flush(&a), 0);
	/* What is closed by the other end is the last descriptor of each. */
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	check_int(chan_recv(&b, &f), 1);
	check_int(f.fds_n, 2);
	chan_frame_done(&f);
	check_int(chan_recv(&b, &f), 1);
	chan_frame_done(&f);
	close_pair();
	check_int(open_fds(), before);
}

/* Linux 6.16 has SO_PASSRIGHTS; before it nothing is refused. */
static bool kernel_refuses(void)
{
	int fds[2], on = 0;
	bool has;

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	has = setsockopt(fds[0], SOL_SOCKET, 83, &on, sizeof(on)) == 0;
	fd_close(fds[0]);
	fd_close(fds[1]);
	return has;
}

static void test_descriptors_are_refused(void)
{
	struct chan_frame f;
	int null;

	if (!kernel_refuses()) {
		tap_skip("the kernel has no SO_PASSRIGHTS");
		return;
	}
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	open_pair(1000, 100000);
	chan_refuse_fds(&b);
	check_int(chan_send(&a, 1, STR("with"), &null, 1), 0);
	check_int(chan_flush(&a), -EPERM);
	check_int(chan_recv(&b, &f), 0);
	close_pair();
	fd_close(null);
}

static void test_a_short_read_is_enough(void)
{
	struct chan_frame f;

	open_pair(1000, 100000);
	b.watched = true;
	check_int(chan_send(&a, 1, STR("one"), NULL, 0), 0);
	check_int(chan_send(&a, 2, STR("two"), NULL, 0), 0);
	check_int(chan_flush(&a), 0);
	check_int(chan_recv(&b, &f), 1);
	check_int(chan_send(&a, 3, STR("three"), NULL, 0), 0);
	check_int(chan_flush(&a), 0);
	chan_done(&a);
	check_int(chan_recv(&b, &f), 1);
	check_str(f.payload, "two");
	check_int(chan_recv(&b, &f), 0);
	check_int(chan_recv(&b, &f), 1);
	check_str(f.payload, "three");
	check_int(chan_recv(&b, &f), 0);
	check_int(chan_recv(&b, &f), -EPIPE);
	chan_done(&b);
}

static void test_waiting_has_a_limit(void)
{
	struct chan_frame f;

	open_pair(100, 300);
	check_int(chan_recv_wait(&b, &f, 10), -ETIMEDOUT);
	close_pair();
}

int main(void)
{
	run_test(test_frames_arrive_in_order_with_their_descriptors);
	run_test(test_untaken_descriptors_are_closed);
	run_test(test_everything_arrives_however_little_is_read);
	run_test(test_hostile_headers_end_the_channel);
	run_test(test_limits_of_sending);
	run_test(test_the_end_is_told);
	run_test(test_descriptors_that_linger_hold_nobody_up);
	run_test(test_descriptors_are_refused);
	run_test(test_a_short_read_is_enough);
	run_test(test_waiting_has_a_limit);
	return tap_done();
}
