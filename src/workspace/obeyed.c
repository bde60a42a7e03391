/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/obeyed.h"
#include "base/macro.h"

static const struct obeyed rows[] = {
#define OBEYED(place, pattern, below, judge, protect, end, what)                                   \
	{OBEYED_##place, STR(pattern), OBEYED_##below, OBEYED_##judge, OBEYED_##protect,           \
		OBEYED_##end, what},
#include "workspace/obeyed.def"
#undef OBEYED
};

/* On a file system that ignores case, another spelling is the same name. */
static bool row_fits(const struct obeyed *row, struct str name)
{
	struct str p = row->pattern;

	if (p.n && p.p[p.n - 1] == '*')
		return str_ieq(str_prefix(name, p.n - 1), str_prefix(p, p.n - 1));
	return str_ieq(name, p);
}

const struct obeyed *obeyed_find(enum obeyed_place place, struct str name)
{
	/* Rows for OBEYED_ANY begin like this (the test of names is red if one does not), and most
	 * names do not. */
	if (name.n == 0 || (place == OBEYED_ANY && !memchr(".MmOo", name.p[0], 5)))
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
	s->head |= str_ieq(name, STR("HEAD"));
	s->objects |= str_ieq(name, STR("objects"));
	s->refs |= str_ieq(name, STR("refs"));
	s->commondir |= str_ieq(name, STR("commondir"));
}

bool obeyed_is_git(const struct obeyed_signs *s)
{
	return (s->refs && (s->objects || s->head)) || (s->head && s->commondir);
}
