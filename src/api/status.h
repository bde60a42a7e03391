/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a manager needs of the status of everything. */

#include "base/err.h"
#include "base/macro.h"
#include <cloche/status.h>
#include <jansson.h>

/* Puts a member (taken) into the document. NULL: lack of memory, as it is without one. */
_warn_unused_ int status_add(
	cloche_status *status, const char *name, json_t *member, struct cloche_err *err);
/* In UTC as RFC 3339 has it; null if it is 0. */
json_t *status_time(uint64_t us);
