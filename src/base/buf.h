/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A growable byte buffer with a mandatory maximum, read from the front and written at the end.
 * Functions return 0, -ENOMEM if memory runs out, or -E2BIG if the content would exceed the
 * maximum; on failure the content is unchanged. */

#include "base/macro.h"
#include "base/str.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct buf {
	char *mem;
	size_t head, tail, cap, max;
};

#define BUF_INIT(maximum) ((struct buf){.max = (maximum)})

/* Free the memory. The buffer is then empty and still usable. */
void buf_done(struct buf *b);

static inline size_t buf_len(const struct buf *b)
{
	return b->tail - b->head;
}

static inline char *buf_data(const struct buf *b)
{
	return b->mem ? b->mem + b->head : NULL;
}

/* Return a view of the content, valid until the next write or consume. */
static inline struct str buf_str(const struct buf *b)
{
	return str_make(buf_data(b), buf_len(b));
}

/* Return how many more bytes the maximum allows. */
static inline size_t buf_room(const struct buf *b)
{
	return b->max - buf_len(b);
}

/* Make n writable bytes available at the end and point *ret at them. Commit the written bytes with
 * buf_commit(). */
_warn_unused_ int buf_reserve(struct buf *b, size_t n, char **ret);
static inline void buf_commit(struct buf *b, size_t n)
{
	b->tail += n;
}

/* The slow path of buf_add(), for when the buffer may have to grow. */
_warn_unused_ int buf_add_growing(struct buf *b, const void *p, size_t n);

_warn_unused_ static inline int buf_add(struct buf *b, const void *p, size_t n)
{
	if (n == 0 || n > b->cap - b->tail || n > buf_room(b))
		return buf_add_growing(b, p, n);
	memcpy(b->mem + b->tail, p, n);
	buf_commit(b, n);
	return 0;
}

_warn_unused_ static inline int buf_add_str(struct buf *b, struct str s)
{
	return buf_add(b, s.p, s.n);
}

_warn_unused_ static inline int buf_add_char(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

/* Add value in decimal. */
_warn_unused_ int buf_add_uint(struct buf *b, uint64_t value);
_warn_unused_ int buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);
_warn_unused_ int buf_vprintf(struct buf *b, const char *fmt, va_list ap) _printf_(2, 0);

/* Drop n bytes (at most all) from the front. */
void buf_consume(struct buf *b, size_t n);

/* Drop everything and keep the memory. */
static inline void buf_clear(struct buf *b)
{
	b->head = b->tail = 0;
}

/* Overwrite the memory before freeing it, for content that was secret. */
void buf_done_wiped(struct buf *b);

/* Add a terminating NUL behind the content (not counted) and return the content; NULL on
 * failure. */
char *buf_cstr(struct buf *b);

static inline void buf_done_wipedp(struct buf *b)
{
	buf_done_wiped(b);
}

static inline void buf_donep(struct buf *b)
{
	buf_done(b);
}
