/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/asked.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 4096 };

/* Return the byte that "\0" and three octal digits at the front of s stand for, or -1. */
static int asked_escaped(struct str s)
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

char *asked_word(struct str word, struct cloche_err *err)
{
	_cleanup_(freep) char *text = malloc(word.n + 1);
	size_t n = 0;

	if (!text) {
		err_nomem(err);
		return NULL;
	}
	for (size_t i = str_eq(word, STR("\\0000")) ? word.n : 0; i < word.n; n++) {
		int byte = word.p[i] == '\\' ? asked_escaped(str_from_index(word, i))
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

int asked_set(char **at, struct str word, struct cloche_err *err)
{
	char *text = asked_word(word, err);

	if (!text)
		return err ? -err->code : -E_PROTOCOL;
	free(*at);
	*at = text;
	return 0;
}

int asked_take(bool *begun, struct str line, struct cloche_err *err)
{
	struct str key = str_next(&line, ' ');

	if (*begun)
		return str_eq(key, STR("end")) ? 1 : 2;
	*begun = true;
	return str_eq(key, STR("cloche-provider")) && str_eq(line, STR("1"))
		       ? 0
		       : err_set(err, E_PROTOCOL, "this version of the protocol is not known");
}

/* Read at most n bytes, and none behind the end of a line. Return as read(). */
static ssize_t asked_read_some(int fd, char *at, size_t n)
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
static int asked_read_line(int fd, struct buf *line, struct cloche_err *err)
{
	buf_clear(line);
	while (!str_ends(buf_str(line), STR("\n"))) {
		char *at;
		ssize_t n;

		if (buf_reserve(line, MIN((size_t)READ_BYTES, buf_room(line)), &at) < 0 ||
			buf_room(line) == 0)
			return err_set(err, E_LIMIT, "a line of the request is too long");
		n = asked_read_some(fd, at, MIN((size_t)READ_BYTES, buf_room(line)));
		if (n == 0 || (n < 0 && errno != EINTR))
			return err_set(err, E_PROTOCOL, "the request is not complete");
		buf_commit(line, (size_t)MAX(n, (ssize_t)0));
	}
	return 0;
}

int asked_read(int fd, asked_take_fn fn, void *user, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(ASKED_LINE_MAX);
	size_t all = 0;
	int e = 0;

	while (e == 0) {
		e = asked_read_line(fd, &line, err);
		all += buf_len(&line);
		if (e == 0 && all > ASKED_MAX)
			e = err_set(err, E_LIMIT, "the request is too long");
		if (e == 0)
			e = fn(user, str_prefix(buf_str(&line), buf_len(&line) - 1), err);
	}
	return e < 0 ? e : 0;
}

struct str asked_last_line(struct str text)
{
	struct str last = STR_NULL;

	while (text.n) {
		struct str line = str_next_line(&text);

		while (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (str_trim(line).n)
			last = str_trim(line);
	}
	return last;
}

_noreturn_ void asked_become(const char *name, const char *path, const char *const *argv)
{
	if (fflush(stdout) == 0 && fd_write_all(STDOUT_FILENO, "far\n", 4) == 0) {
		execve(path, (char *const *)(uintptr_t)argv, environ);
		fprintf(stderr, "cloche-provider-%s: execute %s: %s\n", name, path,
			err_errno_text(errno));
	}
	_exit(125);
}

/* Say a line, of which no byte begins another one. */
static void asked_say(const char *key, const char *text)
{
	fputs(key, stdout);
	for (; *text; text++)
		putchar((unsigned char)*text < ' ' ? '?' : *text);
	putchar('\n');
}

int asked_main(int argc, char **argv, int (*answer)(const char *verb, struct asked_answer *ret))
{
	static const char *const verbs[] = {"probe", "create", "connect", "reap"};
	struct asked_answer a = {.err = CLOCHE_ERR_INIT};
	const char *slash = strrchr(argv[0], '/');
	bool known = false;

	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(verbs); i++)
		known = known || strcmp(argv[1], verbs[i]) == 0;
	if (!known || fd_sanitize_stdio() < 0) {
		fprintf(stderr,
			"%s is started by cloche, not by hand; see "
			"docs/design/provider-protocol.md\n",
			slash ? slash + 1 : argv[0]);
		return 125;
	}
	if (answer(argv[1], &a) == 0) {
		puts("ok");
		return 0;
	}
	if (a.err.hint[0])
		asked_say("hint ", a.err.hint);
	if (a.gone)
		puts("gone");
	asked_say("error ", a.err.message);
	return 1;
}

int asked_write(struct buf *out, struct cloche_err *err)
{
	while (buf_len(out)) {
		ssize_t n = write(STDOUT_FILENO, buf_data(out), buf_len(out));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return err_sys(err, errno, "write");
		buf_consume(out, (size_t)n);
	}
	return 0;
}
