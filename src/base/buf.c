/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>

void buf_done(struct buf *b)
{
	free(b->mem);
	b->mem = NULL;
	b->head = b->tail = b->cap = 0;
}

void buf_done_wiped(struct buf *b)
{
	if (b->mem)
		explicit_bzero(b->mem, b->cap);
	buf_done(b);
}

int buf_reserve(struct buf *b, size_t n, char **ret)
{
	size_t len = buf_len(b), need, cap;
	char *mem;

	if (n > b->max - len)
		return -E2BIG;
	need = len + n;
	if (b->cap - b->tail < n && need <= b->cap && b->head >= b->cap / 2) {
		memmove(b->mem, b->mem + b->head, len);
		b->tail = len;
		b->head = 0;
	}
	if (b->cap - b->tail < n) {
		cap = b->cap ? b->cap : 256;
		while (cap < need)
			cap = cap > b->max / 2 ? b->max : cap * 2;
		/* Use a fresh block instead of realloc: it does not copy the consumed front, and
		 * leaves no old copy of a secret behind if the block moves. */
		mem = malloc(cap);
		if (!mem)
			return -ENOMEM;
		if (len)
			memcpy(mem, b->mem + b->head, len);
		if (b->mem)
			explicit_bzero(b->mem, b->tail);
		free(b->mem);
		b->mem = mem;
		b->cap = cap;
		b->head = 0;
		b->tail = len;
	}
	*ret = b->mem + b->tail;
	return 0;
}

int buf_add_growing(struct buf *b, const void *p, size_t n)
{
	char *at;
	int r;

	if (n == 0)
		return 0;
	r = buf_reserve(b, n, &at);
	if (r < 0)
		return r;
	memcpy(at, p, n);
	buf_commit(b, n);
	return 0;
}

int buf_add_uint(struct buf *b, uint64_t value)
{
	char text[20], *at = text + sizeof(text);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	return buf_add(b, at, (size_t)(text + sizeof(text) - at));
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	size_t room = MIN(b->cap - b->tail, buf_room(b));
	va_list again;
	char *at;
	int n, r;

	/* The text fits most of the time; then this is all. */
	va_copy(again, ap);
	n = vsnprintf(room ? b->mem + b->tail : NULL, room, fmt, again);
	va_end(again);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n < room) {
		buf_commit(b, (size_t)n);
		return 0;
	}
	/* Reserve one more byte for the terminator, which is not counted. */
	b->max = b->max < SIZE_MAX ? b->max + 1 : b->max;
	r = buf_reserve(b, (size_t)n + 1, &at);
	b->max--;
	if (r < 0)
		return r;
	vsnprintf(at, (size_t)n + 1, fmt, ap);
	buf_commit(b, (size_t)n);
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	b->head += MIN(n, buf_len(b));
	if (b->head == b->tail)
		b->head = b->tail = 0;
}

char *buf_cstr(struct buf *b)
{
	char *at;
	int r;

	b->max = b->max < SIZE_MAX ? b->max + 1 : b->max;
	r = buf_reserve(b, 1, &at);
	b->max--;
	if (r < 0)
		return NULL;
	*at = '\0';
	return buf_data(b);
}
