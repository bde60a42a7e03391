/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"
#include "json_out.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Terminal controls, characters that change the direction of text, and invisible characters
 * ("default ignorable" in Unicode): names that differ only in these would look the same. */
static bool is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c},
		{0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f},
		{0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f},
		{0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
		{0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}

/* Return the length of the printable UTF-8 character at p, or 0 if there is none. */
static size_t shown(const unsigned char *p, size_t n)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	json_t *s = len <= n ? json_stringn((const char *)p, len) : NULL; /* accepts only UTF-8 */
	uint32_t c = p[0] & first_bits[len];

	json_decref(s);
	for (size_t i = 1; s && i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return !s || c == '\\' || is_hidden(c) ? 0 : len;
}

void name_print(const char *name, size_t name_n)
{
	const unsigned char *p = (const unsigned char *)name;

	for (size_t i = 0; i < name_n;) {
		size_t n = shown(p + i, name_n - i);

		if (n == 0)
			printf("\\x%02x", p[i]);
		else
			fwrite(p + i, 1, n, stdout);
		i += n ? n : 1;
	}
}

static json_t *hex(const char *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * n + 1);
	json_t *s;

	for (size_t i = 0; text && i < n; i++) {
		text[2 * i] = digits[(unsigned char)p[i] >> 4];
		text[2 * i + 1] = digits[p[i] & 15];
	}
	s = text ? json_stringn(text, 2 * n) : NULL;
	free(text);
	return s;
}

void name_to_json(json_t *object, const char *key, const char *p, size_t n)
{
	json_t *s = json_stringn(p, n);
	char other[64];

	if (!s) {
		snprintf(other, sizeof(other), "%s_hex", key);
		json_object_set_new(object, other, hex(p, n));
		s = json_bytes(p, n);
	}
	json_object_set_new(object, key, s);
}
