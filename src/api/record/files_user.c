/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the accounts are those of the sandbox, whose processes may have written
 * them. What is found there says only who a command is inside. */
#include "base/account.h"
#include "base/parse.h"
#include "base/strv.h"
#include <cloche/files.h>

#include <stdlib.h>

enum { ACCOUNTS_MAX = 1 << 20 };

/* Look a name up in an account file of the room. A number needs no account; *ret_group is then the
 * same number. */
static int find(cloche_files *f, const char *file, struct str name, uint32_t *ret_id,
	uint32_t *ret_group, struct cloche_err *err)
{
	struct str fields[ACCOUNT_FIELDS];
	_cleanup_(freep) char *text = NULL;
	void *data = NULL;
	uint64_t id = 0, group = 0;
	size_t n = 0;
	bool number = parse_u64(name, UINT32_MAX - 1, &id) == 0;
	int r = cloche_files_read_data(f, file, ACCOUNTS_MAX, &data, &n, err);

	text = data;
	if (r < 0 && number) {
		err_clear(err);
		r = 0;
	}
	if (r < 0)
		return err_wrap(err, r, "find \"%.*s\"", STR_FMT(name));
	/* A line without its numbers is none: the account must not become root's. */
	if (account_find(str_make(text, n), name, fields) &&
		parse_u64(fields[ACCOUNT_ID], UINT32_MAX - 1, &id) == 0 &&
		(!ret_group || parse_u64(fields[ACCOUNT_GROUP], UINT32_MAX - 1, &group) == 0)) {
		if (ret_group)
			*ret_group = (uint32_t)group;
	} else if (!number) {
		return err_set(err, E_NOT_FOUND, "the sandbox has no \"%.*s\" in its %s",
			STR_FMT(name), file);
	} else if (ret_group) {
		*ret_group = (uint32_t)id;
	}
	*ret_id = (uint32_t)id;
	return 0;
}

int cloche_files_find_user(
	cloche_files *f, const char *text, uint32_t *ret_uid, uint32_t *ret_gid, cloche_err *err)
{
	struct str all = str_from(text), user = str_prefix(all, str_chr(all, ':'));
	struct str group = str_from_index(all, user.n + (user.n < all.n));
	uint32_t uid = 0, gid = 0;
	int r;

	if (user.n == 0 || (user.n < all.n && group.n == 0))
		return err_set(err, E_USAGE,
			"a user is NAME or UID, also with :GROUP or :GID, not \"%s\"", text);
	r = find(f, "/etc/passwd", user, &uid, &gid, err);
	if (r == 0 && group.n)
		r = find(f, "/etc/group", group, &gid, NULL, err);
	if (r < 0)
		return r;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}
