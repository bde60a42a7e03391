/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"

void lines_done(struct lines *l)
{
	buf_done(&l->partial);
}

static void skip(struct lines *l)
{
	l->skipping = true;
	l->dropped++;
	buf_done(&l->partial);
}

/* Finish a line whose newline was found. A line that lies whole in the chunk is not copied. */
static int finish_line(struct lines *l, struct str rest, lines_fn fn, void *data)
{
	int r;

	if (l->skipping) {
		l->skipping = false;
		return 0;
	}
	if (rest.n > buf_room(&l->partial)) {
		skip(l);
		l->skipping = false;
		return 0;
	}
	if (buf_len(&l->partial) == 0)
		return fn(rest, data);
	r = buf_add_str(&l->partial, rest);
	if (r < 0)
		return r;
	r = fn(buf_str(&l->partial), data);
	buf_clear(&l->partial);
	return r;
}

int lines_feed(struct lines *l, struct str chunk, lines_fn fn, void *data)
{
	while (chunk.n > 0) {
		size_t at = str_chr(chunk, '\n');
		int r = 0;

		if (at < chunk.n)
			r = finish_line(l, str_prefix(chunk, at), fn, data);
		else if (!l->skipping && chunk.n > buf_room(&l->partial))
			skip(l);
		else if (!l->skipping)
			r = buf_add_str(&l->partial, chunk);
		if (r < 0)
			return r;
		chunk = str_from_index(chunk, at + 1);
	}
	return 0;
}

int lines_end(struct lines *l, lines_fn fn, void *data)
{
	int r = 0;

	if (!l->skipping && buf_len(&l->partial) > 0)
		r = fn(buf_str(&l->partial), data);
	l->skipping = false;
	buf_clear(&l->partial);
	return r;
}
