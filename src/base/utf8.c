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

/* The one table of what a person does not see, or would take for something else. `text`: common in
 * text, where it does no harm, but not in names: joiners, variation selectors, other blanks, and
 * what fonts use for icons (private use). */
static const struct hidden {
	uint32_t first, last;
	bool text;
} hidden[] = {{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c},
	{0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200a, true},
	{0x200b, 0x200b}, {0x200c, 0x200d, true}, {0x200e, 0x200f}, {0x2028, 0x202e},
	{0x202f, 0x202f, true}, {0x205f, 0x205f, true}, {0x2060, 0x206f}, {0x3000, 0x3000, true},
	{0x3164, 0x3164}, {0xe000, 0xf8ff, true}, {0xfe00, 0xfe0f, true}, {0xfeff, 0xfeff},
	{0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xfffc, 0xffff, true}, {0x1bca0, 0x1bca3},
	{0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff, true}};

static const struct hidden *hidden_find(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_SIZE(hidden) && hidden[i].first <= c; i++)
		if (c <= hidden[i].last)
			return &hidden[i];
	return NULL;
}

bool utf8_is_hidden(uint32_t c)
{
	return hidden_find(c) != NULL;
}

bool utf8_is_hidden_in_text(uint32_t c)
{
	const struct hidden *h = hidden_find(c);

	return h && !h->text;
}
