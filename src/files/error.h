/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Failures of file operations: an errno, the entry concerned, and our own reason if the text of the
 * errno does not say it. Plain data, as it goes from the room to the client. */

#include "base/str.h"

enum { FILES_ENTRY_MAX = 1024, FILES_WHY_MAX = 160 };

struct files_error {
	int sys_errno;
	char entry[FILES_ENTRY_MAX]; /* "": the operation's own path */
	char why[FILES_WHY_MAX];     /* "": the text of the errno */
};

/* Fill e (may be NULL) with copies of entry (cut if too long) and why (may be NULL). Return
 * -errnum. */
int files_fail(struct files_error *e, int errnum, struct str entry, const char *why);
