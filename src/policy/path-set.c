/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one hash table has a key "host\0path", with the path folded, for each path,
 * and a key "host" for each host that has one. */
#include "policy/path-set.h"

#include "base/hash.h"
#include "policy/host.h"
#include "policy/path.h"
#include <errno.h>

struct path_set_member {
	UT_hash_handle hh;
	size_t n;
	char key[];
};

void path_set_done(struct path_set *set)
{
	struct path_set_member *m, *next;

	HASH_ITER (hh, set->members, m, next) {
		HASH_DEL(set->members, m);
		free(m);
	}
}

/* path: the null view stands for the host alone. */
static int make_key(struct buf *key, struct str host, struct str path)
{
	int r = buf_add_str(key, host);

	if (r == 0 && path.p)
		r = buf_add_char(key, '\0');
	if (r == 0 && path.p)
		r = path_fold(path, key);
	return r < 0 ? -ENOMEM : 0;
}

static int find(const struct path_set *set, struct str host, struct str path)
{
	_cleanup_(buf_donep) struct buf key = BUF_INIT(HOST_MAX + 1 + PATH_MAX_TARGET);
	const struct path_set_member *m;

	if (!set->members)
		return 0;
	if (make_key(&key, host, path) < 0)
		return -ENOMEM;
	HASH_FIND(hh, set->members, buf_data(&key), buf_len(&key), m);
	return m != NULL;
}

static int add(struct path_set *set, struct str host, struct str path)
{
	_cleanup_(buf_donep) struct buf key = BUF_INIT(HOST_MAX + 1 + PATH_MAX_TARGET);
	struct path_set_member *m;
	int r = find(set, host, path);

	if (r != 0)
		return r < 0 ? r : 0;
	if (make_key(&key, host, path) < 0)
		return -ENOMEM;
	m = calloc(1, sizeof(*m) + buf_len(&key));
	if (!m)
		return -ENOMEM;
	m->n = buf_len(&key);
	memcpy(m->key, buf_data(&key), m->n);
	HASH_ADD_KEYPTR(hh, set->members, m->key, m->n, m);
	if (m->hh.tbl)
		return 0;
	free(m);
	return -ENOMEM;
}

int path_set_add(struct path_set *set, struct str host, struct str path)
{
	int r = add(set, host, STR_NULL);

	return r < 0 ? r : add(set, host, path);
}

int path_set_has(const struct path_set *set, struct str host, struct str path)
{
	return find(set, host, path);
}

int path_set_has_host(const struct path_set *set, struct str host)
{
	return find(set, host, STR_NULL);
}
