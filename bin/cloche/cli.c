/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int output_errno; /* why standard output could not be written; 0: unknown, or no failure */

bool put(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t r = write(fd, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		/* Another process that shares the descriptor has made it non-blocking. */
		if (r < 0 && errno == EAGAIN) {
			struct pollfd room = {.fd = fd, .events = POLLOUT};

			(void)poll(&room, 1, -1);
			continue;
		}
		if (r < 0) {
			if (fd == STDOUT_FILENO)
				output_errno = errno;
			return false;
		}
		at += r;
		n -= (size_t)r;
	}
	return true;
}

int read_whole(int fd, size_t most, char **ret, size_t *ret_n)
{
	size_t size = 0;

	*ret = NULL;
	*ret_n = 0;
	for (;;) {
		ssize_t n;

		if (*ret_n == size && size <= most) {
			char *grown;

			size = size ? size * 2 : 64 << 10;
			size = size <= most ? size : most + 1;
			grown = realloc(*ret, size);
			if (!grown)
				return ENOMEM;
			*ret = grown;
		}
		n = read(fd, *ret + *ret_n, size - *ret_n);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n == 0)
			return 0;
		*ret_n += n > 0 ? (size_t)n : 0;
	}
}

uint64_t now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void debug_step(const struct sandbox_options *o, const char *fmt, ...)
{
	static uint64_t began;
	char text[1024];
	va_list ap;

	if (!o->debug)
		return;
	if (began == 0)
		began = now_usec();
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("debug: %8.3f ms  %s", (double)(now_usec() - began) / 1e3, text);
}

/* Replace what does not belong into text, or into a line of it, by '?', byte for byte, in place. */
static void tame(char *text, size_t n, bool line)
{
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c = 0;

		len = utf8_decode((struct str){text + i, n - i}, &c);
		if (len == 0 || (utf8_is_hidden_in_text(c) && c != '\t' && (c != '\n' || line))) {
			len = len ? len : 1;
			memset(text + i, '?', len);
		}
	}
}

static bool put_tamed(int fd, const char *text, bool line)
{
	size_t n = strlen(text);
	char *copy;
	bool ok;

	if (!isatty(fd))
		return put(fd, text, n);
	copy = strdup(text);
	if (!copy)
		return false;
	tame(copy, n, line);
	ok = put(fd, copy, n);
	free(copy);
	return ok;
}

bool put_shown(int fd, const char *text)
{
	return put_tamed(fd, text, false);
}

void say(const char *fmt, ...)
{
	char line[4096] = "cloche: ";
	size_t n = strlen(line);
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (r < 0)
		return;
	/* Names in messages can come from untrusted sources, and each message is one line. */
	n = strlen(line);
	tame(line, n, true);
	line[n] = '\n';
	(void)put(STDERR_FILENO, line, n + 1);
}

int wrong_usage(cloche_err *err, const char *hint, const char *fmt, ...)
{
	va_list ap;

	memset(err, 0, sizeof(*err));
	err->code = CLOCHE_E_USAGE;
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	snprintf(err->hint, sizeof(err->hint), "%s", hint ? hint : "");
	return -CLOCHE_E_USAGE;
}

void warn(const char *text, void *user)
{
	say("warning: %s", text);
}

bool put_line(const char *text)
{
	return put_tamed(STDOUT_FILENO, text, true) && put(STDOUT_FILENO, "\n", 1);
}

bool put_row(char *row)
{
	for (size_t n = strlen(row); n > 0 && row[n - 1] == ' '; n--)
		row[n - 1] = '\0';
	return put_line(row);
}

bool flush_output(void)
{
	if (fflush(stdout) == 0)
		return true;
	output_errno = errno;
	return false;
}

bool program_is_here(const char *program)
{
	for (const char *at = getenv("PATH"); at && *at;) {
		char path[PATH_MAX];
		int n = (int)strcspn(at, ":");

		snprintf(path, sizeof(path), "%.*s/%s", n, at, program);
		if (access(path, X_OK) == 0)
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

unsigned output_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

const char *shown_id(const char *id)
{
	enum { SHOWN = 16 };
	static char shown[SHOWN + 1];

	if (!output_columns())
		return id;
	snprintf(shown, sizeof(shown), "%s", id);
	return shown;
}

int status_of_output(bool ok, int r)
{
	return ok || output_errno == EPIPE ? r : EXIT_CLOCHE;
}

int finish_output(int r)
{
	(void)flush_output();
	/* A command that lets the reader of a pipe go away has not failed. */
	if (!ferror(stdout) && (!output_errno || (output_errno == EPIPE && r != EXIT_CLOCHE)))
		return r;
	say("cannot write to standard output%s%s", output_errno ? ": " : "",
		output_errno ? strerror(output_errno) : "");
	return r ? r : EXIT_CLOCHE;
}

int complain(const cloche_err *err)
{
	(void)flush_output();
	say("%s", err->message[0] ? err->message : cloche_error_text(err->code));
	if (err->hint[0])
		say("%s", err->hint);
	return cloche_error_exit_status(err->code);
}
