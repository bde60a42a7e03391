/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a log is read from the sandbox's directory, without asking its supervisor.
 * meta.json, which is written after the last byte, tells that nothing will be added any more. A
 * follower sleeps until the kernel reports a change in the command's directory, or until the
 * supervisor has gone, for which it keeps an idle connection.
 *
 * Kernels before 6.8 do not report what is spliced into a file; there a follower also looks ten
 * times a second. */
#include "api/instance/instance.h"
#include "base/fd.h"
#include "base/json.h"
#include "job/job.h"
#include "manager/execlog.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024, LOOK_AGAIN_MS = 100, WITHOUT_WATCH_MS = 500 };

struct cloche_log {
	cloche_instance *in;
	uint32_t number;
	int dir; /* the command's */
	struct execlog_reader reader;
	int inotify, wake;
	bool ended; /* nothing will be added: meta.json or the sandbox's end said so */
	atomic_bool stop;
	char why[128]; /* what cloche_log_look() said */
};

static int open_files(cloche_log *log, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	int r = instance_open_entry(log->in, &entry, err);

	if (r < 0)
		return r;
	log->ended = entry.life == SANDBOX_ENDED;
	if (log->number == 0)
		log->number = execs_latest(entry.dir, false);
	if (log->number == 0) {
		err_set(err, E_NOT_FOUND, "nothing has run in sandbox %s that left a log",
			log->in->id);
		err_hint(err, "sandboxes of \"cloche create\" and \"cloche run --detach\" keep "
			      "logs");
		return -E_NOT_FOUND;
	}
	log->dir = execs_open(entry.dir, log->number, err);
	if (log->dir == -E_NOT_FOUND && err) {
		err_wrap(err, log->dir, "sandbox %s", log->in->id);
		err_hint(err, "\"cloche inspect %s\" lists its commands", log->in->id);
	}
	return log->dir < 0 ? log->dir : execlog_reader_open(&log->reader, log->dir, err);
}

int cloche_log_open(
	const cloche_instance *instance, uint32_t number, cloche_log **ret, cloche_err *err)
{
	_cleanup_(cloche_log_freep) cloche_log *log = calloc(1, sizeof(*log));
	int r;

	if (!log)
		return err_nomem(err);
	log->dir = log->inotify = log->wake = -1;
	log->reader = EXECLOG_READER_INIT;
	log->number = number;
	log->in = instance_copy(instance);
	if (!log->in)
		return err_sys(err, errno, "copy the handle of a sandbox");
	log->wake = fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (log->wake < 0)
		return err_sys(err, errno, "make an event");
	r = open_files(log, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(log);
	return 0;
}

void cloche_log_free(cloche_log *log)
{
	if (!log)
		return;
	execlog_reader_done(&log->reader);
	fd_close(log->dir);
	fd_close(log->inotify);
	fd_close(log->wake);
	cloche_instance_free(log->in);
	free(log);
}

void cloche_log_stop(cloche_log *log)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t n;

	atomic_store(&log->stop, true);
	n = write(log->wake, &one, sizeof(one));
	(void)n;
	errno = saved;
}

static bool instance_log_has_ended(cloche_log *log)
{
	if (!log->ended) {
		_cleanup_json_ json_t *meta = execs_meta(log->dir);

		log->ended = execs_meta_closed(meta);
	}
	return log->ended;
}

/* Fill in what could not be logged. */
static void instance_log_miss(cloche_log *log, cloche_log_state *ret)
{
	_cleanup_json_ json_t *meta = execs_meta(log->dir);
	const char *why = json_string_value(json_object_get(meta, "log_error"));

	if (!why)
		return;
	snprintf(log->why, sizeof(log->why), "%s", why);
	ret->missing_why = log->why;
	ret->missing = (uint64_t)json_integer_value(json_object_get(meta, "lost_bytes"));
}

int cloche_log_look(cloche_log *log, cloche_log_state *ret, cloche_err *err)
{
	cloche_log_state s = {.number = log->number, .ended = instance_log_has_ended(log)};
	int r;

	if (ret->size == 0)
		return err_set(err, E_USAGE, "the size of cloche_log_state is not set");
	s.size = ret->size;
	r = execlog_extent(&log->reader, &s.start, &s.end);
	if (r < 0)
		return err_sys(err, -r, "look at the log");
	instance_log_miss(log, &s);
	memcpy(ret, &s, MIN(sizeof(s), s.size));
	return 0;
}

int cloche_log_read(cloche_log *log, uint64_t offset, void *buffer, size_t size,
	cloche_log_piece *ret, cloche_err *err)
{
	/* Look for the end first, so that all that was written before it is read after it. */
	bool ended = instance_log_has_ended(log);
	int stream = 1;
	int64_t n = execlog_read(&log->reader, &offset, buffer, size, &stream);

	if (n < 0)
		return err_sys(err, (int)-n, "read the log");
	*ret = (cloche_log_piece){.offset = offset,
		.length = (size_t)n,
		.is_stderr = stream == 2,
		.ended = ended && n == 0};
	return 0;
}

/* Return whether the kernel reports splices. */
static bool tells_all(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 8));
}

int log_watch(cloche_log *log, struct cloche_err *err)
{
	char path[64];

	if (log->inotify < 0)
		log->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log->dir);
	if (log->inotify < 0 || inotify_add_watch(log->inotify, path,
					IN_MODIFY | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF) < 0) {
		err_sys(err, errno, "watch the log");
		err_hint(err, "fs.inotify.max_user_instances may be too low");
		return -E_SYSTEM;
	}
	return log->inotify;
}

/* Pass on what there is. Return 1 if the callback wants no more, 2 if the command has ended. */
JOB_ASK4(call_log_fn, cloche_log_fn, bool, false, bool, uint64_t, const void *, size_t)

static int instance_log_hand_on(cloche_log *log, uint64_t *offset, char *chunk, cloche_log_fn fn,
	void *user, struct cloche_err *err)
{
	for (;;) {
		cloche_log_piece piece;
		int r = cloche_log_read(log, *offset, chunk, CHUNK, &piece, err);

		if (r < 0 || piece.ended)
			return r < 0 ? r : 2;
		if (atomic_load(&log->stop))
			return 1;
		if (piece.length == 0)
			return 0;
		*offset = piece.offset + piece.length;
		if (!call_log_fn(fn, piece.is_stderr, piece.offset, chunk, piece.length, user))
			return 1;
	}
}

/* The connection to the supervisor has ended. Return 0 if the sandbox ended in order, or still
 * lives (then it is not watched). */
static int look_why(cloche_log *log, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	int r;

	log->ended = false;
	if (instance_log_has_ended(log))
		return 0;
	r = instance_open_entry(log->in, &entry, err);
	if (r < 0)
		return r;
	/* The sandbox ended in order, so everything in it has ended. */
	log->ended = entry.life == SANDBOX_ENDED;
	return 0;
}

static void drain(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

struct following {
	struct client *client; /* NULL: cannot be watched */
	int inotify;
	int timeout; /* of poll */
};

static int begin_following(cloche_log *log, struct following *f, struct cloche_err *err)
{
	f->inotify = log_watch(log, err);
	f->timeout = tells_all() ? -1 : LOOK_AGAIN_MS;
	if (f->inotify >= 0 && !instance_log_has_ended(log) &&
		client_attach(log->in->base, log->in->id, &f->client, NULL) < 0)
		f->timeout = WITHOUT_WATCH_MS;
	return MIN(f->inotify, 0);
}

/* Sleeps until something may have changed. */
static int wait_for_change(cloche_log *log, struct following *f, struct cloche_err *err)
{
	struct pollfd polls[] = {{.fd = f->inotify, .events = POLLIN},
		{.fd = log->wake, .events = POLLIN},
		{.fd = f->client ? client_fd(f->client) : -1, .events = POLLRDHUP}};
	int n = job_wait(polls, ARRAY_SIZE(polls), f->timeout);

	if (n < 0)
		return err_sys(err, -n, "wait for the log");
	drain(f->inotify);
	if (f->client && polls[2].revents) {
		f->client = client_free(f->client);
		f->timeout = WITHOUT_WATCH_MS;
	} else if (n != 0 || f->client) {
		return 0;
	}
	return look_why(log, err);
}

int cloche_log_follow(cloche_log *log, uint64_t offset, cloche_log_fn fn, void *user,
	uint64_t *ret_offset, cloche_err *err)
{
	struct following f = {0};
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	int r = chunk ? begin_following(log, &f, err) : err_nomem(err);

	while (r == 0) {
		r = instance_log_hand_on(log, &offset, chunk, fn, user, err);
		if (r == 0)
			r = wait_for_change(log, &f, err);
	}
	client_free(f.client);
	if (ret_offset)
		*ret_offset = offset;
	return r < 0 ? r : 0;
}
