/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON text from jansson values, as Python's json.dump writes it: members in their order,
 * characters outside ASCII escaped, the shortest digits that read back as the same number.
 * (jansson's own encoder writes 0.1 as 0.10000000000000001.) */

#include "base/buf.h"
#include <errno.h>
#include <jansson.h>
#include <limits.h>

/* Value of indent: one line without blanks, characters outside ASCII unescaped. */
#define JSON_TEXT_COMPACT UINT_MAX

/* Add value to out. With indent 0 everything is on one line (with ", " and ": "), else each member
 * has a line of its own, indented by that many spaces per level. Values may nest as deep as jansson
 * parses. Return 0 or a negative errno of buf_add; out may then hold a part of the value. */
_warn_unused_ int json_text_write(struct buf *out, const json_t *value, unsigned indent);

/* Parse text (flags are jansson's) into a new reference. Return 0, -EINVAL if the text is not JSON
 * that we accept, -ERANGE if a number is too large, both with the reason in *why (which may be
 * NULL), or -ENOMEM, which jansson's own functions do not tell apart. */
_warn_unused_ int json_text_read(struct str text, size_t flags, json_t **ret, json_error_t *why);

#define _cleanup_json_ _cleanup_(json_decrefp)

/* Return a view of a string value's bytes (which may contain a NUL); the null view for other
 * types. */
static inline struct str json_str(const json_t *value)
{
	return json_is_string(value) ? str_make(json_string_value(value), json_string_length(value))
				     : STR_NULL;
}

/* Return the member's string, or the null view if it is missing or not a string. */
static inline struct str json_str_at(const json_t *object, const char *key)
{
	return json_str(json_object_get(object, key));
}

/* Return the member's number, or 0 if it is missing, not an integer or negative. */
static inline uint64_t json_count_at(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* Make a string value from bytes, with invalid UTF-8 replaced by U+FFFD. NULL on lack of memory. */
json_t *json_utf8(struct str s);

/* The same for a terminated string; NULL becomes null. */
json_t *json_text(const char *text);
/* Make an array of such values from strings (base/strv.h). NULL on lack of memory. */
json_t *json_texts(char *const *texts);

/* Set a member to a new reference, which is taken in any case (NULL: out of memory). Return 0 or
 * -ENOMEM. */
_warn_unused_ static inline int json_put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

/* Add to object those members of from that it lacks. Return 0 or -ENOMEM, which jansson's own
 * function does not report. */
_warn_unused_ int json_add_missing(json_t *object, const json_t *from);

/* s begins with a backslash. Return the length of the escape, which is twelve for a surrogate pair.
 * *ret_half is set if the escape is one half of a pair without the other (RFC 8259 section 7). */
size_t json_escape_length(struct str s, bool *ret_half);
