/* SPDX-License-Identifier: Apache-2.0 */
#include "files/error.h"
#include "base/macro.h"

int files_fail(struct files_error *e, int errnum, struct str entry, const char *why)
{
	if (e) {
		e->sys_errno = errnum;
		str_copy(e->entry, sizeof(e->entry), entry);
		str_copy(e->why, sizeof(e->why), str_from(why));
	}
	return -errnum;
}
