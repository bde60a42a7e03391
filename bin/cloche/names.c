/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"
#include "base/utf8.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>

/* Return the length of the printable UTF-8 character at p, or 0 if there is none. */
static size_t shown(const char *p, size_t n)
{
	uint32_t c;
	size_t len = utf8_decode((struct str){p, n}, &c);

	return len == 0 || c == '\\' || utf8_is_hidden(c) ? 0 : len;
}

void name_print(const char *name, size_t name_n)
{
	for (size_t i = 0; i < name_n;) {
		size_t n = shown(name + i, name_n - i);

		if (n == 0)
			printf("\\x%02x", (unsigned char)name[i]);
		else
			fwrite(name + i, 1, n, stdout);
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
