/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: there is one socket to the supervisor. The thread in client_exec,
 * client_finish or client_wait_started reads from it; any thread may send, under the lock. The two
 * halves of a channel share only the descriptor, so the reader needs the lock only to change what
 * senders look at. A sender whose bytes do not fit into the socket wakes the reader, which then
 * waits for room. */
#include "base/fd.h"
#include "client/client_internal.h"
#include "fs/fs.h"
#include "ipc/statedir.h"
#include "job/job.h"
#include "provider/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *client_id(const struct client *c)
{
	return c->id;
}

const char *client_provider(const struct client *c)
{
	return c->provider;
}

int client_fd(const struct client *c)
{
	return c->chan.fd;
}

struct loop *client_loop(const struct client *c)
{
	return c->loop;
}

void client_break_off(struct client *c, const struct cloche_err *why)
{
	if (c->failed == 0) {
		c->failed = -why->code;
		c->failure = *why;
	}
}

void client_fail(struct client *c, const struct cloche_err *why)
{
	client_break_off(c, why);
	client_stop(c, 0);
}

void client_on_warning(struct client *c, void (*cb)(const char *text, void *user), void *user)
{
	c->on_warning = cb;
	c->on_warning_user = user;
}

int client_tell_hidden(struct client *c, const char *text, const char *mark,
	void (*fn)(const char *text, void *user), void *user, struct cloche_err *err)
{
	int r = set_string(&c->once.text, text, err);

	c->once.fn = fn;
	c->once.user = user;
	return r < 0 ? r : set_string(&c->once.mark, mark, err);
}

/* Whether this was told before. If that cannot be noted, it is told. */
static bool client_was_told(const char *mark)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int dir = -1, fd = -1;

	if (statedir_path(STATEDIR_HIDDEN, &path, NULL) < 0)
		return false;
	dir = fs_open_private_dir(path, NULL);
	if (dir < 0)
		return false;
	fd = openat(dir, mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 && errno == EEXIST;
}

static void client_tell_what_is_hidden(struct client *c)
{
	if (c->once.text && c->once.fn && strcmp(c->provider, PROVIDER_LANDLOCK) != 0 &&
		strcmp(c->provider, PROVIDER_UNSANDBOXED) != 0 && !client_was_told(c->once.mark))
		job_tell_text(c->once.fn, c->once.text, c->once.user);
}

void client_on_wake(struct client *c, void (*cb)(void *user), void *user)
{
	c->on_wake = cb;
	c->on_wake_user = user;
}

void client_leave(struct client *c)
{
	atomic_store(&c->leave, true);
	client_wake(c);
}

void client_wake(struct client *c)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(c->wake_fd, &one, sizeof(one));

	(void)n; /* a full counter wakes as well */
	errno = saved;
}

int client_wake_fd(const struct client *c)
{
	return c->wake_fd;
}

void client_take_wake(struct client *c)
{
	uint64_t count;

	(void)!read(c->wake_fd, &count, sizeof(count));
}

int client_flush_locked(struct client *c)
{
	int r = chan_flush(&c->chan);

	if (r < 0)
		c->over = true;
	else if (chan_pending(&c->chan))
		client_wake(c);
	return r;
}

/* Send what was queued (r is the result of queueing). Called with the lock held; releases it. */
static int send_queued(struct client *c, int r)
{
	if (r == 0)
		r = client_flush_locked(c);
	pthread_mutex_unlock(&c->lock);
	return r < 0 ? -E_NOT_FOUND : 0;
}

int client_signal(struct client *c, int signo, enum ctl_scope scope)
{
	struct ctl_signal m = {.signo = (uint8_t)signo, .scope = scope};
	int r = -1;

	pthread_mutex_lock(&c->lock);
	m.exec = c->current;
	if (!c->over && (c->current || scope == CTL_SCOPE_ROOM))
		r = ctl_send_signal(&c->chan, &m);
	return send_queued(c, r);
}

int client_stop(struct client *c, uint64_t grace_usec)
{
	int r = -1;

	pthread_mutex_lock(&c->lock);
	if (!c->over)
		r = ctl_send_stop(&c->chan, &(struct ctl_stop){.grace_usec = grace_usec});
	return send_queued(c, r);
}

int client_give_up(struct client *c)
{
	bool given_up;

	pthread_mutex_lock(&c->lock);
	if (!c->started && !c->over)
		c->given_up = c->over = shutdown(c->chan.fd, SHUT_WR) == 0;
	given_up = c->given_up;
	pthread_mutex_unlock(&c->lock);
	return given_up ? 0 : -E_NOT_FOUND;
}

int client_resize(struct client *c, uint16_t rows, uint16_t cols)
{
	struct ctl_resize m = {.rows = rows, .cols = cols};
	int r = -1;

	pthread_mutex_lock(&c->lock);
	m.exec = c->current;
	if (!c->over && c->current)
		r = ctl_send_resize(&c->chan, &m);
	return send_queued(c, r);
}

static int bad_frame(struct cloche_err *err)
{
	return err_set(err, E_PROTOCOL, "the supervisor sent something malformed");
}

static int on_warning(struct client *c, struct str payload, struct cloche_err *err)
{
	char text[CTL_MAX_TEXT + 1];
	struct ctl_warning m;

	if (!ctl_get_warning(payload, &m))
		return bad_frame(err);
	str_copy(text, sizeof(text), m.text);
	if (c->on_warning)
		job_tell_text(c->on_warning, text, c->on_warning_user);
	return 0;
}

static int on_started(struct client *c, struct str payload, struct cloche_err *err)
{
	struct ctl_started m;

	if (!ctl_get_started(payload, &m))
		return bad_frame(err);
	str_copy(c->provider, sizeof(c->provider), m.provider);
	str_copy(c->isolation, sizeof(c->isolation), m.isolation);
	pthread_mutex_lock(&c->lock);
	c->started = true;
	pthread_mutex_unlock(&c->lock);
	client_tell_what_is_hidden(c);
	return 0;
}

static int on_exec_started(struct client *c, struct chan_frame *f, struct cloche_err *err)
{
	struct ctl_exec_started m;

	if (!ctl_get_exec_started(f->payload, &m))
		return bad_frame(err);
	if (!c->run || c->run->exec != m.exec)
		return 0;
	c->run->started = true;
	c->run->result.number = m.number;
	if (f->fds_n == 1 && c->run->input < 0)
		c->run->input = TAKE_FD(f->fds[0]);
	if (c->run->what->started)
		c->run->what->started(c->run->what->user, &m);
	return 0;
}

static int on_exec_failed(struct client *c, struct str payload, struct cloche_err *err)
{
	struct ctl_exec_failed m;

	if (!ctl_get_exec_failed(payload, &m))
		return bad_frame(err);
	if (c->run && c->run->exec == m.exec) {
		c->run->ended = true;
		c->run->err_code = (int)m.code;
		err_set(&c->run->err, (int)m.code, "%.*s", STR_FMT(m.message));
		c->run->err.sys_errno = (int)m.sys_errno;
	}
	return 0;
}

static int on_exec_exited(struct client *c, struct str payload, struct cloche_err *err)
{
	struct ctl_exec_exited m;

	if (!ctl_get_exec_exited(payload, &m))
		return bad_frame(err);
	if (c->run && c->run->exec == m.exec) {
		c->run->ended = true;
		c->run->result.end = m;
	}
	return 0;
}

static int on_exec_stopped(struct client *c, struct str payload, struct cloche_err *err)
{
	struct ctl_exec_stopped m;

	if (!ctl_get_exec_stopped(payload, &m))
		return bad_frame(err);
	if (c->run && c->run->exec == m.exec)
		c->run->stopped = true;
	return 0;
}

static int on_ended(struct client *c, struct str payload, struct cloche_err *err)
{
	if (!ctl_get_ended(payload, &c->end))
		return bad_frame(err);
	pthread_mutex_lock(&c->lock);
	c->ended = c->over = true;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static int on_refused(struct client *c, struct str payload, struct cloche_err *err)
{
	struct ctl_refused m;

	if (!c->reply || !ctl_get_refused(payload, &m))
		return bad_frame(err);
	c->reply->came = true;
	c->reply->err = m.err;
	c->reply->code = -m.err.code;
	return 0;
}

/* Take the answer to the pending request. */
static int on_reply(struct client *c, struct chan_frame *f, struct cloche_err *err)
{
	struct client_reply *reply = c->reply;

	if (!reply || reply->came || reply->type != f->type ||
		f->fds_n != (f->type == CTL_LAYERS_ARE ? 2 : 0) ||
		(f->type == CTL_STATS_NOW && !ctl_get_stats_now(f->payload, &reply->stats)))
		return bad_frame(err);
	for (unsigned i = 0; i < f->fds_n; i++)
		reply->fds[i] = TAKE_FD(f->fds[i]);
	reply->came = true;
	return 0;
}

static int on_frame(struct client *c, struct chan_frame *f, struct cloche_err *err)
{
	switch (f->type) {
	case CTL_WARNING:
		return on_warning(c, f->payload, err);
	case CTL_STARTED:
		return on_started(c, f->payload, err);
	case CTL_ERROR:
		ctl_get_error(f->payload, &c->error);
		return 0;
	case CTL_EXEC_STARTED:
		return on_exec_started(c, f, err);
	case CTL_EXEC_FAILED:
		return on_exec_failed(c, f->payload, err);
	case CTL_EXEC_EXITED:
		return on_exec_exited(c, f->payload, err);
	case CTL_EXEC_STOPPED:
		return on_exec_stopped(c, f->payload, err);
	case CTL_ENDED:
		return on_ended(c, f->payload, err);
	case CTL_STATS_NOW:
	case CTL_FORWARDED:
	case CTL_LAYERS_ARE:
	case CTL_POLICY_PASSED:
	case CTL_COMPLETED:
	case CTL_SYNCED:
		return on_reply(c, f, err);
	case CTL_BRINGS:
		c->brings = true;
		return 0;
	case CTL_REFUSED:
		return on_refused(c, f->payload, err);
	default:
		return bad_frame(err);
	}
}

/* The channel has ended without ENDED. */
static int supervisor_gone(struct client *c, struct cloche_err *err)
{
	bool given_up;
	int status;

	pthread_mutex_lock(&c->lock);
	c->over = true;
	given_up = c->given_up;
	pthread_mutex_unlock(&c->lock);
	if (c->error.code != 0)
		return client_never_ran(c, err);
	if (given_up)
		return err_set(err, E_CANCELLED, "stopped before the sandbox had started");
	if (!c->detached && c->pid > 0 && job_wait_child(c->pid, &status) == 0) {
		c->pid = 0;
		if (WIFSIGNALED(status))
			return err_set(err, E_INTERNAL, "the sandbox's supervisor was killed (%s)",
				strsignal(WTERMSIG(status)));
	}
	err_set(err, E_INTERNAL, "the sandbox's supervisor ended unexpectedly");
	if (c->guest)
		err_hint(err, "\"cloche ps -a\" says whether %s is still there", c->id);
	return -E_INTERNAL;
}

static int read_frames(struct client *c, struct cloche_err *err)
{
	while (!c->ended) {
		struct chan_frame f;
		int r = chan_recv(&c->chan, &f);

		if (r == 0)
			return 0;
		if (r == -EPIPE)
			return supervisor_gone(c, err);
		if (r < 0)
			return err_sys(err, -r, "read from the supervisor");
		r = on_frame(c, &f, err);
		chan_frame_done(&f);
		if (r < 0)
			return r;
	}
	return 0;
}

void client_on_chan(struct loop_io *io, uint32_t events)
{
	container_of(io, struct client, chan_io)->chan_came = events;
}

void client_on_woken(struct loop_io *io, uint32_t events)
{
	uint64_t count;

	if (read(io->fd, &count, sizeof(count)) == sizeof(count))
		container_of(io, struct client, wake_io)->woken = true;
}

/* Wait once for any event. */
static int wait_once(struct client *c, struct pump *p, struct cloche_err *err)
{
	int r = p ? pump_watch(p, c->loop) : 0;

	if (r < 0)
		return err_sys(err, -r, "watch the command's streams");
	pthread_mutex_lock(&c->lock);
	loop_io_set(&c->chan_io, chan_pending(&c->chan) ? EPOLLIN | EPOLLOUT : EPOLLIN);
	pthread_mutex_unlock(&c->lock);
	c->chan_came = 0;
	client_watch(c);
	r = loop_turn(c->loop);
	return r < 0 ? err_sys(err, -r, "wait") : 0;
}

int client_take_failure(struct client *c, struct cloche_err *err)
{
	int r = c->failed;

	c->failed = 0;
	if (r < 0 && err)
		*err = c->failure;
	return r;
}

int client_turn(struct client *c, struct pump *p, struct cloche_err *err)
{
	int r = wait_once(c, p, err);

	if (r < 0)
		return r;
	if (c->chan_came & EPOLLOUT) {
		pthread_mutex_lock(&c->lock);
		r = client_flush_locked(c);
		pthread_mutex_unlock(&c->lock);
		if (r < 0 && r != -EPIPE)
			return err_sys(err, -r, "write to the supervisor");
	}
	if (c->woken) {
		c->woken = false;
		if (c->on_wake)
			c->on_wake(c->on_wake_user);
	}
	if (p)
		pump_move(p, c->chunk);
	r = client_take_failure(c, err);
	return r == 0 && c->chan_came ? read_frames(c, err) : r;
}

int client_never_ran(struct client *c, struct cloche_err *err)
{
	if (c->error.code != 0) {
		if (err)
			*err = c->error;
		return -c->error.code;
	}
	return err_set(err, E_CANCELLED, "the sandbox ended before the command was run");
}

/* If START failed (ERROR and ENDED came), that is the better reason. */
int client_broken(struct client *c, int r, struct cloche_err *err)
{
	if (r != -EPIPE)
		return err_sys(err, -r, "send the command to the supervisor");
	return client_never_ran(c, err);
}

int client_wait_for(struct client *c, const bool *flag, struct cloche_err *err)
{
	while (!*flag) {
		int r = c->ended ? client_never_ran(c, err) : client_turn(c, NULL, err);

		if (r < 0)
			return r;
	}
	return 0;
}

int client_wait_started(struct client *c, struct cloche_err *err)
{
	return client_wait_for(c, &c->started, err);
}

int client_finish(struct client *c, struct ctl_ended *ret, struct cloche_err *err)
{
	while (!c->ended) {
		int r = client_turn(c, NULL, err);

		if (r < 0)
			return r;
	}
	*ret = c->end;
	/* The command has ended, but what it left elsewhere did not come back whole. */
	return c->error.code == E_BROKEN ? client_never_ran(c, err) : 0;
}
