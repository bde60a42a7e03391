/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/yaml-text.h"

#include "base/utf8.h"
#include "policy/glob.h"
#include <errno.h>

int yaml_add_quoted(struct buf *out, struct str s)
{
	int r = buf_add_char(out, '"');

	while (r == 0 && s.n > 0) {
		uint32_t c = 0;
		size_t n = utf8_decode(s, &c);

		if (n == 0)
			return -EINVAL;
		if (c == '"' || c == '\\')
			r = buf_printf(out, "\\%c", (char)c);
		else if (c < 0x20 || c >= 0x7f)
			r = buf_printf(out, "\\U%08X", c);
		else
			r = buf_add_char(out, (char)c);
		s = str_from_index(s, n);
	}
	return r < 0 ? r : buf_add_char(out, '"');
}

/* Add s as a pattern that matches nothing else. */
static int add_literal(struct buf *pattern, struct str s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s.n; i++) {
		char c = s.p[i];

		if (c == '*' || c == '?' || c == '[')
			r = buf_printf(pattern, "[%c]", c);
		else
			r = buf_add_char(pattern, c);
	}
	return r;
}

int yaml_add_path(struct buf *out, struct str s)
{
	_cleanup_(buf_donep) struct buf pattern = BUF_INIT(3 * s.n + 1);
	int r;

	if (!glob_is_pattern(s))
		return yaml_add_quoted(out, s);
	r = add_literal(&pattern, s);
	return r < 0 ? r : yaml_add_quoted(out, buf_str(&pattern));
}

int yaml_add_path_query(struct buf *out, struct str path, struct str query)
{
	_cleanup_(buf_donep) struct buf pattern = BUF_INIT(3 * (path.n + query.n) + 2);
	int r = add_literal(&pattern, path);

	if (r == 0)
		r = buf_add_char(&pattern, '?');
	if (r == 0)
		r = add_literal(&pattern, query);
	return r < 0 ? r : yaml_add_quoted(out, buf_str(&pattern));
}

int yaml_add_comment(struct buf *out, struct str s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		r = c >= 0x20 && c <= 0x7e ? buf_add_char(out, (char)c)
					   : buf_printf(out, "%%%02X", c);
	}
	return r;
}
