/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever waits for a supervisor that is stopped (SIGSTOP) would wait for ever, without a word. So
 * whoever waits looks now and then at the process at the other end. If it stands still, a question
 * fails, and so do a stop and a command whose time is over; a command that may take any time goes
 * on waiting, but this is said. Slowness is no reason: only the kernel's word that the process is
 * stopped. Only a process that is nobody's command has a limited time to start. */
#include "base/clock.h"
#include "base/fd.h"
#include "client/client_internal.h"
#include "job/job.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

enum { LOOKS = 2 }; /* in a row; whoever is stopped for a moment goes on */
#define LOOK_USEC (2 * USEC_PER_SEC)

/* Return 0 if it is not known, as in another PID namespace. A guest's socket was made by the
 * supervisor; else both ends are of our making. */
static pid_t watch_peer(const struct client *c)
{
	struct ucred peer = {0};
	socklen_t n = sizeof(peer);

	if (!c->guest)
		return c->pid;
	return getsockopt(c->chan.fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 ? peer.pid : 0;
}

static bool watch_is_stopped(pid_t pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[32], *text, *at;

	if (pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return false;
	text = buf_cstr(&b);
	at = text ? strrchr(text, ')') : NULL;
	return at && strncmp(at, ") T ", 4) == 0;
}

/* Whether the command that is waited for should have ended. */
static bool watch_is_overdue(const struct client *c)
{
	uint64_t timeout = c->run && c->run->what->spec ? c->run->what->spec->timeout_usec : 0;

	return timeout && clock_mono_usec() - c->run->began > timeout;
}

/* Whether too long has been waited for the start. Somebody inside can stop what is about to start.
 */
static bool watch_is_late(const struct client *c)
{
	uint64_t limit = c->run && !c->run->started ? c->run->what->start_usec : 0;

	return limit && clock_mono_usec() - c->run->began > limit;
}

static void watch_tell(struct client *c, pid_t pid)
{
	char text[CTL_ID_MAX + 128];

	snprintf(text, sizeof(text),
		"the supervisor of %s (process %d) is stopped, and nothing goes on: "
		"\"kill -CONT %d\" continues it",
		c->id, (int)pid, (int)pid);
	if (c->on_warning)
		job_tell_text(c->on_warning, text, c->on_warning_user);
}

static void watch_look(struct loop_timer *timer)
{
	struct client *c = container_of(timer, struct client, watch);
	pid_t pid = watch_peer(c);

	c->stopped = watch_is_stopped(pid) ? c->stopped + 1 : 0;
	if (c->stopped >= LOOKS &&
		(c->reply || c->ending || watch_is_overdue(c) || watch_is_late(c))) {
		c->failed = err_set(&c->failure, E_BUSY, "its supervisor is stopped");
		err_hint(&c->failure, "\"kill -CONT %d\" continues it, \"cloche rm -f %s\" ends it",
			(int)pid, c->id);
	} else if (watch_is_late(c)) {
		c->failed = err_set(&c->failure, E_BUSY, "the sandbox did not start it in %u s",
			(unsigned)(c->run->what->start_usec / USEC_PER_SEC));
		err_hint(&c->failure,
			"programs inside may stop it: \"cloche stop %s\" ends them all", c->id);
	} else if (c->stopped == LOOKS) {
		watch_tell(c, pid);
	}
	client_watch(c);
}

void client_watch(struct client *c)
{
	if (!c->watch.loop)
		(void)!loop_timer_in(c->loop, &c->watch, LOOK_USEC, watch_look);
}
