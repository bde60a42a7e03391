/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the encoder and the decoder walk the same table. Its rows have an integer's
 * width in the message and in memory; everything else goes through ipc/wire. Both directions check
 * the bounds of a value with the *_allows functions. */
#include "ipc/message.h"
#include "base/strv.h"

#include <errno.h>
#include <string.h>

static void *field_at(const struct field *f, const void *m)
{
	return (char *)(uintptr_t)m + f->at;
}

static uint64_t int_load(const void *p, size_t size)
{
	uint64_t v = 0;
	uint32_t v32;
	uint16_t v16;

	if (size == 8) {
		memcpy(&v, p, 8);
		return v;
	}
	if (size == 4) {
		memcpy(&v32, p, 4);
		return v32;
	}
	if (size == 2) {
		memcpy(&v16, p, 2);
		return v16;
	}
	return *(const uint8_t *)p;
}

static void int_store(void *p, size_t size, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;
	uint16_t v16 = (uint16_t)v;
	uint8_t v8 = (uint8_t)v;

	if (size == 8)
		memcpy(p, &v, 8);
	else if (size == 4)
		memcpy(p, &v32, 4);
	else if (size == 2)
		memcpy(p, &v16, 2);
	else
		memcpy(p, &v8, 1);
}

static bool int_allows(const struct field *f, uint64_t v)
{
	return v >= f->min && (v <= f->max || (f->max == 0 && !(f->flags & FIELD_BOUNDED))) &&
	       (!(f->flags & FIELD_CODE) || err_is_code((uint32_t)v));
}

static bool str_allows(const struct field *f, struct str s)
{
	return s.n <= f->max && !(f->flags & FIELD_NOT_EMPTY && s.n == 0) &&
	       !(f->flags & FIELD_NO_NUL && str_chr(s, '\0') < s.n);
}

static bool strv_allows(const struct field *f, char *const *v)
{
	size_t n = 0;

	for (; v && v[n]; n++)
		if (strlen(v[n]) > f->max)
			return false;
	return n <= f->max_n;
}

static void int_put(struct wire_out *w, const struct field *f, const char *p)
{
	for (unsigned i = 0; i == 0 || i < f->count; i++, p += f->size) {
		uint64_t v = int_load(p, f->size);

		if (int_allows(f, v))
			wire_put_int(w, v, f->wire);
		else
			w->error = w->error ? w->error : -EINVAL;
	}
}

static void int_take(struct wire_in *r, const struct field *f, char *p)
{
	for (unsigned i = 0; i == 0 || i < f->count; i++, p += f->size) {
		uint64_t v = wire_get_int(r, f->wire);

		if (!int_allows(f, v))
			r->bad = true;
		else
			int_store(p, f->size, v);
	}
}

static void str_put(struct wire_out *w, const struct field *f, struct str s)
{
	if (f->flags & FIELD_CUT)
		s = str_prefix(s, f->max);
	if (str_allows(f, s))
		wire_put_str(w, s);
	else
		w->error = w->error ? w->error : -EINVAL;
}

static struct str str_take(struct wire_in *r, const struct field *f)
{
	struct str s = wire_get_str(r, f->max);

	if (!str_allows(f, s))
		r->bad = true;
	return s;
}

static size_t *parts_n(const struct field *f, const void *m)
{
	return (size_t *)(void *)((char *)(uintptr_t)m + f->n_at);
}

static void parts_put(struct wire_out *w, const struct field *f, const void *m)
{
	const struct message *t = f->part();
	const char *parts = *(char *const *)field_at(f, m);
	size_t n = *parts_n(f, m);

	if (n > f->max_n) {
		w->error = w->error ? w->error : -EINVAL;
		return;
	}
	wire_put_u32(w, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		message_put(w, t, parts + i * t->size);
}

/* Count each part only when it is complete: an incomplete one has nothing to free. */
static void parts_take(struct wire_in *r, const struct field *f, void *m)
{
	const struct message *t = f->part();
	uint32_t n = wire_get_u32(r);
	char *parts;

	if (r->bad || n == 0)
		return;
	parts = n <= f->max_n ? calloc(n, t->size) : NULL;
	if (!parts) {
		r->bad = true;
		return;
	}
	*(char **)field_at(f, m) = parts;
	for (; *parts_n(f, m) < n && !r->bad; *parts_n(f, m) += !r->bad)
		message_take(r, t, parts + *parts_n(f, m) * t->size);
}

static void parts_done(const struct field *f, void *m)
{
	const struct message *t = f->part();
	char **parts = field_at(f, m);
	size_t *n = parts_n(f, m);

	while (*n > 0)
		message_done(t, *parts + --*n * t->size);
	free(*parts);
	*parts = NULL;
}

static void field_put(struct wire_out *w, const struct field *f, const void *m)
{
	const void *p = field_at(f, m);

	switch ((enum field_kind)f->kind) {
	case FIELD_INT:
		int_put(w, f, p);
		break;
	case FIELD_STR:
		str_put(w, f, *(const struct str *)p);
		break;
	case FIELD_Z:
	case FIELD_OPTIONAL:
		str_put(w, f, str_from(*(char *const *)p));
		break;
	case FIELD_STRV:
		if (strv_allows(f, *(char *const *const *)p))
			wire_put_strv(w, *(char *const *const *)p);
		else
			w->error = w->error ? w->error : -EINVAL;
		break;
	case FIELD_TEXT:
		str_put(w, f, str_make(p, strnlen(p, f->size)));
		break;
	case FIELD_BYTES:
		if (w->error == 0)
			w->error = buf_add(w->b, p, f->size);
		break;
	case FIELD_PART:
		message_put(w, f->part(), p);
		break;
	case FIELD_PARTS:
		parts_put(w, f, m);
		break;
	}
}

void message_put(struct wire_out *w, const struct message *t, const void *m)
{
	for (size_t i = 0; i < t->fields_n; i++)
		field_put(w, &t->fields[i], m);
	if (w->error == 0 && t->check && !t->check(m))
		w->error = -EINVAL;
}

static char *z_take(struct wire_in *r, const struct field *f)
{
	char *z = wire_get_z(r, f->max);

	if (z && !z[0] && f->kind == FIELD_OPTIONAL) {
		free(z);
		return NULL;
	}
	return z;
}

static void text_take(struct wire_in *r, const struct field *f, char *p)
{
	struct str s = wire_get_str(r, f->max);

	if (str_chr(s, '\0') < s.n)
		r->bad = true;
	else if (s.n)
		memcpy(p, s.p, s.n); /* the rest is zero */
}

static void bytes_take(struct wire_in *r, const struct field *f, void *p)
{
	if (r->bad || r->rest.n < f->size) {
		r->bad = true;
		return;
	}
	memcpy(p, r->rest.p, f->size);
	r->rest = str_from_index(r->rest, f->size);
}

static void field_take(struct wire_in *r, const struct field *f, void *m)
{
	void *p = field_at(f, m);

	switch ((enum field_kind)f->kind) {
	case FIELD_INT:
		int_take(r, f, p);
		break;
	case FIELD_STR:
		*(struct str *)p = str_take(r, f);
		break;
	case FIELD_Z:
	case FIELD_OPTIONAL:
		*(char **)p = z_take(r, f);
		break;
	case FIELD_STRV:
		*(char ***)p = wire_get_strv(r, f->max_n, f->max);
		break;
	case FIELD_TEXT:
		text_take(r, f, p);
		break;
	case FIELD_BYTES:
		bytes_take(r, f, p);
		break;
	case FIELD_PART:
		message_take(r, f->part(), p);
		break;
	case FIELD_PARTS:
		parts_take(r, f, m);
		break;
	}
}

bool message_take(struct wire_in *r, const struct message *t, void *ret)
{
	memset(ret, 0, t->size);
	for (size_t i = 0; i < t->fields_n && !r->bad; i++)
		field_take(r, &t->fields[i], ret);
	if (!r->bad && t->check && !t->check(ret))
		r->bad = true;
	if (r->bad)
		message_done(t, ret);
	return !r->bad;
}

void message_done(const struct message *t, void *m)
{
	for (size_t i = 0; i < t->fields_n; i++) {
		const struct field *f = &t->fields[i];
		void *p = field_at(f, m);

		if (f->kind == FIELD_Z || f->kind == FIELD_OPTIONAL) {
			free(*(char **)p);
			*(char **)p = NULL;
		} else if (f->kind == FIELD_STRV) {
			*(char ***)p = strv_free(*(char ***)p);
		} else if (f->kind == FIELD_PART) {
			message_done(f->part(), p);
		} else if (f->kind == FIELD_PARTS) {
			parts_done(f, m);
		}
	}
}

int frame_end(struct frame_out *f, const int *fds, unsigned fds_n)
{
	if (f->w.error == 0)
		return chan_end(f->c, f->mark, fds, fds_n);
	if (f->w.b)
		chan_abort(f->c, f->mark);
	return f->w.error;
}

int message_send(struct chan *c, uint16_t type, const struct message *t, const void *m,
	const int *fds, unsigned fds_n)
{
	struct frame_out f = frame_begin(c, type);

	message_put(&f.w, t, m);
	return frame_end(&f, fds, fds_n);
}

bool message_get(struct str payload, const struct message *t, void *ret)
{
	struct wire_in r = wire_in(payload);

	if (!message_take(&r, t, ret))
		return false;
	if (wire_ok(&r))
		return true;
	message_done(t, ret);
	return false;
}

/* The struct is declared in cloche/error.h. */
#define CLOCHE_ERR_FIELDS(F)                                                                       \
	F(I32, code, .flags = FIELD_CODE)                                                          \
	F(I32, sys_errno, .max = 4095)                                                             \
	F(TEXT, message, sizeof(((self *)0)->message))                                             \
	F(TEXT, hint, sizeof(((self *)0)->hint))
MESSAGE_TABLE(cloche_err, CLOCHE_ERR_FIELDS, NULL);

int message_get_error(struct str payload, const char *malformed, struct cloche_err *err)
{
	struct cloche_err e;

	if (!message_get(payload, cloche_err_message(), &e))
		return err_set(err, E_PROTOCOL, "%s", malformed);
	if (err)
		*err = e;
	return -e.code;
}
