/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: both ends are in this process and in one loop, and a socket pair carries
 * bytes between them. The descriptors that are pumped are real ones; the test has their other ends,
 * which do not block. Byte number i is known. */
#include "base/fd.h"
#include "far/pump.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

enum { MANY = 2 * 1024 * 1024, TURNS_MAX = 1000000, SECONDS_MAX = 120, M_CLEAN = 5 };

static struct loop *loop;
static struct loop_io idle; /* is always ready, so no turn of the loop waits */
static struct carrier near, far;
static unsigned done_n, clean_n, cut_n;
static uint64_t got_at_clean; /* what the far end had of the channel when near's message came */
static struct pump *told_of;

static const uint8_t session[LINK_SESSION] = "sixteen bytes...";

static int on_message(struct link *l, uint16_t type, struct str payload)
{
	must(type == M_CLEAN);
	got_at_clean = LINK_WINDOW - told_of->channel.allowed;
	return 0;
}

static const struct link_ops ops = {.message = on_message,
	.data = pump_on_data,
	.end = pump_on_end,
	.stop = pump_on_stop,
	.more = pump_on_more};

static void on_done(struct pump *p)
{
	check(!pump_is_open(p));
	done_n++;
}

static void on_clean(struct pump *p)
{
	clean_n++;
}

static void on_cut(struct carrier *c, int why)
{
	cut_n++;
}

static void on_idle(struct loop_io *io, uint32_t events)
{
}

#define until(cond)                                                                                \
	do {                                                                                       \
		bool is_so_ = (cond);                                                              \
		for (int turn_ = 0; turn_ < TURNS_MAX && !is_so_; turn_++) {                       \
			must(loop_turn(loop) == 0);                                                \
			is_so_ = (cond);                                                           \
		}                                                                                  \
		if (!is_so_)                                                                       \
			must(!"never: " #cond);                                                    \
	} while (0)

static void connect_both(void)
{
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(carrier_attach(&near, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3)) == 0);
	must(carrier_attach(&far, pair[1], fcntl(pair[1], F_DUPFD_CLOEXEC, 3)) == 0);
}

static void start_both(void)
{
	int fd = eventfd(1, EFD_CLOEXEC);

	must((loop = loop_new()));
	must(fd >= 0 && loop_io_add(loop, &idle, fd, EPOLLIN, on_idle) == 0);
	carrier_init(&near, loop, &ops, session, on_cut);
	carrier_init(&far, loop, &ops, NULL, on_cut);
	done_n = clean_n = cut_n = 0;
	connect_both();
}

static void end_both(void)
{
	check_int(cut_n, 0);
	loop_io_remove(&idle);
	fd_close(idle.fd);
	carrier_done(&near);
	carrier_done(&far);
	loop = loop_free(loop);
}

static bool all_arrived(void)
{
	return buf_len(&near.link.kept) == 0 && buf_len(&far.link.kept) == 0;
}

/* --- what the test does with the other ends --- */

struct stream {
	int fd;
	uint64_t moved;
};

static struct stream stream_of(int fd)
{
	must(fd_set_nonblock(fd, true) >= 0);
	return (struct stream){.fd = fd};
}

static char byte_at(uint64_t at)
{
	return (char)(at * 7 + at / 256);
}

/* Write up to number `most`. Return whether anything was taken. */
static bool stream_write(struct stream *s, uint64_t most)
{
	char bytes[5000];
	size_t n = MIN(sizeof(bytes), (size_t)(most - s->moved));
	ssize_t r;

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(s->moved + i);
	r = n ? write(s->fd, bytes, n) : 0;
	if (r > 0)
		s->moved += (uint64_t)r;
	return r > 0;
}

/* Read what there is. Return false at the end. */
static bool stream_read(struct stream *s)
{
	char bytes[7000];
	ssize_t r = read(s->fd, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < r; i++, s->moved++)
		if (bytes[i] != byte_at(s->moved))
			must(!"a byte is not the next one");
	return r > 0 || (r < 0 && errno == EAGAIN);
}

/* Move bytes from one to the other until `most` have arrived. */
static void stream_through(struct stream *from, struct stream *to, uint64_t most)
{
	while (to->moved < most) {
		bool moved = stream_write(from, most);
		uint64_t before = to->moved;

		must(stream_read(to));
		if (!moved && to->moved == before)
			must(loop_turn(loop) == 0);
	}
}

/* Open a channel from a pipe of near to a pipe of far; the test gets the outer ends. */
static void open_pipes(
	struct pump *here, struct pump *there, struct stream *from, struct stream *to)
{
	uint32_t number = link_new_number(&near.link);
	int in[2], out[2];

	must(fd_pipe(in) == 0 && fd_pipe(out) == 0);
	must(pump_open(here, &near, number, in[0], -1, on_done) == 0);
	must(pump_open(there, &far, number, -1, out[1], on_done) == 0);
	*from = stream_of(in[1]);
	*to = stream_of(out[0]);
}

static int open_socket(struct pump *p, struct carrier *c, uint32_t number)
{
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(pump_open(p, c, number, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3), on_done) == 0);
	return pair[1];
}

/* --- tests --- */

static void test_a_pipe(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	stream_through(&from, &to, MANY);
	fd_close(from.fd);
	until(!stream_read(&to));
	check_int(to.moved, MANY);
	until(done_n == 2);
	fd_close(to.fd);
	end_both();
}

static void test_both_directions_of_a_socket(void)
{
	struct pump here, there;
	struct stream a, b, a_back, b_back;

	start_both();
	a = a_back = stream_of(open_socket(&here, &near, 2));
	b = b_back = stream_of(open_socket(&there, &far, 2));
	stream_through(&a, &b, MANY);
	stream_through(&b_back, &a_back, MANY);
	/* One direction ends, and the other goes on. */
	must(shutdown(a.fd, SHUT_WR) == 0);
	until(!stream_read(&b));
	stream_through(&b_back, &a_back, 2 * MANY);
	check_int(done_n, 0);
	fd_close(b.fd);
	until(!stream_read(&a_back));
	until(done_n == 2);
	fd_close(a.fd);
	end_both();
}

static void test_a_slow_reader_stops_nobody_else(void)
{
	struct pump here[2], there[2];
	struct stream from[2], to[2];

	start_both();
	for (int i = 0; i < 2; i++)
		open_pipes(&here[i], &there[i], &from[i], &to[i]);
	/* Pipes and the window are full. */
	until(!stream_write(&from[0], UINT64_MAX) && here[0].channel.waits && all_arrived());
	check(buf_len(&there[0].late) <= LINK_WINDOW);
	check(buf_len(&there[0].late) > 0);
	stream_through(&from[1], &to[1], 2 * (uint64_t)MANY);
	check_int(to[0].moved, 0);
	stream_through(&from[0], &to[0], from[0].moved + 100);
	for (int i = 0; i < 2; i++) {
		fd_close(from[i].fd);
		until(!stream_read(&to[i]));
		fd_close(to[i].fd);
	}
	until(done_n == 4);
	end_both();
}

static bool is_broken(int fd)
{
	return write(fd, "x", 1) < 0 && errno == EPIPE;
}

static void test_the_writer_learns_that_nobody_reads(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	/* Nothing was ever written. */
	open_pipes(&here, &there, &from, &to);
	fd_close(to.fd);
	until(done_n == 2);
	check(is_broken(from.fd));
	fd_close(from.fd);
	/* The reader leaves in the middle. */
	open_pipes(&here, &there, &from, &to);
	until(!stream_write(&from, UINT64_MAX) && here.channel.waits);
	must(stream_read(&to));
	fd_close(to.fd);
	until(done_n == 4);
	check(is_broken(from.fd));
	fd_close(from.fd);
	until(all_arrived());
	check_int(HASH_COUNT(near.link.channels), 0);
	check_int(HASH_COUNT(far.link.channels), 0);
	end_both();
}

static void test_what_was_written_before_the_end_arrives(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	while (stream_write(&from, UINT64_MAX))
		;
	fd_close(from.fd);
	until(done_n >= 1);
	until(!stream_read(&to));
	check_int(to.moved, from.moved);
	until(done_n == 2);
	fd_close(to.fd);
	end_both();
}

/* --- flushes --- */

static void on_clean_tell(struct pump *p)
{
	clean_n++;
	must(link_send(&near.link, M_CLEAN, STR_NULL) == 0);
}

static void test_a_flush_sends_what_can_be_read(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	until(all_arrived());
	told_of = &there;
	must(stream_write(&from, 5000));
	/* Somebody else may still write, and does not. */
	pump_flush(&here, PUMP_READ, on_clean_tell);
	until(all_arrived() && clean_n == 1);
	check_int(got_at_clean, 5000);
	must(stream_write(&from, 6000));
	stream_through(&from, &to, 6000);
	check_int(clean_n, 1);
	fd_close(from.fd);
	until(done_n == 2);
	fd_close(to.fd);
	end_both();
}

static void test_a_flush_waits_for_no_endless_writer(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	while (stream_write(&from, UINT64_MAX))
		;
	pump_flush(&here, PUMP_READ, on_clean);
	while (clean_n == 0 && to.moved < 3 * (uint64_t)MANY) {
		while (stream_write(&from, UINT64_MAX))
			;
		must(stream_read(&to));
		must(loop_turn(loop) == 0);
	}
	check_int(clean_n, 1);
	check(to.moved < MANY);
	fd_close(to.fd);
	until(done_n == 2);
	check(is_broken(from.fd));
	fd_close(from.fd);
	end_both();
}

static void test_a_flush_writes_what_has_come(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	until(!stream_write(&from, UINT64_MAX) && here.channel.waits && all_arrived());
	pump_flush(&there, PUMP_WRITTEN, on_clean);
	check_int(clean_n, 0);
	while (clean_n == 0) {
		must(stream_read(&to));
		must(loop_turn(loop) == 0);
	}
	/* Where nothing waits, that is so at once. */
	stream_through(&from, &to, from.moved);
	until(all_arrived());
	pump_flush(&there, PUMP_WRITTEN, on_clean);
	check_int(clean_n, 2);
	fd_close(from.fd);
	until(done_n == 2);
	fd_close(to.fd);
	end_both();
}

/* The reader leaves: nothing can be written any more. */
static void test_a_flush_ends_with_its_reader(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	until(!stream_write(&from, UINT64_MAX) && here.channel.waits && all_arrived());
	pump_flush(&there, PUMP_WRITTEN, on_clean);
	check_int(clean_n, 0);
	fd_close(to.fd);
	until(done_n == 2);
	check_int(clean_n, 1);
	fd_close(from.fd);
	end_both();
}

/* --- descriptors that come later --- */

static void test_what_comes_for_a_reserved_pump_waits(void)
{
	struct pump here, there;
	struct stream a, b, a_back, b_back;
	int pair[2];

	start_both();
	a = a_back = stream_of(open_socket(&here, &near, 2));
	must(pump_reserve(&there, &far, 2, on_done) == 0);
	until(!stream_write(&a, UINT64_MAX) && here.channel.waits && all_arrived());
	check_int(buf_len(&there.late), LINK_WINDOW);
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(pump_start(&there, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3)) == 0);
	b = b_back = stream_of(pair[1]);
	stream_through(&a, &b, a.moved + MANY);
	stream_through(&b_back, &a_back, MANY);
	fd_close(b.fd);
	fd_close(a.fd);
	until(done_n == 2);
	end_both();
}

/* Whoever was at the other end is gone before the descriptors are there. */
static void test_a_reserved_pump_whose_peer_is_gone(void)
{
	struct pump here, there;
	struct stream b;
	int pair[2], a;

	start_both();
	a = open_socket(&here, &near, 2);
	must(pump_reserve(&there, &far, 2, on_done) == 0);
	must(write(a, "last words", 10) == 10);
	fd_close(a);
	until(there.ends && all_arrived());
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(pump_start(&there, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3)) == 0);
	b = stream_of(pair[1]);
	until(recv(b.fd, (char[10]){0}, 10, 0) == 10);
	until(recv(b.fd, (char[1]){0}, 1, 0) == 0);
	/* This socket's other end would take more, as far as anybody knows. */
	must(write(b.fd, "x", 1) == 1 || errno == EPIPE);
	until(done_n == 2);
	fd_close(b.fd);
	end_both();
}

/* The same without a word, so that nothing is left to be written. */
static void test_a_reserved_pump_that_has_ended(void)
{
	struct pump here, there;
	int pair[2], a;

	start_both();
	a = open_socket(&here, &near, 2);
	must(pump_reserve(&there, &far, 2, on_done) == 0);
	fd_close(a);
	until(there.ends && all_arrived());
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(pump_start(&there, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3)) == 0);
	must(fd_set_nonblock(pair[1], true) >= 0);
	until(recv(pair[1], (char[1]){0}, 1, 0) == 0);
	(void)!write(pair[1], "x", 1);
	until(done_n == 2);
	fd_close(pair[1]);
	end_both();
}

/* --- terminals --- */

static void open_terminal(struct pump *p, struct carrier *c, int *ret_outer, bool masters)
{
	struct termios raw;
	int master, slave, inner;

	must(openpty(&master, &slave, NULL, NULL, NULL) == 0);
	must(tcgetattr(slave, &raw) == 0);
	cfmakeraw(&raw);
	must(tcsetattr(slave, TCSANOW, &raw) == 0);
	inner = masters ? master : slave;
	*ret_outer = masters ? slave : master;
	must(pump_open(p, c, 2, inner, fcntl(inner, F_DUPFD_CLOEXEC, 3), on_done) == 0);
}

static void test_two_terminals(void)
{
	struct pump here, there;
	struct stream a, b, a_back, b_back;
	int person, program;

	start_both();
	open_terminal(&here, &near, &person, false);
	open_terminal(&there, &far, &program, true);
	a = a_back = stream_of(person);
	b = b_back = stream_of(program);
	stream_through(&a, &b, 300000);
	stream_through(&b_back, &a_back, 300000);
	/* The program ends: the person's terminal hangs up. */
	fd_close(program);
	until(done_n == 2);
	until(!stream_read(&a_back));
	fd_close(person);
	end_both();
}

static void test_the_person_of_a_terminal_leaves(void)
{
	struct pump here, there;
	int person, program;

	start_both();
	open_terminal(&here, &near, &person, false);
	open_terminal(&there, &far, &program, true);
	fd_close(person);
	until(done_n == 2);
	/* No controlling terminal: the program finds the end instead of a signal. */
	check(read(program, (char[1]){0}, 1) <= 0);
	fd_close(program);
	end_both();
}

/* --- carriers --- */

static void test_a_transfer_over_many_carriers(void)
{
	struct pump here, there;
	struct stream from, to;

	start_both();
	open_pipes(&here, &there, &from, &to);
	for (uint64_t most = 50001; to.moved < MANY; most += 50001) {
		while (stream_write(&from, most + 100000))
			must(loop_turn(loop) == 0);
		stream_through(&from, &to, most);
		/* What was on its way is lost. */
		connect_both();
	}
	fd_close(from.fd);
	until(!stream_read(&to));
	check_int(to.moved, from.moved);
	until(done_n == 2);
	fd_close(to.fd);
	end_both();
}

static void test_a_dead_carrier_is_noticed(void)
{
	int pair[2];

	start_both();
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(carrier_attach(&near, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3)) == 0);
	/* That was the far end's, too. */
	until(cut_n == 1);
	check_int(far.in, -1);
	fd_close(pair[1]);
	until(cut_n == 2);
	check_int(near.in, -1);
	check_int(near.out, -1);
	/* What is sent meanwhile waits. */
	must(link_send(&near.link, M_CLEAN, STR_NULL) == 0);
	carrier_kick(&near);
	cut_n = 0;
	told_of = &(struct pump){.channel = {.allowed = 0}};
	connect_both();
	until(got_at_clean == LINK_WINDOW);
	until(all_arrived());
	end_both();
}

int main(void)
{
	must(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	alarm(SECONDS_MAX);
	run_test(test_a_pipe);
	run_test(test_both_directions_of_a_socket);
	run_test(test_a_slow_reader_stops_nobody_else);
	run_test(test_the_writer_learns_that_nobody_reads);
	run_test(test_what_was_written_before_the_end_arrives);
	run_test(test_a_flush_sends_what_can_be_read);
	run_test(test_a_flush_waits_for_no_endless_writer);
	run_test(test_a_flush_writes_what_has_come);
	run_test(test_a_flush_ends_with_its_reader);
	run_test(test_what_comes_for_a_reserved_pump_waits);
	run_test(test_a_reserved_pump_whose_peer_is_gone);
	run_test(test_a_reserved_pump_that_has_ended);
	run_test(test_two_terminals);
	run_test(test_the_person_of_a_terminal_leaves);
	run_test(test_a_transfer_over_many_carriers);
	run_test(test_a_dead_carrier_is_noticed);
	return tap_done();
}
