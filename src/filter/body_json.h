/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The JSON of a request's body, as its client spelled it. Clients write what jansson has no value
 * for: halves of surrogate pairs ("\ud83d", an emoji that was cut), numbers of any size. These are
 * read as something else, and stay as they are in what goes on. */

#include "base/json.h"

/* Reads any value. Half of a surrogate pair in a text reads as U+FFFD, a number beyond what jansson
 * holds as 9e99 or -9e99. Returns 0; -EEXIST if a member is repeated; -EINVAL if the text is
 * no JSON, or could be read in two ways: no UTF-8, NUL or half of a surrogate pair in the name of a
 * member, nested too deep; -ENOMEM. */
_warn_unused_ int body_json_read(struct str text, json_t **ret);

/* Adds text to out with those changes that make its value `after`; all other bytes stay. text is
 * one that body_json_read takes. Added members and changed lists stand without blanks. Returns 0,
 * -ENOMEM, or another negative errno of buf_add. */
_warn_unused_ int body_json_write(struct buf *out, struct str text, const json_t *after);
