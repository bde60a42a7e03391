/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/obeyed.h"
#include "base/macro.h"
#include "base/utf8.h"

enum { OBEYED_NAME_MAX = 1024 };

static const struct obeyed rows[] = {
#define OBEYED(place, pattern, below, judge, protect, end, what)                                   \
	{OBEYED_##place, STR(pattern), OBEYED_##below, OBEYED_##judge, OBEYED_##protect,           \
		OBEYED_##end, what},
#include "workspace/obeyed.def"
#undef OBEYED
};

/* On a file system that ignores case, another spelling is the same name. Linux folds as Unicode
 * does (ext4's casefold): these too become ASCII, and what is invisible is left out. */
static struct str obeyed_fold(struct str name, char ret[OBEYED_NAME_MAX])
{
	static const struct {
		uint32_t c;
		const char *as;
	} folds[] = {{0xdf, "ss"}, {0x17f, "s"}, {0x1e9e, "ss"}, {0x212a, "k"}, {0xfb00, "ff"},
		{0xfb01, "fi"}, {0xfb02, "fl"}, {0xfb03, "ffi"}, {0xfb04, "ffl"}, {0xfb05, "st"},
		{0xfb06, "st"}};
	size_t n = 0;

	for (size_t len; name.n > 0 && n + 4 < OBEYED_NAME_MAX; name = str_from_index(name, len)) {
		const char *as = NULL;
		uint32_t c = 0;

		len = MAX(utf8_decode(name, &c), (size_t)1);
		for (size_t i = 0; i < ARRAY_SIZE(folds); i++)
			if (folds[i].c == c)
				as = folds[i].as;
		if (!as && len > 1 && utf8_is_hidden(c))
			continue;
		memcpy(ret + n, as ? as : name.p, as ? strlen(as) : len);
		n += as ? strlen(as) : len;
	}
	return str_make(ret, n);
}

static bool is_ascii(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] & 0x80)
			return false;
	return true;
}

static bool row_fits(const struct obeyed *row, struct str name)
{
	struct str p = row->pattern;

	if (p.n && p.p[p.n - 1] == '*')
		return str_ieq(str_prefix(name, p.n - 1), str_prefix(p, p.n - 1));
	return str_ieq(name, p);
}

const struct obeyed *obeyed_find(enum obeyed_place place, struct str name)
{
	char folded[OBEYED_NAME_MAX];

	if (!is_ascii(name))
		name = obeyed_fold(name, folded);
	/* Rows for OBEYED_ANY begin like this (the test of names is red if one does not), and most
	 * names do not. */
	if (name.n == 0 || (place == OBEYED_ANY && !strchr(".MmOoLlCcAaGgQq", name.p[0])))
		return NULL;
	/* Git installs examples with this ending, and does not run them. */
	if (place == OBEYED_HOOKS && str_ends(name, STR(".sample")))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].place == place && row_fits(&rows[i], name))
			return &rows[i];
	return NULL;
}

void obeyed_see(struct obeyed_signs *s, struct str name)
{
	char folded[OBEYED_NAME_MAX];

	if (!is_ascii(name))
		name = obeyed_fold(name, folded);
	s->head |= str_ieq(name, STR("HEAD"));
	s->objects |= str_ieq(name, STR("objects"));
	s->refs |= str_ieq(name, STR("refs"));
	s->commondir |= str_ieq(name, STR("commondir"));
}

bool obeyed_is_git(const struct obeyed_signs *s)
{
	return (s->refs && (s->objects || s->head)) || (s->head && s->commondir);
}
