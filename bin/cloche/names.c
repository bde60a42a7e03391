/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>

/* Length of the character of UTF-8 at p that is no control, 0 where there is none. */
static size_t shown(const unsigned char *p, size_t n)
{
	json_t *s;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] < 0x20 || p[0] == 0x7f || p[0] == '\\' || len > n)
		return 0;
	if (len == 1)
		return 1;
	/* U+0080 to U+009F are controls too; U+202A and on turn the line round. */
	if (p[0] == 0xc2 && p[1] < 0xa0)
		return 0;
	if (p[0] == 0xe2 && ((p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
				    (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)))
		return 0;
	s = json_stringn((const char *)p, len); /* which takes UTF-8 alone */
	json_decref(s);
	return s ? len : 0;
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
