/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Accounts in the text of passwd(5) and group(5), whoever wrote it. */

#include "base/str.h"

enum { ACCOUNT_NAME = 0, ACCOUNT_ID = 2, ACCOUNT_GROUP = 3, ACCOUNT_HOME = 5, ACCOUNT_FIELDS = 6 };

enum { ACCOUNT_MAX_NAME = 64 };

/* Return whether s can be an account's name: letters, digits and "._-", not first '-' or '.'. */
bool account_is_name(struct str s);
/* Find the account with that name or, if name is a number, with that id, and store its fields,
 * which lie in text. The id is a number. Return false if there is none. */
bool account_find(struct str text, struct str name, struct str ret[ACCOUNT_FIELDS]);
