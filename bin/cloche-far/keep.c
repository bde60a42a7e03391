/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the keeper is the parent of a far room's relay, which has no rights, and
 * starts for it what carries bytes: the provider's program, which becomes ssh, say. It reads of the
 * other machine only the first line, which says whether our program is there, and copies it there
 * if it is not. The rest is the relay's. */
#include "keep.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "far/protocol.h"
#include "far/script.h"
#include "job/job.h"
#include "provider/program/operations.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum {
	PROGRAM_SEC = 120,
	CREATE_SEC = 540, /* it may have to get an image first */
	GOODBYE_SEC = 3,
	LINE_SEC = 60,   /* until the other machine says something, and for each piece it takes */
	LINES_MAX = 100, /* what a person's own start-up files may print before */
	LINE_MAX_BYTES = 512,
};

struct keeper {
	struct provider provider; /* its name and path alone */
	struct chan relay;
	struct process_stream stream;
};

/* --- the first line --- */

static int keep_wait(int fd, short events, struct cloche_err *err)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n = job_wait(&p, 1, LINE_SEC * 1000);

	if (n > 0)
		return 0;
	return err_set(err, E_NETWORK, "the other machine says nothing for %d s", LINE_SEC);
}

/* Read a line, byte by byte, since what follows belongs to the relay. Return its length, or
 * negative. */
static int keep_read_line(int fd, char ret[LINE_MAX_BYTES], struct cloche_err *err)
{
	size_t n = 0;

	while (n < LINE_MAX_BYTES - 1) {
		int e = keep_wait(fd, POLLIN, err);
		ssize_t got = e < 0 ? 0 : read(fd, ret + n, 1);

		if (e < 0)
			return e;
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return err_set(
				err, E_NETWORK, "the connection ended before the room began");
		if (ret[n] == '\n')
			break;
		n++;
	}
	ret[n] = '\0';
	return (int)n;
}

/* Send the program for that machine. */
static int keep_send_program(struct keeper *k, const char *machine, struct cloche_err *err)
{
	_cleanup_fd_ int fd = script_open_program(machine, err);
	struct stat st;
	off_t at = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "read the program for the other machine");
	while (at < st.st_size) {
		int e = keep_wait(k->stream.to, POLLOUT, err);
		ssize_t n;

		if (e < 0)
			return e;
		n = sendfile(k->stream.to, fd, &at, (size_t)(st.st_size - at));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_sys(err, errno, "copy cloche-far to the other machine");
	}
	return 0;
}

/* See that the program runs there. What follows is sent only when it does: a head that reads more
 * than it was asked for (busybox) would keep it. */
static int keep_greet(struct keeper *k, struct cloche_err *err)
{
	char line[LINE_MAX_BYTES];
	bool sent = false;

	for (int i = 0; i < LINES_MAX; i++) {
		int e = keep_read_line(k->stream.from, line, err);

		if (e < 0)
			return e;
		if (strcmp(line, SCRIPT_HAVE) == 0)
			return 0;
		if (!sent && strncmp(line, SCRIPT_NEED, strlen(SCRIPT_NEED)) == 0) {
			e = keep_send_program(k, line + strlen(SCRIPT_NEED), err);
			if (e < 0)
				return e;
			sent = true;
			continue;
		}
		if (strncmp(line, SCRIPT_LACKS, strlen(SCRIPT_LACKS)) == 0)
			return err_set(err, E_UNSUPPORTED,
				"there is no cloche-far for the other machine's processor");
	}
	return err_set(err, E_PROTOCOL, "the other machine says other things than the room");
}

/* --- carriers --- */

/* Return whether the request names an image: a word of it never begins a line. */
static bool keep_wants_image(struct str request)
{
	while (request.n)
		if (str_starts(str_next_line(&request), STR("root image ")))
			return true;
	return false;
}

static int keep_start(struct keeper *k, const struct keeper_carry *m, struct cloche_err *err)
{
	struct words_answer answer;
	struct process run;
	int e;

	(void)process_stream_end(&k->stream);
	e = process_begin(&run, &k->provider,
		&(struct process_ask){.verb = m->again ? "connect" : "create",
			.request = m->request,
			.patience_sec = m->again ? PROGRAM_SEC : CREATE_SEC,
			.far = true,
			.leader = "/proc/self/exe"},
		err);
	if (e < 0)
		return e;
	e = process_end_or_stream(&run, &answer, &k->stream, err);
	if (e == 0)
		return err_set(err, E_UNSUPPORTED, "provider %s makes no rooms elsewhere",
			k->provider.name);
	if (e > 0 && !answer.root_image && keep_wants_image(m->request)) {
		err_set(err, E_UNSUPPORTED, "provider %s makes no rooms from images at a place",
			k->provider.name);
		err_hint(err, "leave --root out: the place's own system is the root");
		return -E_UNSUPPORTED;
	}
	return e < 0 ? e : keep_greet(k, err);
}

/* Start a carrier and hand it over. */
static int keep_carry(struct keeper *k, const struct keeper_carry *m)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int e = keep_start(k, m, &err);

	if (e < 0) {
		(void)process_stream_end(&k->stream);
		return keeper_send_failed(&k->relay, &err);
	}
	e = keeper_send_carries(&k->relay, (const int[]){k->stream.from, k->stream.to});
	/* Its end has to be seen by the relay alone. */
	k->stream.from = fd_close(k->stream.from);
	k->stream.to = fd_close(k->stream.to);
	return e;
}

/* Make a terminal in raw mode and hand it over; nothing, if there is none to be had. */
static int keep_make_terminal(struct keeper *k)
{
	_cleanup_fd_ int master = -1, slave = -1;
	struct termios raw;
	bool ok = openpty(&master, &slave, NULL, NULL, NULL) == 0 && tcgetattr(slave, &raw) == 0;

	if (ok) {
		cfmakeraw(&raw);
		ok = tcsetattr(slave, TCSANOW, &raw) == 0;
	}
	return chan_send(
		&k->relay, KEEPER_MADE, STR_NULL, (const int[]){master, slave}, ok ? 2 : 0);
}

static int keep_answer(struct keeper *k, const struct chan_frame *f)
{
	struct keeper_carry m;

	if (f->type == KEEPER_TERMINAL)
		return keep_make_terminal(k);
	return f->type == KEEPER_CARRY && keeper_get_carry(f->payload, &m) ? keep_carry(k, &m)
									   : -EPROTO;
}

static int keep_serve(struct keeper *k)
{
	for (;;) {
		struct chan_frame f;
		int e = chan_recv_wait(&k->relay, &f, -1);

		if (e < 0)
			return e == -EPIPE ? 0 : e;
		e = keep_answer(k, &f);
		chan_frame_done(&f);
		if (e == 0)
			e = chan_flush_wait(&k->relay, -1);
		if (e < 0)
			return e == -EPIPE ? 0 : e;
	}
}

int keep_lead(const char *path, const char *verb)
{
	const char *const argv[] = {path, verb, NULL};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 125;
	execv(path, (char *const *)(uintptr_t)argv);
	fprintf(stderr, "cloche-far: start %s: %s\n", path, err_errno_text(errno));
	return 125;
}

/* --- start --- */

static int keep_start_relay(struct keeper *k, pid_t *ret, struct cloche_err *err)
{
	const char *const argv[] = {"cloche-far", "relay", NULL};
	_cleanup_fd_ int theirs = -1;
	int pair[2], e = fd_socketpair(SOCK_STREAM, pair);

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	theirs = pair[1];
	e = chan_init(&k->relay, pair[0], FARCTL_MAX_PAYLOAD, FARCTL_MAX_PAYLOAD);
	if (e < 0)
		return err_sys(err, -e, "speak with the relay");
	return program_start(
		&(struct program_spawn){.path = "/proc/self/exe",
			.argv = argv,
			.fds = (const struct program_fd[]){{FARCTL_FD_INIT, FARCTL_FD_INIT},
				{FARCTL_FD, FARCTL_FD}, {theirs, FARCTL_FD_KEEPER},
				{FARCTL_FD_END, FARCTL_FD_END}},
			.fds_n = 4,
			.stdio = {-1, -1, 2}},
		ret, NULL, err);
}

static void keep_on_orphaned(int signo)
{
	alarm(GOODBYE_SEC);
}

int keep_program(const char *name, const char *path)
{
	static struct keeper k;
	struct cloche_err err = CLOCHE_ERR_INIT;
	pid_t relay = 0;

	k.provider.name = name;
	k.provider.path = path;
	k.stream = PROCESS_STREAM_NONE;
	/* If the supervisor is killed, the relay says goodbye to the far end, which takes a moment.
	 */
	if (signal(SIGTERM, keep_on_orphaned) == SIG_ERR || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 ||
		signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 125;
	if (keep_start_relay(&k, &relay, &err) < 0) {
		fprintf(stderr, "cloche-far: %s\n", err.message);
		return 125;
	}
	/* The relay alone says how the room has ended. */
	fd_close(FARCTL_FD_INIT);
	fd_close(FARCTL_FD);
	fd_close(FARCTL_FD_END);
	(void)keep_serve(&k);
	(void)!job_wait_child(relay, NULL);
	(void)process_stream_end(&k.stream);
	return 0;
}
