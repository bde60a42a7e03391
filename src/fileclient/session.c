/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one socket to a worker in the room. A request is sent, answers come, and
 * DONE or ERROR ends it. To cancel, a caller writes to an event descriptor, which wakes the wait.
 * Then CANCEL is sent, and everything up to the operation's end is discarded, so that the session
 * can be used again. If a worker breaks the rules, dies or falls silent, the session stays
 * unusable. */
#include "fileclient/session.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "job/job.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	DEFAULT_TIMEOUT_MS = 60000,
	GIVE_UP_MS = 5000, /* how long to wait for the end of a cancelled operation */
	PATH_SHOWN = 300,
	PROGRESS_USEC = 100000,
};

int files_session_new(int fd, cloche_files **ret, struct cloche_err *err)
{
	_cleanup_fd_ int own = fd;
	cloche_files *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_nomem(err);
	f->timeout_ms = DEFAULT_TIMEOUT_MS;
	f->wake_fd = fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (f->wake_fd < 0) {
		free(f);
		return err_sys(err, errno, "make an event descriptor");
	}
	r = chan_init(&f->c, TAKE_FD(own), FILES_MAX_PAYLOAD, FILES_MAX_OUT);
	if (r < 0) {
		cloche_files_close(f);
		return err_sys(err, -r, "use a socket");
	}
	chan_refuse_fds(&f->c);
	*ret = f;
	return 0;
}

void cloche_files_close(cloche_files *f)
{
	if (!f)
		return;
	if (f->observer)
		f->observer->free(f->observer);
	chan_done(&f->c);
	fd_close(f->wake_fd);
	free(f);
}

void files_set_observer(cloche_files *f, struct files_observer *observer)
{
	f->observer = observer;
}

static bool has_data(const struct files_request *q)
{
	return q->op == FILES_OP_WRITE || q->op == FILES_OP_TAR_PUT ||
	       q->op == FILES_OP_WRITE_SMALL;
}

static int observe_end(cloche_files *f, int r, struct cloche_err *err)
{
	if (!f->observer)
		return r;
	if (r < 0) {
		(void)f->observer->end(f->observer, false, NULL);
		return r;
	}
	return f->observer->end(f->observer, true, err);
}

static int observe_begin(cloche_files *f, const struct files_request *q, struct cloche_err *err)
{
	struct files_observer *observer = f->observer;
	int r;

	if (!observer)
		return 0;
	r = observer->begin(observer, q, err);
	/* The data of a batch goes out with its request. */
	if (r == 0 && (!has_data(q) || q->op == FILES_OP_WRITE_SMALL))
		r = observer->ready(observer, err);
	return r < 0 ? observe_end(f, r, err) : 0;
}

void cloche_files_cancel(cloche_files *f)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(f->wake_fd, &one, sizeof(one));

	(void)n; /* a full counter wakes as well */
	errno = saved;
}

void cloche_files_set_timeout(cloche_files *f, uint64_t milliseconds)
{
	f->timeout_ms = milliseconds;
}

void cloche_files_set_lenient(cloche_files *f, bool lenient)
{
	f->lenient = lenient;
}

void cloche_files_on_progress(cloche_files *f, cloche_files_progress_fn fn, void *user)
{
	f->progress = fn;
	f->progress_user = user;
}

JOB_TELL1(call_progress, cloche_files_progress_fn, uint64_t)

void files_progressed(cloche_files *f, uint64_t bytes)
{
	uint64_t now;

	f->moved_bytes += bytes;
	if (!f->progress)
		return;
	now = clock_mono_usec();
	if (now - f->told_usec < PROGRESS_USEC)
		return;
	f->told_usec = now;
	call_progress(f->progress, f->moved_bytes, f->progress_user);
}

/* --- errors --- */

static int code_of(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return E_NOT_FOUND;
	case EEXIST:
		return E_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS:
		return E_PERMISSION;
	case ENOSPC:
	case EDQUOT:
		return E_NO_SPACE;
	case ENOMEM:
		return E_NO_MEMORY;
	case EFBIG:
	case EMFILE:
	case ENFILE:
		return E_LIMIT;
	case EBUSY:
		return E_BUSY;
	case ECANCELED:
		return E_CANCELLED;
	case EBADMSG:
		return E_CORRUPT;
	case EOPNOTSUPP:
	case ENOSYS:
		return E_UNSUPPORTED;
	default:
		return E_SYSTEM;
	}
}

/* Show the end of a long path, which is more useful than its beginning. */
static const char *shown(const char *path)
{
	size_t n = strlen(path);

	return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

int files_tell(
	struct cloche_err *err, const char *verb, const char *path, const struct files_error *e)
{
	const char *reason = e->why[0] ? e->why : err_errno_text(e->sys_errno);
	int r = err_set(err, code_of(e->sys_errno), "%s %s%s%s%s: %s", verb,
		shown(path) == path ? "" : "...", shown(path), e->entry[0] ? ": " : "",
		shown(e->entry), reason);

	if (err)
		err->sys_errno = e->sys_errno;
	return r;
}

static int set_broken(cloche_files *f, const struct cloche_err *why, struct cloche_err *err)
{
	if (!f->broken) {
		f->broken = true;
		f->why = *why;
		/* The operation under way does not go on, wherever it was. */
		(void)observe_end(f, -why->code, NULL);
	}
	if (err)
		*err = f->why;
	return -f->why.code;
}

int files_malformed(cloche_files *f, struct cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;

	err_set(&why, E_PROTOCOL, "the file worker in the sandbox sent something malformed");
	return set_broken(f, &why, err);
}

int files_lost(cloche_files *f, int r, struct cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (r == -ETIMEDOUT)
		err_set(&why, E_BROKEN, "the file worker in the sandbox does not answer");
	else if (r == -EPROTO)
		return files_malformed(f, err);
	else if (r == -EPIPE)
		err_set(&why, E_BROKEN, "the file worker in the sandbox was ended");
	else if (r == -ECANCELED)
		err_set(&why, E_CANCELLED, "cancelled; the session cannot be used any more");
	else
		err_sys(&why, -r, "talk to the file worker in the sandbox");
	return set_broken(f, &why, err);
}

/* --- waiting --- */

/* Send CANCEL. Whatever comes after it, the operation ends soon, or the session. */
static int cancel(cloche_files *f)
{
	f->cancelled = true;
	f->give_up_usec = clock_mono_usec() + GIVE_UP_MS * USEC_PER_MSEC;
	return files_send_empty(&f->c, FILES_CANCEL);
}

int files_look_for_cancel(cloche_files *f)
{
	uint64_t count;

	if (read(f->wake_fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	/* A second request means: do not wait any longer. */
	if (f->cancelled)
		return -ETIMEDOUT;
	return cancel(f);
}

/* Wait until the socket is readable, or writable if data is queued. Return 0 or -errno. */
static int wait_socket(cloche_files *f)
{
	struct pollfd p[2] = {
		{.fd = f->c.fd, .events = (short)(chan_pending(&f->c) ? POLLIN | POLLOUT : POLLIN)},
		{.fd = f->wake_fd, .events = POLLIN}};
	int limit = f->watching || f->timeout_ms == 0 ? -1 : (int)MIN(f->timeout_ms, 1ULL << 30);
	int n;

	if (f->cancelled) {
		uint64_t now = clock_mono_usec();
		int left = now < f->give_up_usec ? (int)((f->give_up_usec - now) / 1000) + 1 : 0;

		limit = limit < 0 || limit > left ? left : limit;
	}
	n = job_wait(p, 2, limit);
	if (n < 0)
		return n;
	if (n == 0)
		return -ETIMEDOUT;
	return p[1].revents ? files_look_for_cancel(f) : 0;
}

static int on_ready(cloche_files *f, struct str payload, struct cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct files_ready m;

	if (f->ready || !files_get_ready(payload, &m))
		return files_malformed(f, err);
	f->ready = true;
	if (m.version == FILES_VERSION)
		return 0;
	err_set(&why, E_UNSUPPORTED, "the sandbox was made by another version of cloche");
	return set_broken(f, &why, err);
}

/* Receive the next relevant frame, which has no descriptors. Return 1, 0 if until_sent and
 * everything was sent, or a negative code. */
static int receive(cloche_files *f, struct chan_frame *ret, bool until_sent, struct cloche_err *err)
{
	/* Check here too, as a stream of data may never make us wait. */
	int looked = files_look_for_cancel(f);

	if (looked == 0)
		looked = job_yield();
	if (looked < 0)
		return files_lost(f, looked, err);
	for (;;) {
		int sent, r;

		if (f->cancelled && clock_mono_usec() >= f->give_up_usec)
			return files_lost(f, -ETIMEDOUT, err);
		sent = chan_flush(&f->c);
		r = chan_recv(&f->c, ret);

		if (r == 1) {
			bool fds = ret->fds_n || f->c.in_fds_n;

			chan_frame_done(ret);
			if (fds)
				return files_malformed(f, err);
			if (ret->type == FILES_READY)
				r = on_ready(f, ret->payload, err);
			else if (!f->ready)
				return files_malformed(f, err);
			else if (ret->type != FILES_ALIVE)
				return 1;
			if (r < 0)
				return r;
			continue;
		}
		if (r == 0 && sent < 0)
			r = sent;
		if (r == 0 && until_sent && chan_pending(&f->c) == 0)
			return 0;
		if (r == 0)
			r = wait_socket(f);
		if (r < 0)
			return files_lost(f, r, err);
	}
}

/* --- operations --- */

int files_begin(struct files_run *run, const struct files_request *q, struct cloche_err *err)
{
	cloche_files *f = run->f;
	int r;

	if (f->broken)
		return set_broken(f, &f->why, err);
	if (q->path.n == 0)
		return err_set(err, E_USAGE, "%s: the path is empty", run->verb);
	if (q->path.n > FILES_MAX_PATH || q->other.n > FILES_MAX_PATH) {
		const struct files_error e = {.sys_errno = ENAMETOOLONG};

		return files_tell(err, run->verb, run->path, &e);
	}
	r = observe_begin(f, q, err);
	if (r < 0)
		return r;
	f->cancelled = f->watching = false;
	f->moved_bytes = 0;
	f->told_usec = clock_mono_usec();
	r = files_send_request(&f->c, q);
	return r < 0 ? observe_end(f, files_lost(f, r, err), err) : 0;
}

/* Find the file of a batch that an error is about. Return NULL if there is none. */
static const struct files_small *batch_failed(struct files_batch *b, struct files_error *e)
{
	uint64_t number;

	if (parse_u64(str_from(e->entry), b->n - 1, &number) < 0)
		return NULL;
	b->written = (size_t)number;
	e->entry[0] = '\0';
	return &b->files[number];
}

/* An error without a number concerns all of them. */
static int take_error(struct files_run *run, struct files_error *e, struct cloche_err *err)
{
	const struct files_small *file;

	if (!run->batch || !e->entry[0])
		return files_tell(err, run->verb, run->path, e);
	file = batch_failed(run->batch, e);
	return file ? files_tell(err, run->verb, file->path.p, e) : files_malformed(run->f, err);
}

/* Return 1 if the frame is DONE or ERROR, with its result in *ret; 0 for any other frame. */
static int take_end(
	struct files_run *run, const struct chan_frame *frame, int *ret, struct cloche_err *err)
{
	struct files_error e;

	switch (frame->type) {
	case FILES_DONE:
		*ret = files_get_moved(frame->payload, &run->moved) ? 0
								    : files_malformed(run->f, err);
		return 1;
	case FILES_ERROR:
		*ret = files_get_error(frame->payload, &e) ? take_error(run, &e, err)
							   : files_malformed(run->f, err);
		return 1;
	default:
		return 0;
	}
}

void files_give_up(struct files_run *run)
{
	cloche_files *f = run->f;
	struct chan_frame frame;
	int ret;

	(void)observe_end(f, -E_CANCELLED, NULL);
	if (f->broken)
		return;
	if (!f->cancelled && cancel(f) < 0)
		files_lost(f, -ENOBUFS, NULL);
	while (!f->broken && receive(f, &frame, false, NULL) == 1)
		if (take_end(run, &frame, &ret, NULL))
			return;
}

/* Record what was written of a batch, of which r is the result. */
static int observe_batch(struct files_run *run, int r, struct cloche_err *err)
{
	struct files_observer *observer = run->f->observer;
	struct files_batch *b = run->batch;
	int recorded;

	if (!b)
		return r;
	b->written = r == 0 ? b->n : b->written;
	if (!observer || b->written == 0)
		return r;
	recorded = observer->wrote(observer, b->files, b->written, r == 0 ? err : NULL);
	return r == 0 ? recorded : r;
}

int files_finish(struct files_run *run, struct cloche_err *err)
{
	for (;;) {
		struct chan_frame frame;
		int r = receive(run->f, &frame, false, err), ret;

		if (r < 0)
			return observe_end(run->f, r, err);
		if (take_end(run, &frame, &ret, err))
			return observe_end(run->f, observe_batch(run, ret, err), err);
		if (run->f->cancelled)
			continue;
		r = run->answer ? run->answer(run, &frame, err) : files_malformed(run->f, err);
		if (r == 0)
			continue;
		files_give_up(run);
		return r < 0 ? r : 0;
	}
}

int files_do(struct files_run *run, const struct files_request *q, struct cloche_err *err)
{
	int r = files_begin(run, q, err);

	return r < 0 ? r : files_finish(run, err);
}

/* --- data of ours --- */

static int observe_data(struct files_run *run, struct str data, struct cloche_err *err)
{
	struct files_observer *observer = run->f->observer;

	return observer ? observer->data(observer, data, err) : 0;
}

/* Wait until everything queued was sent. Return 0, 1 if the operation is over, or a negative
 * code. */
static int drain(struct files_run *run, struct cloche_err *err)
{
	cloche_files *f = run->f;
	struct chan_frame frame;
	int r = receive(f, &frame, true, err);

	if (r <= 0)
		return r < 0 ? r : f->cancelled;
	if (frame.type != FILES_ERROR)
		return files_malformed(f, err);
	/* The worker waits for the end of our data. The frame stays in the buffer, so that
	 * files_finish() receives the error again. */
	f->c.taken = 0;
	if (!f->cancelled && files_send_empty(&f->c, FILES_END) < 0)
		return files_lost(f, -ENOBUFS, err);
	return 1;
}

int files_queue(struct files_run *run, struct str data, struct cloche_err *err)
{
	int r = observe_data(run, data, err);

	if (r < 0) {
		files_give_up(run);
		return r;
	}
	r = chan_send(&run->f->c, FILES_DATA, data, NULL, 0);
	if (r < 0)
		return files_lost(run->f, r, err);
	files_progressed(run->f, data.n);
	return 0;
}

int files_send(struct files_run *run, struct str data, struct cloche_err *err)
{
	int r;

	if (run->f->cancelled)
		return 1;
	r = files_queue(run, data, err);
	return r < 0 ? r : drain(run, err);
}

struct sourcing {
	cloche_files_source source;
	void *user, *data;
	size_t size;
	long ret;
};

static void source_now(void *arg)
{
	struct sourcing *call = arg;

	call->ret = call->source(call->user, call->data, call->size);
}

static long call_source(cloche_files_source source, void *user, void *data, size_t size)
{
	struct sourcing call = {source, user, data, size, -1};

	job_call(source_now, &call);
	return call.ret;
}

int files_send_from(
	struct files_run *run, cloche_files_source source, void *user, struct cloche_err *err)
{
	cloche_files *f = run->f;
	size_t mark;
	struct buf *b;
	char *at;
	long n;
	int r;

	if (f->cancelled)
		return 1;
	b = chan_begin(&f->c, FILES_DATA, &mark);
	if (!b || buf_reserve(b, FILES_CHUNK, &at) < 0)
		return files_lost(f, -ENOBUFS, err);
	n = call_source(source, user, at, FILES_CHUNK);
	if (n <= 0 || n > FILES_CHUNK) {
		chan_abort(&f->c, mark);
		if (n == 0) {
			r = files_send_end(run, err);
			return r < 0 ? r : 2;
		}
		files_give_up(run);
		return err_set(
			err, E_CANCELLED, "%s %s: the data could not be had", run->verb, run->path);
	}
	r = observe_data(run, str_make(at, (size_t)n), err);
	if (r < 0) {
		chan_abort(&f->c, mark);
		files_give_up(run);
		return r;
	}
	buf_commit(b, (size_t)n);
	if (chan_end(&f->c, mark, NULL, 0) < 0)
		return files_lost(f, -ENOBUFS, err);
	files_progressed(f, (uint64_t)n);
	return drain(run, err);
}

int files_send_end(struct files_run *run, struct cloche_err *err)
{
	cloche_files *f = run->f;
	int r;

	if (f->cancelled)
		return 0;
	r = f->observer ? f->observer->ready(f->observer, err) : 0;
	if (r < 0) {
		files_give_up(run);
		return r;
	}
	r = files_send_empty(&f->c, FILES_END);
	return r < 0 ? files_lost(f, r, err) : 0;
}
