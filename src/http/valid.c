/* SPDX-License-Identifier: Apache-2.0 */
#include "http/valid.h"
#include "base/parse.h"
#include "http/limits.h"

#include <arpa/inet.h>
#include <errno.h>

/* Theory of operation: one table says for each byte what it may be part of. Every check here asks
 * if all bytes are of one class, and if the length is allowed. Nothing is repaired or converted. */

#define T HTTP_C_TOKEN
#define V HTTP_C_VALUE
#define G HTTP_C_TARGET
#define H HTTP_C_HOST

const uint8_t http_char_class[256] = {
	['\t'] = V,
	[' '] = V,
	['!'] = T | V | G,
	['"'] = V | G,
	['#'] = T | V,
	['$' ... '\''] = T | V | G,
	['(' ... ')'] = V | G,
	['*' ... '+'] = T | V | G,
	[','] = V | G,
	['-' ... '.'] = T | V | G | H,
	['/'] = V | G,
	['0' ... '9'] = T | V | G | H,
	[':' ... '@'] = V | G,
	['A' ... 'Z'] = T | V | G | H,
	['[' ... ']'] = V | G,
	['^'] = T | V | G,
	['_'] = T | V | G | H,
	['`'] = T | V | G,
	['a' ... 'z'] = T | V | G | H,
	['{'] = V | G,
	['|'] = T | V | G,
	['}'] = V | G,
	['~'] = T | V | G,
	[0x80 ... 0xff] = V,
};

size_t http_span_class(struct str s, unsigned class)
{
	size_t i = 0;

	while (i < s.n && http_char_is(s.p[i], class))
		i++;
	return i;
}

static bool all_of(struct str s, unsigned class)
{
	return http_span_class(s, class) == s.n;
}

bool http_is_token(struct str s)
{
	return s.n > 0 && all_of(s, HTTP_C_TOKEN);
}

bool http_is_method(struct str s)
{
	return s.n <= HTTP_METHOD_MAX && http_is_token(s);
}

bool http_is_field_name(struct str s)
{
	return s.n <= HTTP_NAME_MAX && http_is_token(s);
}

bool http_is_field_value(struct str s)
{
	return s.n <= HTTP_VALUE_MAX && str_trim(s).n == s.n && all_of(s, HTTP_C_VALUE);
}

bool http_is_target(struct str s)
{
	if (str_eq(s, STR("*")))
		return true;
	return s.n > 0 && s.n <= HTTP_TARGET_MAX && s.p[0] == '/' && all_of(s, HTTP_C_TARGET);
}

bool http_is_status(unsigned status)
{
	return status >= 100 && status <= 999;
}

bool http_is_reason(struct str s)
{
	return s.n <= HTTP_REASON_MAX && all_of(s, HTTP_C_VALUE);
}

/* RFC 3986 3.2.2 IP-literal, without zones and without IPvFuture. */
static bool is_v6_literal(struct str s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;
	size_t n = s.n - 2;

	if (s.n < 4 || s.p[s.n - 1] != ']' || n >= sizeof(text))
		return false;
	memcpy(text, s.p + 1, n);
	text[n] = '\0';
	return memchr(text, '\0', n) == NULL && inet_pton(AF_INET6, text, &addr) == 1;
}

bool http_is_host(struct str s)
{
	if (s.n == 0 || s.n > HTTP_HOST_MAX)
		return false;
	if (s.p[0] == '[')
		return is_v6_literal(s);
	if (!all_of(s, HTTP_C_HOST) || s.p[0] == '.')
		return false;
	return str_find(s, STR("..")) == s.n;
}

int http_parse_authority(struct str s, struct str *ret_host, uint16_t *ret_port)
{
	struct str host = s, digits;
	uint64_t port = 0;
	size_t end;

	if (s.n && s.p[0] == '[') {
		end = str_chr(s, ']');
		if (end == s.n)
			return -EINVAL;
		end++;
	} else {
		end = str_chr(s, ':');
	}
	if (end < s.n) {
		host = str_prefix(s, end);
		digits = str_from_index(s, end + 1);
		if (s.p[end] != ':' || digits.n == 0 || digits.n > 5 || digits.p[0] == '0')
			return -EINVAL;
		if (parse_u64(digits, UINT16_MAX, &port) < 0)
			return -EINVAL;
	}
	if (!http_is_host(host))
		return -EINVAL;
	*ret_host = host;
	*ret_port = (uint16_t)port;
	return 0;
}

int http_parse_status(struct str s, unsigned *ret)
{
	uint64_t n;

	if (s.n != 3 || parse_u64(s, 999, &n) < 0 || !http_is_status((unsigned)n))
		return -EINVAL;
	*ret = (unsigned)n;
	return 0;
}

int http_parse_length(struct str s, uint64_t *ret)
{
	return parse_u64(s, INT64_MAX, ret) < 0 ? -EINVAL : 0;
}

bool http_list_next(struct str *list, struct str *ret)
{
	while (list->n) {
		struct str element = str_trim(str_next(list, ','));

		if (element.n) {
			*ret = element;
			return true;
		}
	}
	return false;
}

bool http_list_has(struct str list, struct str token)
{
	struct str element;

	while (http_list_next(&list, &element))
		if (str_ieq(element, token))
			return true;
	return false;
}
