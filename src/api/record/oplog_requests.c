/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a sandbox, from the cassette beside its log. */
#include "api/record/oplog.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Load the cassette once. It has no requests if nothing was recorded. */
static int load(cloche_oplog *log, struct cloche_err *err)
{
	int r = 0;

	if (!log->is_loaded && log->cassette_fd >= 0)
		r = cassette_load(&log->cassette, log->cassette_fd, err);
	if (r < 0)
		return err_wrap(err, r, "the requests beside the log");
	log->is_loaded = true;
	return 0;
}

/* --- as an entry --- */

static void write_headers(struct jsonout *o, const char *key, struct cassette_line *l)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(CASSETTE_LINE_MAX);

	if (o->error == 0)
		o->error = json_text_write(&text, l->headers, JSON_TEXT_COMPACT);
	jsonout_raw(o, key, buf_str(&text));
}

static int write_entry(const struct cassette *c, const struct cassette_exchange *e,
	struct cassette_line *request, const char *refused, struct buf *out, struct cloche_err *err)
{
	_cleanup_(cassette_line_donep) struct cassette_line response = CASSETTE_LINE_INIT;
	struct jsonout o = {.b = out};
	int r = 0;

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "op", "net.request");
	jsonout_open(&o, "args", '{');
	jsonout_number(&o, "number", e->number);
	jsonout_str(&o, "method", request->method);
	jsonout_str(&o, "url", request->url);
	write_headers(&o, "headers", request);
	jsonout_number(&o, "bytes", e->sent.bytes);
	jsonout_bool(&o, "whole", e->sent.whole);
	if (refused)
		jsonout_text(&o, "refused", refused);
	if (e->response_at != CASSETTE_NONE) {
		r = cassette_read_at(c, e->response_at, &response, err);
		if (r < 0)
			return r;
		jsonout_open(&o, "response", '{');
		jsonout_number(&o, "status", e->status);
		write_headers(&o, "headers", &response);
		jsonout_number(&o, "bytes", e->received.bytes);
		jsonout_bool(&o, "whole", e->received.whole);
		jsonout_close(&o, '}');
	}
	if (e->upgraded)
		jsonout_bool(&o, "upgraded", true);
	if (e->ended_usec)
		jsonout_number(&o, "ended", e->ended_usec);
	jsonout_close(&o, '}');
	jsonout_number(&o, "t", e->usec);
	jsonout_close(&o, '}');
	return o.error < 0 || !buf_cstr(out) ? err_nomem(err) : 0;
}

/* --- reading --- */

/* Set method and URL as C strings. Both are ASCII without NUL (line.c). */
static int set_texts(const struct cassette_line *l, struct buf *out, cloche_request *ret)
{
	size_t url = l->method.n + 1;
	int r = buf_add_str(out, l->method);

	if (r == 0)
		r = buf_add_char(out, '\0');
	if (r == 0)
		r = buf_add_str(out, l->url);
	if (r < 0 || !buf_cstr(out))
		return -1;
	ret->method = buf_data(out);
	ret->url = buf_data(out) + url;
	return 0;
}

struct passing {
	struct cassette_line line, refused;
	struct buf texts, json;
	char *why;
};

static int oplog_requests_pass_on(const struct cassette *c, const struct cassette_exchange *e,
	struct passing *p, cloche_request *ret, struct cloche_err *err)
{
	int r = cassette_read_at(c, e->request_at, &p->line, err);

	buf_clear(&p->texts);
	buf_clear(&p->json);
	free(p->why);
	p->why = NULL;
	if (r == 0 && e->refused)
		r = cassette_read_at(c, e->refused_at, &p->refused, err);
	if (r < 0)
		return r;
	*ret = (cloche_request){.number = e->number,
		.time_us = e->usec,
		.ended_us = e->ended_usec,
		.status = e->status,
		.upgraded = e->upgraded,
		.request_bytes = e->sent.bytes,
		.response_bytes = e->received.bytes,
		.request_is_whole = e->sent.whole,
		.response_is_whole = e->received.whole};
	if (e->refused) {
		p->why = str_dup(p->refused.reason);
		if (!p->why)
			return err_nomem(err);
		ret->refused = p->why;
	}
	if (set_texts(&p->line, &p->texts, ret) < 0)
		return err_nomem(err);
	r = write_entry(c, e, &p->line, p->why, &p->json, err);
	ret->json = buf_data(&p->json);
	return r;
}

JOB_ASK1(call_request_fn, cloche_request_fn, bool, false, const cloche_request *)

int cloche_oplog_requests(
	cloche_oplog *log, uint64_t after, cloche_request_fn fn, void *user, cloche_err *err)
{
	struct passing p = {.line = CASSETTE_LINE_INIT,
		.refused = CASSETTE_LINE_INIT,
		.texts = BUF_INIT(CASSETTE_LINE_MAX),
		.json = BUF_INIT((size_t)4 * CASSETTE_LINE_MAX)};
	int r = load(log, err);

	for (size_t i = cassette_first(&log->cassette, after); r == 0 && i < log->cassette.n; i++) {
		cloche_request one;

		r = oplog_requests_pass_on(&log->cassette, &log->cassette.v[i], &p, &one, err);
		if (r == 0 && !call_request_fn(fn, &one, user))
			break;
	}
	cassette_line_done(&p.line);
	cassette_line_done(&p.refused);
	buf_done(&p.texts);
	buf_done(&p.json);
	free(p.why);
	return r;
}

JOB_ASK2(call_body_fn, cloche_body_fn, bool, false, const void *, size_t)

int cloche_oplog_read_body(cloche_oplog *log, uint64_t number, enum cloche_body which,
	cloche_body_fn fn, void *user, cloche_err *err)
{
	_cleanup_(cassette_reading_donep) struct cassette_reading reading = CASSETTE_READING_INIT;
	const struct cassette_exchange *e;
	int r = load(log, err);

	if (r < 0)
		return r;
	e = cassette_find(&log->cassette, number);
	if (!e)
		return err_set(err, E_NOT_FOUND, "there is no request %llu on record",
			(unsigned long long)number);
	cassette_reading_begin(&reading, &log->cassette, e,
		which == CLOCHE_BODY_REQUEST ? CASSETTE_SENT : CASSETTE_DATA);
	do {
		struct str piece = STR_NULL;

		r = cassette_reading_next(&reading, &piece, err);
		if (r == 1 && !call_body_fn(fn, piece.p, piece.n, user))
			return 0;
	} while (r > 0);
	return r;
}

/* --- the file as a whole --- */

int oplog_export_cassette(const cloche_oplog *log, int logs, struct cloche_err *err)
{
	_cleanup_fd_ int out = -1;
	char file[OPLOG_NAME_MAX + sizeof(CASSETTE_SUFFIX)], chunk[65536];
	off_t at = 0;
	int r = 0;

	if (log->cassette_fd < 0)
		return 0;
	snprintf(file, sizeof(file), "%s" CASSETTE_SUFFIX, log->id[0] ? log->id : "log");
	out = openat(logs, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(err, errno, "create %s", file);
	while (r == 0) {
		ssize_t n = pread(log->cassette_fd, chunk, sizeof(chunk), at);

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "read %s", file);
		if (n == 0)
			return 0;
		if (n > 0)
			r = fd_write_all(out, chunk, (size_t)n);
		at += MAX(n, (ssize_t)0);
	}
	return err_sys(err, -r, "write %s", file);
}
