/* SPDX-License-Identifier: Apache-2.0 */
#include "files/error.h"
#include "base/macro.h"

static void copy(char *ret, size_t size, struct str s)
{
	s = str_prefix(s, size - 1);
	if (s.n)
		memcpy(ret, s.p, s.n);
	ret[s.n] = '\0';
}

int files_fail(struct files_error *e, int errnum, struct str entry, const char *why)
{
	if (e) {
		e->sys_errno = errnum;
		copy(e->entry, sizeof(e->entry), entry);
		copy(e->why, sizeof(e->why), str_from(why));
	}
	return -errnum;
}
