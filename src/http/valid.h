/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What may be in a message (RFC 9110 5, RFC 9112 3). Used by the parser, by the writer, and by code
 * that takes typed parts from a peer that it does not trust. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

/* Classes of bytes. */
enum {
	HTTP_C_TOKEN = 1 << 0,  /* tchar */
	HTTP_C_VALUE = 1 << 1,  /* in field values and reasons: tab, space, VCHAR, obs-text */
	HTTP_C_TARGET = 1 << 2, /* in request targets: 0x21-0x7e but '#' */
	HTTP_C_HOST = 1 << 3,   /* in labels of a host */
};
extern const uint8_t http_char_class[256];

static inline bool http_char_is(char c, unsigned class)
{
	return http_char_class[(uint8_t)c] & class;
}

/* Length of the prefix of s that is all of one class. */
size_t http_span_class(struct str s, unsigned class);

/* One or more tchar (RFC 9110 5.6.2). */
bool http_is_token(struct str s);
/* A token of at most HTTP_METHOD_MAX bytes. */
bool http_is_method(struct str s);
/* A token of at most HTTP_NAME_MAX bytes. */
bool http_is_field_name(struct str s);
/* Empty, or tab, space, 0x21-0x7e and 0x80-0xff with no blank at either end; at most
 * HTTP_VALUE_MAX bytes. So never CR, LF, NUL or another control. */
bool http_is_field_value(struct str s);
/* "*", or "/" and then bytes 0x21-0x7e but '#'; at most HTTP_TARGET_MAX. Dots, escapes and
 * backslashes are judged by policy, not here. */
bool http_is_target(struct str s);
/* 100 to 999: those above 599 have no meaning (RFC 9110 15), but some origins send them. */
bool http_is_status(unsigned status);
/* Tab, space, 0x21-0x7e, 0x80-0xff; at most HTTP_REASON_MAX. */
bool http_is_reason(struct str s);
/* A host as in an authority: labels of letters, digits, '-' and '_' with single dots between (one
 * at the end is allowed), or an IPv6 address in brackets. Whether it is canonical, or a disguised
 * IPv4 address, is judged by policy. */
bool http_is_host(struct str s);
/* Split "host", "host:port", "[v6]:port". Port: 1 to 65535 without leading zeros; 0 is returned
 * if none is given. Views into s. Return 0 or -EINVAL; ret_* are untouched on failure. */
_warn_unused_ int http_parse_authority(struct str s, struct str *ret_host, uint16_t *ret_port);
/* A status of three digits, as http_is_status(). Return 0 or -EINVAL. */
_warn_unused_ int http_parse_status(struct str s, unsigned *ret);
/* A Content-Length: decimal digits, at most INT64_MAX. Return 0 or -EINVAL. */
_warn_unused_ int http_parse_length(struct str s, uint64_t *ret);
/* Take the next element off a comma-separated list, trimmed; empty ones are skipped. */
bool http_list_next(struct str *list, struct str *ret);
/* Whether the list has this token (case ignored). */
bool http_list_has(struct str list, struct str token);
