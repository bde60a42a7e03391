/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/program/request.h"
#include "base/strv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 4096 };

void request_done(struct request *r)
{
	free(r->place);
	free(r->script);
	free(r->id);
	free(r->image);
	strv_free(r->labels);
	*r = (struct request){0};
}

/* Return the byte that "\0" and three octal digits at the front of s stand for, or -1. */
static int request_escaped(struct str s)
{
	int byte = 0;

	if (s.n < 5 || s.p[1] != '0')
		return -1;
	for (size_t i = 2; i < 5; i++) {
		if (s.p[i] < '0' || s.p[i] > '7')
			return -1;
		byte = byte * 8 + (s.p[i] - '0');
	}
	return byte > 0 && byte < 256 ? byte : -1;
}

/* Return what a quoted word stands for: heap, or NULL with err set. */
static char *request_decode(struct str word, struct cloche_err *err)
{
	_cleanup_(freep) char *text = malloc(word.n + 1);
	size_t n = 0;

	if (!text) {
		err_nomem(err);
		return NULL;
	}
	for (size_t i = str_eq(word, STR("\\0000")) ? word.n : 0; i < word.n; n++) {
		int byte = word.p[i] == '\\' ? request_escaped(str_from_index(word, i))
					     : (unsigned char)word.p[i];

		if (byte <= 0) {
			err_set(err, E_PROTOCOL, "a word of the request is badly quoted");
			return NULL;
		}
		text[n] = (char)byte;
		i += word.p[i] == '\\' ? 5 : 1;
	}
	text[n] = '\0';
	return TAKE_PTR(text);
}

static int request_set(char **at, struct str word, struct cloche_err *err)
{
	char *text = request_decode(word, err);

	if (!text)
		return err ? -err->code : -E_PROTOCOL;
	free(*at);
	*at = text;
	return 0;
}

/* Take "KEY VALUE". */
static int request_add_label(struct request *r, struct str line, struct cloche_err *err)
{
	_cleanup_(freep) char *key = request_decode(str_next(&line, ' '), err);
	_cleanup_(freep) char *value = key ? request_decode(line, err) : NULL;
	char *label = NULL;

	if (!value)
		return err ? -err->code : -E_PROTOCOL;
	if (asprintf(&label, "%s=%s", key, value) < 0)
		label = NULL;
	return strv_take(&r->labels, label) < 0 ? err_nomem(err) : 0;
}

int request_take_line(struct request *r, struct str line, struct cloche_err *err)
{
	struct str key = str_next(&line, ' ');

	if (!r->begun) {
		r->begun = true;
		return str_eq(key, STR("cloche-provider")) && str_eq(line, STR("1"))
			       ? 0
			       : err_set(err, E_PROTOCOL,
					 "this version of the protocol is not known");
	}
	if (str_eq(key, STR("place")))
		return request_set(&r->place, line, err);
	if (str_eq(key, STR("far")))
		return request_set(&r->script, line, err);
	if (str_eq(key, STR("id")))
		return request_set(&r->id, line, err);
	if (str_eq(key, STR("label")))
		return request_add_label(r, line, err);
	if (str_eq(key, STR("root")) && str_eq(str_next(&line, ' '), STR("image")))
		return request_set(&r->image, line, err);
	return str_eq(key, STR("end"));
}

/* Read at most n bytes, and none behind the end of a line. Return as read(). */
static ssize_t request_read_some(int fd, char *at, size_t n)
{
	ssize_t there = recv(fd, at, n, MSG_PEEK);
	const char *end;

	if (there < 0 && errno == ENOTSOCK)
		return read(fd, at, 1);
	if (there <= 0)
		return there;
	end = memchr(at, '\n', (size_t)there);
	return recv(fd, at, end ? (size_t)(end - at) + 1 : (size_t)there, 0);
}

/* Read a line with its end into line. */
static int request_read_line(int fd, struct buf *line, struct cloche_err *err)
{
	buf_clear(line);
	while (!str_ends(buf_str(line), STR("\n"))) {
		char *at;
		ssize_t n;

		if (buf_reserve(line, MIN((size_t)READ_BYTES, buf_room(line)), &at) < 0 ||
			buf_room(line) == 0)
			return err_set(err, E_LIMIT, "a line of the request is too long");
		n = request_read_some(fd, at, MIN((size_t)READ_BYTES, buf_room(line)));
		if (n == 0 || (n < 0 && errno != EINTR))
			return err_set(err, E_PROTOCOL, "the request is not complete");
		buf_commit(line, (size_t)MAX(n, (ssize_t)0));
	}
	return 0;
}

int request_read(struct request *r, int fd, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(REQUEST_LINE_MAX);
	size_t all = 0;
	int e = 0;

	while (e == 0) {
		e = request_read_line(fd, &line, err);
		all += buf_len(&line);
		if (e == 0 && all > REQUEST_MAX)
			e = err_set(err, E_LIMIT, "the request is too long");
		if (e == 0)
			e = request_take_line(
				r, str_prefix(buf_str(&line), buf_len(&line) - 1), err);
	}
	return e < 0 ? e : 0;
}
