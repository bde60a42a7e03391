/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "terminal_filter.h"

#include <unistd.h>

enum { CHUNK = 4096 };

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
		at += take;
		n -= take;
	}
	return true;
}

bool terminal_filter_close(struct terminal_filter *f, int fd)
{
	unsigned char out[TERMINAL_FILTER_END];

	return put(fd, out, terminal_filter_end(f, out));
}
