/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of files and tar streams, without conversion. */
#include "fileclient/session.h"
#include "files/beneath.h"
#include "files/tar_clean.h"
#include "job/job.h"

#include <errno.h>
#include <unistd.h>

struct reader {
	cloche_files_sink sink;
	void *user;
	uint64_t left; /* remaining bytes of the request */
};

struct sinking {
	cloche_files_sink sink;
	void *user;
	const void *data;
	size_t n;
	int ret;
};

static void sink_now(void *arg)
{
	struct sinking *call = arg;

	call->ret = call->sink(call->user, call->data, call->n);
}

static int call_sink(cloche_files_sink sink, void *user, const void *data, size_t n)
{
	struct sinking call = {sink, user, data, n, -1};

	job_call(sink_now, &call);
	return call.ret;
}

static int on_data(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct reader *r = run->user;
	struct str data = frame->payload;

	if (frame->type != FILES_DATA || data.n == 0 || data.n > FILES_CHUNK || data.n > r->left)
		return files_malformed(run->f, err);
	r->left -= data.n;
	files_progressed(run->f, data.n);
	if (call_sink(r->sink, r->user, data.p, data.n) < 0)
		return err_set(err, E_CANCELLED, "%s %s: the data could not be taken", run->verb,
			run->path);
	return 0;
}

int cloche_files_read(cloche_files *f, const char *path, uint64_t offset, uint64_t length,
	cloche_files_sink sink, void *user, cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_READ, .offset = offset, .length = length, .path = str_from(path)};
	struct reader reader = {.sink = sink, .user = user, .left = length};
	struct files_run run = {
		.f = f, .verb = "read", .path = path, .answer = on_data, .user = &reader};

	return files_do(&run, &q, err);
}

struct gathered {
	struct buf b;
	int r;
};

static int gather(void *user, const void *data, size_t length)
{
	struct gathered *g = user;

	g->r = buf_add(&g->b, data, length);
	return g->r;
}

int cloche_files_read_data(cloche_files *f, const char *path, size_t max, void **ret,
	size_t *ret_length, cloche_err *err)
{
	struct gathered g = {.b = BUF_INIT(max)};
	int r = cloche_files_read(f, path, 0, UINT64_MAX, gather, &g, err);

	if (r < 0 && g.r == -E2BIG)
		r = err_set(err, E_LIMIT, "read %s: it is larger than %zu bytes", path, max);
	else if (r < 0 && g.r < 0)
		r = err_nomem(err);
	if (r == 0) {
		struct str s = buf_str(&g.b);
		char *copy = str_dup(s);

		if (copy) {
			*ret = copy;
			*ret_length = s.n;
		} else {
			r = err_nomem(err);
		}
	}
	buf_done(&g.b);
	return r;
}

struct source_fd {
	int fd, error;
};

static long source_read_fd(void *user, void *data, size_t size)
{
	struct source_fd *from = user;
	ssize_t n;

	while ((n = read(from->fd, data, size)) < 0 && errno == EINTR)
		;
	from->error = n < 0 ? errno : 0;
	return n;
}

/* Wait until fd has data, or its end, or the operation was cancelled. */
static int data_wait(struct files_run *run, int fd, struct cloche_err *err)
{
	cloche_files *f = run->f;
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = f->wake_fd, .events = POLLIN}};

	while (!f->cancelled && !p[0].revents) {
		int r = job_wait(p, 2, -1);

		if (r >= 0 && p[1].revents)
			r = files_look_for_cancel(f);
		if (r < 0)
			return files_lost(f, r, err);
	}
	return 0;
}

/* wait_fd: wait for this descriptor before each piece; -1: none. */
static int send_fn(struct files_run *run, cloche_files_source fn, void *user, int wait_fd,
	struct cloche_err *err)
{
	int r;

	do {
		r = wait_fd < 0 ? 0 : data_wait(run, wait_fd, err);
		if (r == 0)
			r = files_send_from(run, fn, user, err);
	} while (r == 0);
	return r < 0 ? r : files_finish(run, err);
}

/* Send the last piece and the end together, and with the request if that is all, so that the worker
 * wakes once. */
static int send_last(struct files_run *run, struct str data, struct cloche_err *err)
{
	int r = data.n > 0 ? files_queue(run, data, err) : 0;

	return r == 0 ? files_send_end(run, err) : r;
}

static int send_data(struct files_run *run, struct str rest, struct cloche_err *err)
{
	int r = 0;

	for (; r == 0 && rest.n > FILES_CHUNK; rest = str_from_index(rest, FILES_CHUNK))
		r = files_send(run, str_prefix(rest, FILES_CHUNK), err);
	if (r == 0)
		r = send_last(run, rest, err);
	return r < 0 ? r : files_finish(run, err);
}

static int send_all(struct files_run *run, const cloche_source *from, struct cloche_err *err)
{
	struct source_fd file = {.fd = from->fd};
	int r;

	if (from->fn)
		return send_fn(run, from->fn, from->user, -1, err);
	if (from->fd < 0)
		return send_data(run, str_make(from->data, from->length), err);
	r = send_fn(run, source_read_fd, &file, file.fd, err);
	return file.error ? err_sys(err, file.error, "read what is to be written to %s", run->path)
			  : r;
}

static int begin_write(struct files_run *run, unsigned flags, uint32_t mode, struct cloche_err *err)
{
	static const struct {
		unsigned of_ours, of_theirs;
	} map[] = {{CLOCHE_FILES_APPEND, FILES_APPEND}, {CLOCHE_FILES_IN_PLACE, FILES_IN_PLACE},
		{CLOCHE_FILES_PARENTS, FILES_PARENTS}};
	struct files_request q = {.op = FILES_OP_WRITE,
		.flags = flags & CLOCHE_FILES_NEW ? 0 : FILES_REPLACE,
		.mode = files_mode(mode),
		.path = str_from(run->path)};

	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (flags & map[i].of_ours)
			q.flags |= map[i].of_theirs;
	return files_begin(run, &q, err);
}

int cloche_files_write(cloche_files *f, const char *path, unsigned flags, uint32_t mode,
	cloche_source from, cloche_err *err)
{
	struct files_run run = {.f = f, .verb = "write", .path = path};
	int r = begin_write(&run, flags, mode, err);

	return r < 0 ? r : send_all(&run, &from, err);
}

int files_batch_begin(struct files_run *run, struct cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_WRITE_SMALL, .mode = FILES_KEEP_MODE, .path = STR("/")};
	struct chan *c = &run->f->c;
	struct frame_out f;
	int r = files_begin(run, &q, err);

	if (r < 0)
		return r;
	f = frame_begin(c, FILES_DATA);
	for (size_t i = 0; i < run->batch->n; i++)
		message_put(&f.w, files_small_message(), &run->batch->files[i]);
	if (frame_end(&f, NULL, 0) < 0 || files_send_empty(c, FILES_END) < 0) {
		files_give_up(run);
		return err_set(err, E_LIMIT, "write %zu files: they are too large", run->batch->n);
	}
	/* The worker begins now, whatever we do meanwhile. What does not fit into the socket, and
	 * whether it is broken, is seen when its answer is waited for. */
	(void)!chan_flush(c);
	return 0;
}

struct cleaning {
	struct tar_clean *clean;
	cloche_files_sink sink;
	void *user;
};

static int take_clean(void *user, const char *p, size_t n, struct files_error *e)
{
	struct cleaning *c = user;

	if (call_sink(c->sink, c->user, p, n) < 0)
		return files_fail(e, ECANCELED, STR_NULL, "the data could not be taken");
	return 0;
}

static int on_archive(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct cleaning *c = run->user;
	struct str data = frame->payload;
	struct files_error e = {0};

	if (frame->type != FILES_DATA || data.n == 0 || data.n > FILES_CHUNK)
		return files_malformed(run->f, err);
	files_progressed(run->f, data.n);
	if (tar_clean_feed(c->clean, data.p, data.n, &e) < 0)
		return files_tell(err, run->verb, run->path, &e);
	return 0;
}

/* Return the name at the beginning of the archive. */
static struct str archive_root(const char *path, bool contents)
{
	struct str rest = str_from(path), name, last = STR(".");

	while (!contents && beneath_next(&rest, &name))
		last = name;
	return str_eq(last, STR("..")) ? STR(".") : last;
}

int cloche_files_tar_get(cloche_files *f, const char *path, bool contents, cloche_files_sink sink,
	void *user, cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_TAR_GET,
		.flags = contents ? FILES_CONTENTS : 0,
		.path = str_from(path)};
	struct cleaning c = {.sink = sink, .user = user};
	_cleanup_(tar_clean_freep) struct tar_clean *clean =
		tar_clean_new(archive_root(path, contents), take_clean, &c);
	struct files_run run = {
		.f = f, .verb = "archive", .path = path, .answer = on_archive, .user = &c};
	struct files_error e = {0};
	int r;

	if (!clean)
		return err_nomem(err);
	c.clean = clean;
	r = files_do(&run, &q, err);
	if (r == 0 && tar_clean_finish(clean, &e) < 0)
		r = files_tell(err, run.verb, path, &e);
	return r;
}

int files_unpack(cloche_files *f, const char *path, unsigned flags, cloche_source from,
	struct cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_TAR_PUT, .flags = FILES_OWNERS | flags, .path = str_from(path)};
	struct files_run run = {.f = f, .verb = "unpack into", .path = path};
	int r = files_begin(&run, &q, err);

	return r < 0 ? r : send_all(&run, &from, err);
}

int cloche_files_tar_put(cloche_files *f, const char *path, cloche_source from, cloche_err *err)
{
	return files_unpack(f, path, 0, from, err);
}
