/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool put(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t r = write(fd, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		/* Whoever we share it with has made it non-blocking. */
		if (r < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};

			(void)poll(&p, 1, -1);
			continue;
		}
		if (r < 0)
			return false;
		at += r;
		n -= (size_t)r;
	}
	return true;
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
	/* Names in messages may come from anywhere. */
	for (char *at = line; *at; at++)
		if (((unsigned char)*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f)
			*at = '?';
	n = strlen(line);
	line[n] = '\n';
	(void)put(STDERR_FILENO, line, n + 1);
}

int complain(const cloche_err *err)
{
	say("%s", err->message[0] ? err->message : cloche_error_text(err->code));
	if (err->hint[0])
		say("%s", err->hint);
	return cloche_error_exit_status(err->code);
}
