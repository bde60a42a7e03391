/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the keeper is the parent of a far room's relay, which has no rights, and
 * starts for it what carries bytes: the provider's program, which becomes ssh, say. It reads of the
 * other machine only the first line, which says whether our program is there, and copies it there
 * if it is not. The rest is the relay's. */
#include "keep.h"
#include "base/fd.h"
#include "base/program.h"
#include "far/greet.h"
#include "far/protocol.h"
#include "job/job.h"
#include "provider/program/operations.h"

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

enum {
	PROGRAM_SEC = 120,
	CREATE_SEC = 540, /* it may have to get an image first */
	GOODBYE_SEC = 20,
	LINE_SEC = 60, /* until the other machine says something, and for each piece it takes */
};

struct keeper {
	struct provider provider; /* its name and path alone */
	struct chan relay;
	struct process_stream stream;
};

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
	bool copied;
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
	return e < 0 ? e
		     : greet_place(&(struct greet){k->stream.from, k->stream.to, LINE_SEC, 0},
			       &copied, err);
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
