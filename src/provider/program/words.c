/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/program/words.h"

#include <stdarg.h>

/* At the end of a text that is not whole. */
#define CUT " ..."

static int add_word(struct buf *out, struct str word)
{
	int r = word.n ? 0 : buf_add_str(out, STR("\\0000"));

	for (size_t i = 0; i < word.n && r == 0; i++) {
		unsigned char c = (unsigned char)word.p[i];

		r = c > ' ' && c < 0x7f && c != '\\' ? buf_add_char(out, (char)c)
						     : buf_printf(out, "\\0%03o", c);
	}
	return r;
}

int words_add_all(struct buf *out, const char *const *words)
{
	int r = 0;

	for (size_t i = 0; words[i] && r == 0; i++) {
		r = i ? buf_add_char(out, ' ') : 0;
		if (r == 0)
			r = add_word(out, str_from(words[i]));
	}
	return r == 0 ? buf_add_char(out, '\n') : r;
}

int words_add_line(struct buf *out, ...)
{
	const char *word;
	va_list ap;
	int r = 0;

	va_start(ap, out);
	for (bool first = true; r == 0 && (word = va_arg(ap, const char *)); first = false) {
		r = first ? 0 : buf_add_char(out, ' ');
		if (r == 0)
			r = add_word(out, str_from(word));
	}
	va_end(ap);
	return r == 0 ? buf_add_char(out, '\n') : r;
}

/* Cut the text where a word ends, if one does. */
static struct str cut(struct str text)
{
	size_t n = WORDS_TEXT_MAX - strlen(CUT);

	while (n > 0 && text.p[n] != ' ')
		n--;
	return str_prefix(text, n ? n : WORDS_TEXT_MAX - strlen(CUT));
}

/* Store text so that it is safe to show to the user. */
static void take_text(struct str text, char ret[WORDS_TEXT_MAX + 1])
{
	bool whole;

	text = str_trim(text);
	whole = text.n <= WORDS_TEXT_MAX;
	if (!whole)
		text = cut(text);
	for (size_t i = 0; i < text.n; i++)
		ret[i] = (unsigned char)text.p[i] >= ' ' && text.p[i] != 0x7f ? text.p[i] : '?';
	ret[text.n] = '\0';
	if (!whole)
		memcpy(ret + text.n, CUT, sizeof(CUT));
}

static bool take_key(struct str line, struct str key, struct str *ret)
{
	if (!str_starts(line, key) || (line.n > key.n && line.p[key.n] != ' '))
		return false;
	*ret = str_from_index(line, key.n + 1);
	return true;
}

bool words_read_answer(struct str text, struct words_answer *ret)
{
	*ret = (struct words_answer){0};
	while (text.n) {
		struct str line = str_next_line(&text), rest;

		if (take_key(line, STR("hint"), &rest))
			take_text(rest, ret->hint);
		else if (take_key(line, STR("version"), &rest))
			take_text(rest, ret->version);
		else if (take_key(line, STR("place"), &rest))
			take_text(rest, ret->place);
		else if (str_eq(line, STR("root image")))
			ret->root_image = true;
		else if (str_eq(line, STR("gone")))
			ret->gone = true;
		else if (take_key(line, STR("cannot"), &rest)) {
			if (ret->cannot_n < WORDS_CANNOT_MAX)
				take_text(rest, ret->cannot[ret->cannot_n++]);
		} else if (take_key(line, STR("error"), &rest)) {
			take_text(rest, ret->error);
			return text.n == 0;
		} else if (str_eq(line, STR("ok"))) {
			ret->ok = text.n == 0;
			return ret->ok;
		} else if (str_eq(line, STR("far"))) {
			ret->far = text.n == 0;
			return ret->far;
		}
		/* Ignore lines of later versions. */
	}
	return false;
}
