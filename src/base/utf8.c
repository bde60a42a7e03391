/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "base/macro.h"

size_t utf8_decode(struct str s, uint32_t *ret)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t need;
	uint32_t cp, min;

	if (p[0] < 0x80) {
		need = 1;
		cp = p[0];
		min = 0;
	} else if (p[0] >= 0xc2 && p[0] <= 0xdf) {
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
	if (ret)
		*ret = cp;
	return need;
}

bool utf8_is_valid(struct str s)
{
	while (s.n > 0) {
		size_t len = utf8_decode(s, NULL);

		if (len == 0)
			return false;
		s = str_from_index(s, len);
	}
	return true;
}

size_t utf8_count(struct str s)
{
	size_t count = 0;

	while (s.n > 0) {
		s = str_from_index(s, MAX(utf8_decode(s, NULL), (size_t)1));
		count++;
	}
	return count;
}
