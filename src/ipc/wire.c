/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/wire.h"

#include <endian.h>
#include <errno.h>

/* Return where n bytes may be written, usually without a call; NULL sets w->error. */
static inline char *reserve(struct wire_out *w, size_t n)
{
	struct buf *b = w->b;
	char *at;

	if (w->error == 0 && n <= b->cap - b->tail && n <= buf_room(b))
		return b->mem + b->tail;
	if (w->error == 0)
		w->error = buf_reserve(b, n, &at);
	return w->error == 0 ? at : NULL;
}

void wire_put_int(struct wire_out *w, uint64_t v, size_t size)
{
	struct buf *b = w->b;

	v = htole64(v);
	if (w->error)
		return;
	if (b->cap - b->tail < sizeof(v) || buf_room(b) < size) {
		w->error = buf_add(b, &v, size);
		return;
	}
	memcpy(b->mem + b->tail, &v, sizeof(v)); /* copy a constant size, then commit less */
	buf_commit(b, size);
}

void wire_put_str(struct wire_out *w, struct str s)
{
	uint32_t n = htole32((uint32_t)s.n);
	char *at;

	if (s.n > UINT32_MAX && w->error == 0)
		w->error = -E2BIG;
	at = reserve(w, sizeof(n) + s.n);
	if (!at)
		return;
	memcpy(at, &n, sizeof(n));
	if (s.n)
		memcpy(at + sizeof(n), s.p, s.n);
	buf_commit(w->b, sizeof(n) + s.n);
}

void wire_put_strv(struct wire_out *w, char *const *v)
{
	uint32_t n = 0;

	while (v && v[n])
		n++;
	wire_put_u32(w, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_str(w, str_from(v[i]));
}

uint64_t wire_get_int(struct wire_in *r, size_t size)
{
	uint64_t v = 0;

	if (r->bad || r->rest.n < size) {
		r->bad = true;
		return 0;
	}
	if (r->rest.n >= sizeof(v)) {
		memcpy(&v, r->rest.p, sizeof(v));
		v = le64toh(v) & (UINT64_MAX >> (64 - 8 * size));
	} else {
		memcpy(&v, r->rest.p, size);
		v = le64toh(v);
	}
	r->rest = str_make(r->rest.p + size, r->rest.n - size);
	return v;
}

struct str wire_get_str(struct wire_in *r, size_t max)
{
	uint32_t n = wire_get_u32(r);
	struct str s;

	if (r->bad || n > max || n > r->rest.n) {
		r->bad = true;
		return STR_NULL;
	}
	s = str_make(r->rest.p, n);
	r->rest = str_make(r->rest.p + n, r->rest.n - n);
	return s;
}

char *wire_get_z(struct wire_in *r, size_t max)
{
	struct str s = wire_get_str(r, max);
	char *copy;

	if (r->bad)
		return NULL;
	if (s.n && memchr(s.p, '\0', s.n)) {
		r->bad = true;
		return NULL;
	}
	copy = str_dup(s);
	if (!copy)
		r->bad = true;
	return copy;
}

char **wire_get_strv(struct wire_in *r, size_t max_n, size_t max)
{
	_cleanup_(strv_freep) char **v = NULL;
	uint32_t n = wire_get_u32(r);

	/* Each string takes at least its length field, so a larger count is malformed. */
	if (r->bad || n > max_n || n > r->rest.n / sizeof(uint32_t)) {
		r->bad = true;
		return NULL;
	}
	v = calloc((size_t)n + 1, sizeof(char *));
	if (!v) {
		r->bad = true;
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		v[i] = wire_get_z(r, max);
		if (!v[i])
			return NULL;
	}
	return TAKE_PTR(v);
}
