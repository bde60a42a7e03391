/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The JSON of a request's body, as its client spelled it. Clients write values that jansson cannot
 * represent: halves of surrogate pairs ("\ud83d", an emoji that was cut), numbers of any size. They
 * are read as other values, but stay as they are in what is sent on. */

#include "base/json.h"

/* Read any value. Half of a surrogate pair in a text is read as U+FFFD, a number that jansson
 * cannot hold as 9e99 or -9e99. Return 0; -EEXIST if a member is repeated; -EINVAL if the text is
 * not JSON, or could be read in two ways: not UTF-8, NUL or half of a surrogate pair in the name of
 * a member, nested too deep; -ENOMEM. */
_warn_unused_ int body_json_read(struct str text, json_t **ret);

/* Add text to out, changed so that its value is `after`; all other bytes stay. body_json_read must
 * accept text. Added members and changed lists are written without blanks. Return 0, -ENOMEM, or
 * another negative errno of buf_add. */
_warn_unused_ int body_json_write(struct buf *out, struct str text, const json_t *after);
