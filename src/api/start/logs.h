/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the log of a sandbox that a person names. */

#include "record/logs.h"

/* Store the full name of a log. sandbox is that name, or has the sandbox's name or the beginning of
 * its id in place of the id. E_NOT_FOUND if it names none. */
_warn_unused_ int logs_find(
	const char *sandbox, char ret[OPLOG_NAME_MAX + 1], struct cloche_err *err);

/* Fail with E_NOT_FOUND: the sandbox has no log. */
_warn_unused_ int logs_have_none(const char *sandbox, struct cloche_err *err);

/* Open the cassette that is given by an id, a name, or the file of a log or of a cassette. */
_warn_unused_ int logs_find_cassette(const char *name, struct cloche_err *err);
