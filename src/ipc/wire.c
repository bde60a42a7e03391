/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/wire.h"

#include <endian.h>
#include <errno.h>

static void put(struct wire_out *w, const void *p, size_t n)
{
	if (w->error == 0)
		w->error = buf_add(w->b, p, n);
}

void wire_put_u8(struct wire_out *w, uint8_t v)
{
	put(w, &v, sizeof(v));
}

void wire_put_u16(struct wire_out *w, uint16_t v)
{
	v = htole16(v);
	put(w, &v, sizeof(v));
}

void wire_put_u32(struct wire_out *w, uint32_t v)
{
	v = htole32(v);
	put(w, &v, sizeof(v));
}

void wire_put_u64(struct wire_out *w, uint64_t v)
{
	v = htole64(v);
	put(w, &v, sizeof(v));
}

void wire_put_str(struct wire_out *w, struct str s)
{
	if (s.n > UINT32_MAX) {
		w->error = w->error ? w->error : -E2BIG;
		return;
	}
	wire_put_u32(w, (uint32_t)s.n);
	put(w, s.p, s.n);
}

void wire_put_z(struct wire_out *w, const char *z)
{
	wire_put_str(w, str_from(z));
}

void wire_put_strv(struct wire_out *w, char *const *v)
{
	uint32_t n = 0;

	while (v && v[n])
		n++;
	wire_put_u32(w, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_z(w, v[i]);
}

static void get(struct wire_in *r, void *p, size_t n)
{
	if (r->bad || r->rest.n < n) {
		r->bad = true;
		memset(p, 0, n);
		return;
	}
	memcpy(p, r->rest.p, n);
	r->rest = str_from_index(r->rest, n);
}

uint8_t wire_get_u8(struct wire_in *r)
{
	uint8_t v;

	get(r, &v, sizeof(v));
	return v;
}

uint16_t wire_get_u16(struct wire_in *r)
{
	uint16_t v;

	get(r, &v, sizeof(v));
	return le16toh(v);
}

uint32_t wire_get_u32(struct wire_in *r)
{
	uint32_t v;

	get(r, &v, sizeof(v));
	return le32toh(v);
}

uint64_t wire_get_u64(struct wire_in *r)
{
	uint64_t v;

	get(r, &v, sizeof(v));
	return le64toh(v);
}

struct str wire_get_str(struct wire_in *r, size_t max)
{
	uint32_t n = wire_get_u32(r);
	struct str s;

	if (r->bad || n > max || n > r->rest.n) {
		r->bad = true;
		return STR_NULL;
	}
	s = str_prefix(r->rest, n);
	r->rest = str_from_index(r->rest, n);
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

	/* Each string takes at least its length field: a count beyond that is a lie. */
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

uint8_t wire_get_enum(struct wire_in *r, uint8_t end)
{
	uint8_t v = wire_get_u8(r);

	if (v >= end) {
		r->bad = true;
		return 0;
	}
	return v;
}

bool wire_get_bool(struct wire_in *r)
{
	return wire_get_enum(r, 2) == 1;
}

void wire_put_err(struct wire_out *w, const struct cloche_err *err)
{
	wire_put_u32(w, (uint32_t)err->code);
	wire_put_u32(w, (uint32_t)err->sys_errno);
	wire_put_z(w, err->message);
	wire_put_z(w, err->hint);
}

static void get_text(struct wire_in *r, char *ret, size_t size)
{
	struct str s = wire_get_str(r, size - 1);

	if (s.n)
		memcpy(ret, s.p, s.n);
	ret[s.n] = '\0';
}

int wire_get_err(struct wire_in *r, struct cloche_err *ret)
{
	struct cloche_err e = CLOCHE_ERR_INIT;
	uint32_t code = wire_get_u32(r), sys_errno = wire_get_u32(r);

	get_text(r, e.message, sizeof(e.message));
	get_text(r, e.hint, sizeof(e.hint));
	if (r->bad || !err_is_code(code) || sys_errno > 4095) {
		r->bad = true;
		return -E_PROTOCOL;
	}
	e.code = (int)code;
	e.sys_errno = (int)sys_errno;
	if (ret)
		*ret = e;
	return -e.code;
}
