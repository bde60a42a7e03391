/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON text from jansson values, as Python's json.dump writes it: members in their order,
 * characters outside ASCII escaped, the shortest digits that read back as the same number.
 * (jansson's own encoder writes 0.1 as 0.10000000000000001.) */

#include "base/buf.h"
#include <jansson.h>
#include <limits.h>

/* For indent: one line without blanks, characters outside ASCII as they are. */
#define JSON_TEXT_COMPACT UINT_MAX

/* Adds value to out. indent 0 puts everything on one line (", " and ": " between), else each member
 * stands on its own line, indented by that many spaces a level. Values nest at most as deep as
 * jansson parses. Returns 0 or a negative errno of buf_add; out may then hold a part of it. */
_warn_unused_ int json_text_write(struct buf *out, const json_t *value, unsigned indent);

/* Parses text (flags are jansson's) into a new reference. Returns 0; -EINVAL if it is no JSON
 * that we take, -ERANGE if a number is too large, both with the reason in *why (which may be
 * NULL); -ENOMEM, which jansson's own functions do not tell apart. */
_warn_unused_ int json_text_read(struct str text, size_t flags, json_t **ret, json_error_t *why);

#define _cleanup_json_ _cleanup_(json_decrefp)

/* View of a string value's bytes (a NUL inside is kept); the null view for any other type. */
static inline struct str json_str(const json_t *value)
{
	return json_is_string(value) ? str_make(json_string_value(value), json_string_length(value))
				     : STR_NULL;
}

/* The member's string, or the null view if it is missing or not a string. */
static inline struct str json_str_at(const json_t *object, const char *key)
{
	return json_str(json_object_get(object, key));
}

/* The member's number; 0 if it is missing, no integer or negative. */
static inline uint64_t json_count_at(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* A string value of bytes that may be no UTF-8: what is not valid becomes U+FFFD. NULL on lack of
 * memory. */
json_t *json_utf8(struct str s);

/* Gives object the members of from that it lacks. 0 or -ENOMEM, which jansson's own function does
 * not tell. */
_warn_unused_ int json_add_missing(json_t *object, const json_t *from);

/* s begins with a backslash. Returns the length of the escape, twelve for a whole surrogate pair;
 * *ret_half if it is one half of such a pair without the other (RFC 8259 section 7). */
size_t json_escape_length(struct str s, bool *ret_half);
