/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/told.h"
#include "base/jsonout.h"
#include "base/macro.h"
#include "base/utf8.h"

static bool told_is_plain(struct str path)
{
	while (path.n) {
		uint32_t c;
		size_t n = utf8_decode(path, &c);

		if (n == 0 || utf8_is_hidden(c))
			return false;
		path = str_from_index(path, n);
	}
	return true;
}

/* Adds '...'; a quote in the path is put outside of the quotes. */
static int told_quote_plain(struct buf *out, struct str path)
{
	int r = buf_add_char(out, '\'');

	for (size_t i = 0; r == 0 && i < path.n; i++)
		r = path.p[i] == '\'' ? buf_add_str(out, STR("'\\''"))
				      : buf_add_char(out, path.p[i]);
	return r < 0 ? r : buf_add_char(out, '\'');
}

int told_quote(struct buf *out, struct str path)
{
	int r;

	if (told_is_plain(path))
		return told_quote_plain(out, path);
	r = buf_add_str(out, STR("$'"));
	while (r == 0 && path.n) {
		uint32_t c;
		size_t n = utf8_decode(path, &c);

		if (n == 0 || utf8_is_hidden(c)) {
			n = 1;
			/* Always three octal digits, so the next character cannot be taken for
			 * one. */
			r = buf_printf(out, "\\%03o", (unsigned)(unsigned char)path.p[0]);
		} else if (c == '\'' || c == '\\') {
			r = buf_printf(out, "\\%c", (char)c);
		} else {
			r = buf_add_str(out, str_prefix(path, n));
		}
		path = str_from_index(path, n);
	}
	return r < 0 ? r : buf_add_char(out, '\'');
}

int told_quote_some(struct buf *out, char *const *paths, size_t n)
{
	enum { NAMED = 3 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < MIN(n, (size_t)NAMED); i++) {
		if (i)
			r = buf_add_str(out, STR(", "));
		if (r == 0)
			r = told_quote(out, str_from(paths[i]));
	}
	return r < 0 || n <= NAMED ? r : buf_printf(out, " and %zu more", n - NAMED);
}

/* Adds a whole line or, if there is no memory, nothing. */
static int told_line(struct look_told *t, const char *path, const char *what, const char *aside,
	const char *restore, bool notice)
{
	_cleanup_(buf_donep) struct buf quoted = BUF_INIT(64 * 1024);
	_cleanup_(buf_donep) struct buf line = BUF_INIT(1024 * 1024);
	struct jsonout o = {.b = &line, .error = told_quote(&quoted, str_from(path))};
	int r;

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "path", path);
	jsonout_str(&o, "quoted", buf_str(&quoted));
	jsonout_text(&o, "what", what);
	jsonout_text(&o, "set_aside", aside);
	jsonout_text(&o, "restore", restore);
	if (notice)
		jsonout_bool(&o, "notice", true);
	jsonout_close(&o, '}');
	r = o.error < 0 ? o.error : buf_add_char(&line, '\n');
	if (r == 0)
		r = buf_add_str(&t->text, buf_str(&line));
	t->told += r == 0;
	return r;
}

int told_add(struct look_told *t, const char *path, const char *what, const char *aside,
	const char *restore)
{
	if (t->told >= LOOK_MAX_TOLD) {
		t->more++;
		return 0;
	}
	return told_line(t, path, what, aside, restore, false);
}

int told_always(struct look_told *t, const char *path, const char *what)
{
	return told_line(t, path, what, NULL, NULL, false);
}

int told_notice(struct look_told *t, const char *path, const char *what)
{
	return told_line(t, path, what, NULL, NULL, true);
}
