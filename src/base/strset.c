/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strset.h"
#include "base/hash.h"

#include <errno.h>

struct strset_member {
	UT_hash_handle hh;
	char text[];
};

static struct strset_member *strset_find(const struct strset *set, struct str s)
{
	struct strset_member *m;

	HASH_FIND(hh, set->members, s.n ? s.p : "", s.n, m);
	return m;
}

int strset_add(struct strset *set, struct str s)
{
	struct strset_member *m;

	if (strset_find(set, s))
		return 0;
	m = calloc(1, sizeof(*m) + s.n);
	if (!m)
		return -ENOMEM;
	memcpy(m->text, s.n ? s.p : "", s.n);
	HASH_ADD_KEYPTR(hh, set->members, m->text, s.n, m);
	if (m->hh.tbl)
		return 0;
	free(m);
	return -ENOMEM;
}

bool strset_has(const struct strset *set, struct str s)
{
	return strset_find(set, s) != NULL;
}

size_t strset_count(const struct strset *set)
{
	return HASH_COUNT(set->members);
}

void strset_done(struct strset *set)
{
	struct strset_member *m, *next;

	HASH_ITER (hh, set->members, m, next) {
		HASH_DEL(set->members, m);
		free(m);
	}
}
