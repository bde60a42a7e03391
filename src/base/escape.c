/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"

#include <stdint.h>

int escape_log(struct buf *out, struct str s, size_t max)
{
	size_t n = MIN(s.n, max);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = c >= 0x21 && c <= 0x7e && c != '%' && c != '[' && c != ']';
		int r = plain ? buf_add_char(out, (char)c) : buf_printf(out, "%%%02X", c);

		if (r < 0)
			return r;
	}
	return n < s.n ? buf_add(out, "...", 3) : 0;
}

/* Length of the valid UTF-8 sequence at s, 0 where there is none (RFC 3629 section 4). */
static size_t utf8_len(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t need;
	uint32_t cp, min;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		need = 2;
		cp = p[0] & 0x1fU;
		min = 0x80;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		need = 3;
		cp = p[0] & 0x0fU;
		min = 0x800;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		need = 4;
		cp = p[0] & 0x07U;
		min = 0x10000;
	} else {
		return 0;
	}
	if (s.n < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3fU);
	}
	if (cp < min || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	return need;
}

int escape_terminal(struct buf *out, struct str s)
{
	while (s.n > 0) {
		unsigned char c = (unsigned char)s.p[0];
		size_t len = utf8_len(s);
		bool c1 = len == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0;
		int r;

		if (len == 0) {
			r = buf_add(out, "\xef\xbf\xbd", 3);
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
