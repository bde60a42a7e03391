/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/aside.h"
#include "fs/fs.h"
#include "workspace/told.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_NAMES = 1000 };

int aside_rename(int dir, const char *name, char ret[NAME_MAX + 1])
{
	size_t room = NAME_MAX - sizeof(ASIDE) - 4;
	int keep = (int)MIN(strlen(name), room), r;

	for (int i = 0; i < MAX_NAMES; i++) {
		if (i == 0)
			snprintf(ret, NAME_MAX + 1, "%.*s" ASIDE, keep, name);
		else
			snprintf(ret, NAME_MAX + 1, "%.*s" ASIDE "-%d", keep, name, i);
		/* Nobody else is active here, so nothing can be overwritten. */
		r = fs_rename_new(dir, name, ret);
		if (r != -EEXIST)
			return r;
	}
	return -EEXIST;
}

bool aside_is(struct str name)
{
	size_t n = name.n;

	while (n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
		n--;
	if (n < name.n && n && name.p[n - 1] == '-')
		name = str_prefix(name, n - 1);
	return str_ends(name, STR(ASIDE));
}

int aside_restore(struct buf *out, const char *aside, const char *path)
{
	int r = buf_add_str(out, STR("mv -nT -- "));

	if (r == 0)
		r = told_quote(out, str_from(aside));
	if (r == 0)
		r = buf_add_char(out, ' ');
	if (r == 0)
		r = told_quote(out, str_from(path));
	return r < 0 || !buf_cstr(out) ? -ENOMEM : 0;
}
