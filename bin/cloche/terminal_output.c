/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "terminal_filter.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

enum { CHUNK = 4096, ANSWER_USEC = 1000000, PATIENCE_MS = 100 };

void terminal_filter_open(struct terminal_filter *f, int fd, bool has_tty)
{
	enum terminal_filter_kind kind = has_tty ? TERMINAL_PROGRAM : TERMINAL_TEXT;

	terminal_filter_init(f, isatty(fd) ? kind : TERMINAL_UNTOUCHED);
}

bool terminal_filter_write(struct terminal_filter *f, int fd, const void *data, size_t n)
{
	unsigned char out[TERMINAL_FILTER_OUT(CHUNK)];
	const unsigned char *at = data;

	if (f->kind == TERMINAL_UNTOUCHED)
		return put(fd, data, n);
	while (n > 0) {
		size_t take = n < CHUNK ? n : CHUNK;

		if (!put(fd, out, terminal_filter_feed(f, at, take, out)))
			return false;
		if (f->asked)
			f->asked_at = now_usec();
		f->asked = false;
		at += take;
		n -= take;
	}
	return true;
}

static void drop_answers(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	/* If the terminal reads whole lines, an answer is not readable. Then this only waits. */
	(void)poll(&p, 1, PATIENCE_MS);
	(void)tcflush(fd, TCIFLUSH);
}

bool terminal_filter_close(struct terminal_filter *f, int fd)
{
	unsigned char out[TERMINAL_FILTER_END];
	uint64_t asked_at = f->asked_at;
	bool ok = put(fd, out, terminal_filter_end(f, out));

	if (asked_at && now_usec() - asked_at < ANSWER_USEC)
		drop_answers(fd);
	return ok;
}
