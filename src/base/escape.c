/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"
#include "base/utf8.h"

#include <stdio.h>

static bool is_plain(char byte)
{
	unsigned char c = (unsigned char)byte;

	return c >= 0x21 && c <= 0x7e && c != '%' && c != '[' && c != ']';
}

int escape_log(struct buf *out, struct str s, size_t max)
{
	size_t n = MIN(s.n, max);

	for (size_t i = 0; i < n;) {
		size_t from = i;
		int r;

		while (i < n && is_plain(s.p[i]))
			i++;
		r = buf_add(out, s.p + from, i - from);
		if (r == 0 && i < n)
			r = buf_printf(out, "%%%02X", (unsigned char)s.p[i++]);
		if (r < 0)
			return r;
	}
	return n < s.n ? buf_add(out, "...", 3) : 0;
}

int escape_terminal(struct buf *out, struct str s)
{
	while (s.n > 0) {
		uint32_t c = 0;
		size_t len = utf8_decode(s, &c);
		int r;

		if (len == 0) {
			r = buf_add(out, UTF8_REPLACEMENT, 3);
			len = 1;
		} else if (c == '\t' || c == '\n' || !utf8_is_hidden_in_text(c)) {
			r = buf_add(out, s.p, len);
		} else {
			r = buf_printf(out, c < 0x100 ? "\\x%02X" : "\\u{%x}", (unsigned)c);
		}
		if (r < 0)
			return r;
		s = str_from_index(s, len);
	}
	return 0;
}

static bool is_json_plain(char c)
{
	static const bool plain[256] = {
		[' ' ... '!'] = true, ['#' ... '['] = true, [']' ... '~'] = true};

	return plain[(unsigned char)c];
}

size_t escape_json_plain(struct str s, bool ascii)
{
	size_t n = 0, len = 1;

	while (n < s.n && len > 0) {
		while (n < s.n && is_json_plain(s.p[n]))
			n++;
		len = ascii || n == s.n || !(s.p[n] & 0x80)
			      ? 0
			      : utf8_decode(str_from_index(s, n), NULL);
		n += len;
	}
	return n;
}

size_t escape_json_char(struct str s, char ret[ESCAPE_JSON_MAX], size_t *ret_used)
{
	static const char letters[] = "b\bf\fn\nr\rt\t\"\"\\\\";
	uint32_t c = 0xfffd;

	*ret_used = MAX(utf8_decode(s, &c), (size_t)1);
	for (const char *l = letters; *l; l += 2)
		if (c == (unsigned char)l[1]) {
			/* A text has one of these for each line. */
			ret[0] = '\\';
			ret[1] = *l;
			return 2;
		}
	if (c < 0x10000)
		return (size_t)snprintf(ret, ESCAPE_JSON_MAX, "\\u%04x", c);
	c -= 0x10000;
	return (size_t)snprintf(
		ret, ESCAPE_JSON_MAX, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

int escape_json(struct buf *out, struct str s, bool ascii)
{
	int r = buf_add_char(out, '"');

	while (r == 0 && s.n > 0) {
		size_t n = escape_json_plain(s, ascii);
		char text[ESCAPE_JSON_MAX];

		r = n ? buf_add(out, s.p, n) : buf_add(out, text, escape_json_char(s, text, &n));
		s = str_from_index(s, n);
	}
	return r < 0 ? r : buf_add_char(out, '"');
}
