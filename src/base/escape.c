/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"
#include "base/utf8.h"

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
		unsigned char c = (unsigned char)s.p[0];
		size_t len = utf8_decode(s, NULL);
		bool c1 = len == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0;
		int r;

		if (len == 0) {
			r = buf_add(out, UTF8_REPLACEMENT, 3);
			len = 1;
		} else if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f) {
			r = buf_printf(out, "\\x%02X", c);
		} else if (c1) {
			r = buf_printf(out, "\\x%02X", (unsigned char)s.p[1]);
		} else {
			r = buf_add(out, s.p, len);
		}
		if (r < 0)
			return r;
		s = str_from_index(s, len);
	}
	return 0;
}

int escape_json(struct buf *out, struct str s)
{
	int r = buf_add_char(out, '"');

	while (s.n > 0 && r == 0) {
		unsigned char c = (unsigned char)s.p[0];
		size_t len = utf8_decode(s, NULL);

		if (len == 0) {
			r = buf_add(out, UTF8_REPLACEMENT, 3);
			len = 1;
		} else if (c < 0x20 || c == 0x7f) {
			r = buf_printf(out, "\\u%04x", c);
		} else if (c == '"' || c == '\\') {
			r = buf_printf(out, "\\%c", c);
		} else {
			r = buf_add(out, s.p, len);
		}
		s = str_from_index(s, len);
	}
	return r < 0 ? r : buf_add_char(out, '"');
}
