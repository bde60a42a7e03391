/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the service says in words. Pure; the service is hostile. */

#include "base/str.h"
#include <stdbool.h>

enum { ANSWER_MAX = 64 * 1024, ANSWER_TEXT_MAX = 300 };

/* Read {"success": true|false, "error": "..."}. Return whether it is a success; ret gets the error
 * in printable ASCII, "" if there is none. */
bool answer_read(struct str body, char ret[ANSWER_TEXT_MAX + 1]);
