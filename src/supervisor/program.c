/* SPDX-License-Identifier: Apache-2.0 */
/* There is one supervisor per sandbox. It makes the room, speaks to its init, its helpers and its
 * clients, and takes everything down again. The client that started it is on descriptor 3
 * (ipc/control.h). With --detached it detaches itself from its parent; the last argument is how
 * many descriptors follow that one. */
#include "supervisor/program.h"
#include "base/fd.h"
#include "supervisor/supervisor.h"

#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static void program_on_signal(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, signals);
	struct signalfd_siginfo info;

	if (read(io->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	/* A second signal ends the sandbox at once. */
	if (s->state == SUP_NEW)
		loop_stop(s->loop, 0);
	else
		sandbox_end(
			s, CTL_REASON_STOPPED, s->state == SUP_ENDING ? 0 : s->start.grace_usec);
}

static int watch_signals(struct supervisor *s)
{
	sigset_t mask;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log at the file size limit is a write error */
	fd = loop_signalfd(&mask);
	return fd < 0 ? fd : loop_io_add(s->loop, &s->signals, fd, EPOLLIN, program_on_signal);
}

static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* No program that we start may get them. */
static int keep_sources(unsigned n)
{
	return n ? fd_close_range(CTL_FIRST_SOURCE, CTL_FIRST_SOURCE + n - 1, CLOSE_RANGE_CLOEXEC)
		 : 0;
}

int supervisor_program(unsigned sources, bool detached)
{
	static struct supervisor s = {.dir = SANDBOX_DIR_INIT, .net.gateway_end = -1};
	int r;

	if (fd_sanitize_stdio() < 0 || !is_socket(CTL_FD)) {
		fprintf(stderr, "cloche-supervisor: is started by cloche, not by hand\n");
		return 125;
	}
	if (detached) {
		pid_t pid = fork();

		if (pid != 0)
			_exit(pid < 0 ? 125 : 0);
	}
	/* The client translates the terminal's signals. */
	setsid();
	umask(077);
	if (chdir("/") < 0 || fd_close_from(CTL_FIRST_SOURCE + (int)sources, NULL, 0) < 0 ||
		keep_sources(sources) < 0)
		return 125;
	room_spec_init(&s.spec);
	s.sources = sources;
	for (int i = 0; i < ROOM_LISTENERS; i++)
		s.net.listeners[i] = -1;
	s.loop = loop_new();
	if (!s.loop || watch_signals(&s) < 0 || peer_add(&s, CTL_FD, true) < 0) {
		fprintf(stderr, "cloche-supervisor: out of memory or descriptors\n");
		return 125;
	}
	r = loop_run(s.loop);
	/* The process ends here, so nothing needs to be freed. */
	_exit(r < 0 ? 125 : 0);
}
