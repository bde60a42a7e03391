/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Failures of file operations: an errno, which thing of many it was about, and a reason of our own
 * if the errno's text would not say it. Plain data, as it goes from the room to the client. */

#include "base/str.h"

enum { FILES_ENTRY_MAX = 1024, FILES_WHY_MAX = 160 };

struct files_error {
	int sys_errno;
	char entry[FILES_ENTRY_MAX]; /* "": what the operation was asked for */
	char why[FILES_WHY_MAX];     /* "": what the errno says */
};

/* Fills e (which may be NULL): entry (cut if too long) and why (may be NULL) are copied. Returns
 * -errnum. */
int files_fail(struct files_error *e, int errnum, struct str entry, const char *why);
