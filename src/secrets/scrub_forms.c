/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a value is looked for as it is, and in the forms that differ from it: with
 * '+' for spaces (application/x-www-form-urlencoded), as an ASCII JSON string if it is not ASCII
 * itself, and inside base64. In base64 its first byte is the first, second or third of a group, in
 * one of two alphabets. Only the characters that the value alone determines are looked for, and
 * they become the same part of the surrogate's base64. Up to four bits at either end stay as they
 * are, in characters that also hold bits of the neighbouring bytes.
 *
 * Percent-encoding and \/, \", \\ and \u00XX are not forms: the automaton reads them as the bytes
 * that they stand for, inside any form. */
#include "secrets/scrub_internal.h"

#include "base/base64.h"
#include "base/utf8.h"
#include <errno.h>

void scrub_forms_done(struct scrub_forms *f)
{
	for (size_t i = 0; i < f->n; i++) {
		explicit_bzero((void *)(uintptr_t)f->v[i].text.p, f->v[i].text.n);
		free((void *)(uintptr_t)f->v[i].text.p);
		free((void *)(uintptr_t)f->v[i].fake.p);
	}
	free(f->v);
	*f = (struct scrub_forms){0};
}

/* A fake must not contain a character that begins an escape: it would be read as one. */
static void fit(struct str fake, char *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = i < fake.n ? fake.p[i] : 'x';

		ret[i] = c == '%' || c == '\\' ? 'x' : c;
	}
}

/* Copies text, and as much of fake as text is long. */
static int forms_add(struct scrub_forms *f, struct str text, struct str fake)
{
	struct scrub_form *v = array_room(f->v, f->n, &f->cap, sizeof(*v));
	char *from, *to;

	if (!v)
		return -ENOMEM;
	f->v = v;
	from = malloc(text.n);
	to = malloc(text.n);
	if (!from || !to) {
		free(from);
		free(to);
		return -ENOMEM;
	}
	memcpy(from, text.p, text.n);
	fit(fake, to, text.n);
	f->v[f->n++] = (struct scrub_form){str_make(from, text.n), str_make(to, text.n)};
	return 0;
}

static bool swap(char *p, size_t n, char from, char to)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		if (p[i] == from) {
			p[i] = to;
			any = true;
		}
	return any;
}

static int add_plus(struct scrub_forms *f, struct str value, struct str fake)
{
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(SIZE_MAX / 2);

	if (str_chr(value, ' ') == value.n)
		return 0;
	if (buf_add_str(&text, value) < 0)
		return -ENOMEM;
	(void)swap(buf_data(&text), value.n, ' ', '+');
	return forms_add(f, buf_str(&text), fake);
}

static int add_base64(struct scrub_forms *f, struct str value, struct str fake, unsigned at)
{
	size_t n = base64_inner_len(value.n, at);
	_cleanup_(buf_done_wipedp) struct buf mem = BUF_INIT(2 * n);
	char *from, *to;
	bool url;
	int r = buf_reserve(&mem, 2 * n, &from);

	if (r < 0)
		return r;
	buf_commit(&mem, 2 * n);
	to = from + n;
	base64_inner(value, at, from);
	base64_inner(fake, at, to);
	r = forms_add(f, str_make(from, n), str_make(to, n));
	url = swap(from, n, '+', '-');
	url |= swap(from, n, '/', '_');
	if (r < 0 || !url)
		return r;
	(void)swap(to, n, '+', '-');
	(void)swap(to, n, '/', '_');
	return forms_add(f, str_make(from, n), str_make(to, n));
}

/* The next character of UTF-8 text; 0 if it is none. */
static uint32_t next_char(struct str *s)
{
	uint32_t c;
	size_t n = utf8_decode(*s, &c);

	*s = str_from_index(*s, n);
	return n ? c : 0;
}

/* Writes a JSON string in ASCII, as Python's json.dumps() does. slashes: as PHP does. */
static int write_json(struct buf *out, struct str value, bool slashes)
{
	while (value.n > 0) {
		uint32_t c = next_char(&value);
		int r;

		if (c == 0)
			return -EINVAL;
		if (c == '"' || c == '\\' || (c == '/' && slashes))
			r = buf_printf(out, "\\%c", (char)c);
		else if (c < 0x80)
			r = buf_add_char(out, (char)c);
		else if (c < 0x10000)
			r = buf_printf(out, "\\u%04x", c);
		else
			r = buf_printf(
				out, "\\u%04x\\u%04x", 0xd7c0U + (c >> 10), 0xdc00U + (c & 0x3ffU));
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_ascii(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] >= 0x80)
			return false;
	return true;
}

static int add_json(struct scrub_forms *f, struct str value, struct str fake)
{
	bool slashes = str_chr(value, '/') < value.n;

	for (int i = 0; !is_ascii(value) && i < (slashes ? 2 : 1); i++) {
		_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(6 * value.n + 16);
		char *room;
		int r = buf_reserve(&text, 6 * value.n + 16, &room);

		if (r == 0)
			r = write_json(&text, value, i == 1);
		if (r == -EINVAL)
			return 0; /* not UTF-8, so no JSON string holds it */
		if (r == 0)
			r = forms_add(f, buf_str(&text), fake);
		if (r < 0)
			return r;
	}
	return 0;
}

int scrub_forms_add(struct scrub_forms *f, struct str value, struct str surrogate)
{
	_cleanup_(freep) char *fake = malloc(value.n + 1);
	struct str same;
	int r;

	if (!fake)
		return -ENOMEM;
	fit(surrogate, fake, value.n);
	same = str_make(fake, value.n);
	r = forms_add(f, value, same);
	if (r == 0)
		r = add_plus(f, value, same);
	if (r == 0)
		r = add_json(f, value, same);
	for (unsigned at = 0; r == 0 && at < 3; at++)
		r = add_base64(f, value, same, at);
	return r < 0 ? -ENOMEM : 0;
}
