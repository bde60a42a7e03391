/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the supervisor has cloche-sync copy each mount, and that program writes
 * lines of JSON into our pipe, which it alone has: what it did to single files, with a sentence for
 * the person, and at its end how much there was. The answer of the supervisor says whether all went
 * well, and comes when the pipe is closed. */
#include "api/instance/instance.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "job/job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SYNC_LINE_MAX = 128 * 1024 };

struct sync_reader {
	struct client *client;
	struct loop_io io;
	int fd; /* owned; -1 at its end */
	struct buf line;
	cloche_synced done;
	char *why; /* what cloche-sync said when it failed */
	cloche_warning_fn fn;
	void *user;
};

static bool sync_is(const json_t *o, const char *key, const char *value)
{
	return str_eq(json_str_at(o, key), str_from(value));
}

static void sync_count(cloche_synced *done, const json_t *o)
{
	uint64_t n = json_count_at(o, "entries"), bytes = json_count_at(o, "bytes"),
		 removed = json_count_at(o, "removed");

	if (sync_is(o, "direction", "push")) {
		done->sent += n;
		done->sent_bytes += bytes;
		done->removed_there += removed;
		return;
	}
	done->came += n;
	done->came_bytes += bytes;
	done->removed_here += removed;
	done->kept_twice += json_count_at(o, "kept-both");
}

static void sync_take_line(struct sync_reader *s, struct str line)
{
	_cleanup_json_ json_t *o = NULL;
	const char *text;

	if (json_text_read(line, 0, &o, NULL) < 0)
		return;
	text = json_string_value(json_object_get(o, "text"));
	if (sync_is(o, "event", "done"))
		sync_count(&s->done, o);
	else if (sync_is(o, "event", "failed")) {
		free(s->why);
		s->why = text ? strdup(text) : NULL;
	} else if (text && s->fn)
		job_tell_text(s->fn, text, s->user);
}

static void sync_take_lines(struct sync_reader *s)
{
	struct str all = buf_str(&s->line);
	size_t at = 0, n;

	while ((n = str_chr(str_from_index(all, at), '\n')) < all.n - at) {
		sync_take_line(s, str_prefix(str_from_index(all, at), n));
		at += n + 1;
	}
	buf_consume(&s->line, at);
}

static void sync_close(struct sync_reader *s)
{
	loop_io_remove(&s->io);
	s->fd = fd_close(s->fd);
}

/* Read what is there. */
static void sync_read(struct sync_reader *s)
{
	char chunk[16 * 1024];
	ssize_t n = 1;

	while (s->fd >= 0 && n > 0) {
		n = read(s->fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EAGAIN)
			return;
		/* A line that never ends is none of that program's. */
		if (n <= 0 || buf_add(&s->line, chunk, (size_t)n) < 0)
			sync_close(s);
		else
			sync_take_lines(s);
	}
}

static void sync_on_lines(struct loop_io *io, uint32_t events)
{
	sync_read(container_of(io, struct sync_reader, io));
}

/* Ask for it, with the pipe whose other end is s->fd. Takes lines. */
static int sync_ask(struct sync_reader *s, int lines_fd, struct cloche_err *err)
{
	_cleanup_fd_ int lines = lines_fd;
	int r = loop_io_add(client_loop(s->client), &s->io, s->fd, EPOLLIN, sync_on_lines);

	if (r < 0)
		return err_sys(err, -r, "watch a pipe");
	r = client_sync(s->client, lines, err);
	sync_read(s);
	if (r == -E_BROKEN && s->why)
		err_set(err, E_BROKEN, "files could not be copied: %.400s", s->why);
	return r;
}

static int sync_do(struct client *client, cloche_synced *ret, cloche_warning_fn fn, void *user,
	struct cloche_err *err)
{
	struct sync_reader s = {.client = client,
		.fd = -1,
		.line = BUF_INIT(SYNC_LINE_MAX),
		.fn = fn,
		.user = user};
	int pair[2], r = fd_pipe(pair);

	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	s.fd = pair[0];
	r = fd_set_nonblock(s.fd, true);
	if (r < 0) {
		err_sys(err, -r, "make a pipe");
		fd_close(pair[1]);
	} else
		r = sync_ask(&s, pair[1], err);
	sync_close(&s);
	*ret = s.done;
	buf_done(&s.line);
	free(s.why);
	return r;
}

int cloche_instance_sync(const cloche_instance *instance, cloche_warning_fn fn, void *user,
	cloche_synced *ret, cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	cloche_synced all = {0};
	int r;

	if (ret && ret->size == 0)
		return err_set(err, E_USAGE, "the size of cloche_synced is not set");
	r = instance_attach(instance, &client, err);
	if (r == 0)
		r = sync_do(client, &all, fn, user, err);
	if (r < 0)
		return err_wrap(err, r, "sync %s", instance->id);
	if (ret) {
		all.size = ret->size;
		memcpy(ret, &all, MIN(ret->size, sizeof(all)));
	}
	return 0;
}
