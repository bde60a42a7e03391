/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that belong to no process of the room: captured connections and file workers. A file
 * worker stands outside of the room, in the directory of one mount, and can open nothing else. */
#include "base/fd.h"
#include "base/program.h"
#include "farside/hold.h"
#include "farside/program.h"
#include "fileworker/serve.h"
#include "jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

enum { FD_ROOT = 3 };

static void streams_on_done(struct pump *p)
{
	struct hold_stream *s = (struct hold_stream *)p;

	/* It ends with its socket, but it may be stuck. */
	if (s->worker > 0) {
		kill(s->worker, SIGKILL);
		waitpid(s->worker, NULL, 0);
	}
	DL_DELETE(s->hold->streams, s);
	free(s);
}

int streams_add(struct hold *h, uint32_t number, int fd, struct hold_stream **ret)
{
	_cleanup_fd_ int in = fd, out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	_cleanup_(freep) struct hold_stream *s = calloc(1, sizeof(*s));
	int e;

	if (!s || out < 0)
		return -ENOMEM;
	s->hold = h;
	e = pump_open(&s->pump, &h->carrier, number, TAKE_FD(in), TAKE_FD(out), streams_on_done);
	if (e < 0)
		return e;
	DL_APPEND(h->streams, s);
	if (ret)
		*ret = s;
	TAKE_PTR(s);
	return 0;
}

unsigned streams_count(const struct hold *h)
{
	const struct hold_stream *s;
	unsigned n = 0;

	DL_FOREACH (h->streams, s)
		n++;
	return n;
}

static int streams_start_worker(int root, int sock, pid_t *ret)
{
	const char *const argv[] = {"/proc/self/exe", "serve-files", NULL};
	char *env[] = {NULL};
	const struct program_fd fds[] = {{root, FD_ROOT}};
	const struct program_spawn spawn = {.path = argv[0],
		.argv = argv,
		.env = env,
		.fds = fds,
		.fds_n = ARRAY_SIZE(fds),
		.stdio = {sock, -1, 2}};

	return program_start(&spawn, ret, NULL, NULL) < 0 ? -EAGAIN : 0;
}

int streams_on_files(struct hold *h, struct str payload)
{
	struct far_files m;
	struct hold_stream *s;
	_cleanup_fd_ int ours = -1, theirs = -1, root = -1;
	pid_t worker = 0;
	int pair[2], e;

	if (!message_get(payload, far_files_message(), &m) || !h->has_spec ||
		m.mount >= h->spec.mounts_n)
		return -EPROTO;
	e = fd_socketpair(SOCK_STREAM, pair);
	if (e < 0)
		return e;
	ours = pair[0];
	theirs = pair[1];
	/* Without a worker the other end finds its socket closed. */
	root = make_open_place(h, m.mount);
	e = root < 0 ? root : streams_start_worker(root, theirs, &worker);
	fd_close(TAKE_FD(theirs));
	e = streams_add(h, m.channel, TAKE_FD(ours), &s);
	if (e == 0)
		s->worker = worker;
	return e;
}

int farside_files(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_fd_ int fd = fcntl(0, F_DUPFD_CLOEXEC, 4);

	if (fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return 1;
	signal(SIGXFSZ, SIG_IGN);
	if (landlock_confine("/proc/self/fd/3", &err) < 0) {
		fprintf(stderr, "cloche-far: %s\n", err.message);
		return 1;
	}
	return files_serve(TAKE_FD(fd), FD_ROOT, "", NULL, 0) < 0;
}
