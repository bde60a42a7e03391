/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a manager needs from the status of everything. */

#include "base/err.h"
#include "base/macro.h"
#include <cloche/status.h>
#include <jansson.h>

/* Add a member (taken) to the document. NULL means out of memory, and fails as such. */
_warn_unused_ int status_add(
	cloche_status *status, const char *name, json_t *member, struct cloche_err *err);
/* Return whether cloche's supervisor is there, without which no provider works. */
bool status_has_supervisor(struct cloche_err *err);
/* Return a time in UTC in the format of RFC 3339, or JSON null if it is 0. */
json_t *status_time(uint64_t us);
