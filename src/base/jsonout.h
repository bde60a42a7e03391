/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Write JSON (RFC 8259) member by member, without blanks, for programs that are linked without a
 * JSON library. The first failure stays in error, and nothing is written after it.
 *
 *   struct jsonout o = {.b = &text};
 *   jsonout_open(&o, NULL, '{');
 *   jsonout_text(&o, "state", "running");
 *   jsonout_close(&o, '}'); */

#include "base/buf.h"

struct jsonout {
	struct buf *b; /* borrowed */
	bool behind;   /* the next value needs a comma before it */
	int error;     /* 0 or -errno */
};

/* key: a literal that needs no escapes; NULL in an array and for the outermost value. bracket: '{'
 * or '[' to open, '}' or ']' to close. */
void jsonout_open(struct jsonout *o, const char *key, char bracket);
void jsonout_close(struct jsonout *o, char bracket);
/* A NULL value is written as null. Invalid UTF-8 becomes U+FFFD. */
void jsonout_text(struct jsonout *o, const char *key, const char *value);
void jsonout_str(struct jsonout *o, const char *key, struct str value);
void jsonout_number(struct jsonout *o, const char *key, uint64_t value);
void jsonout_bool(struct jsonout *o, const char *key, bool value);
/* Add text that is already JSON: a value, or, if key is NULL, also members. */
void jsonout_raw(struct jsonout *o, const char *key, struct str json);
/* Add a member whose key is not a literal. */
void jsonout_member(struct jsonout *o, struct str key, struct str value);
