/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a host is either one of the two address forms in their only canonical
 * spelling, or a name whose last label is not a number. The second half is what the URL Standard
 * calls "ends in a number": resolvers read such names as addresses (127.1, 0x7f.1, 2130706433), so
 * a name like that is never let through as a name. */
#include "policy/host.h"

#include "base/parse.h"
#include "policy/glob.h"
#include <arpa/inet.h>
#include <errno.h>

static bool is_label_byte(char c)
{
	return str_is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/* "12" and "0x1f" (also "0x") are numbers to inet_aton. */
static bool label_is_number(struct str label)
{
	bool hex = label.n >= 2 && label.p[0] == '0' && label.p[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < label.n; i++)
		if (hex ? parse_hex_digit(label.p[i]) < 0 : !str_is_digit(label.p[i]))
			return false;
	return true;
}

/* Four decimal parts without leading zeros. */
static bool is_dotted_quad(struct str s)
{
	for (int part = 0; part < 4; part++) {
		size_t end = str_chr(s, '.');
		struct str digits = str_prefix(s, end);
		uint64_t value;

		if ((end < s.n) != (part < 3) || digits.n > 3)
			return false;
		if (parse_u64(digits, 255, &value) < 0 || (digits.n > 1 && digits.p[0] == '0'))
			return false;
		s = str_from_index(s, end + 1);
	}
	return true;
}

static int check_name(struct str s)
{
	for (;;) {
		size_t end = str_chr(s, '.');
		struct str label = str_prefix(s, end);

		if (label.n == 0 || label.n > 63)
			return -EINVAL;
		for (size_t i = 0; i < label.n; i++)
			if (!is_label_byte(label.p[i]))
				return -EINVAL;
		if (end == s.n)
			return label_is_number(label) ? -EINVAL : 0;
		s = str_from_index(s, end + 1);
	}
}

/* inner is the text between the brackets. A zone is refused, since it would name an interface of
 * the host. */
static int parse_ipv6(struct str inner, struct host *ret)
{
	char text[INET6_ADDRSTRLEN], canonical[INET6_ADDRSTRLEN];
	struct in6_addr addr;
	size_t n;

	if (inner.n == 0 || inner.n >= sizeof(text))
		return -EINVAL;
	for (size_t i = 0; i < inner.n; i++)
		if (parse_hex_digit(inner.p[i]) < 0 && inner.p[i] != ':' && inner.p[i] != '.')
			return -EINVAL;
	str_copy(text, sizeof(text), inner);
	if (inet_pton(AF_INET6, text, &addr) != 1 || IN6_IS_ADDR_V4MAPPED(&addr) ||
		!inet_ntop(AF_INET6, &addr, canonical, sizeof(canonical)))
		return -EINVAL;
	n = strlen(canonical);
	ret->kind = HOST_IPV6;
	ret->text[0] = '[';
	memcpy(ret->text + 1, canonical, n);
	ret->text[n + 1] = ']';
	ret->text[n + 2] = '\0';
	ret->n = n + 2;
	return 0;
}

int host_parse(struct str s, struct host *ret)
{
	struct host host = {.kind = HOST_NAME};

	if (s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
		return parse_ipv6(str_make(s.p + 1, s.n - 2), ret);
	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;
	if (s.n == 0 || s.n > HOST_MAX)
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++)
		host.text[i] = str_lower_char(s.p[i]);
	host.n = s.n;
	if (is_dotted_quad(host_str(&host)))
		host.kind = HOST_IPV4;
	else if (check_name(host_str(&host)) < 0)
		return -EINVAL;
	*ret = host;
	return 0;
}

int host_parse_authority(struct str s, struct host *ret, uint16_t *ret_port)
{
	struct str name = s;
	uint64_t port = 0;
	size_t colon;

	if (s.n > 0 && s.p[0] == '[') {
		size_t close = str_chr(s, ']');

		if (close == s.n)
			return -EINVAL;
		colon = close + 1;
		if (colon < s.n && s.p[colon] != ':')
			return -EINVAL;
	} else {
		colon = str_chr(s, ':');
	}
	if (colon < s.n) {
		struct str digits = str_from_index(s, colon + 1);

		if (digits.n == 0 || digits.n > 5 || digits.p[0] == '0' ||
			parse_u64(digits, 65535, &port) < 0)
			return -EINVAL;
		name = str_prefix(s, colon);
	}
	if (host_parse(name, ret) < 0)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

int host_pattern_parse(struct str s, char ret[HOST_MAX + 1])
{
	char text[HOST_MAX + 1];
	struct host host;

	if (!glob_is_pattern(s)) {
		if (host_parse(s, &host) < 0)
			return -EINVAL;
		memcpy(ret, host.text, host.n + 1);
		return 0;
	}
	if (s.n > 1 && s.p[s.n - 1] == '.')
		s.n--;
	if (s.n > HOST_MAX || s.p[0] == '.' || str_find(s, STR("..")) < s.n)
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		text[i] = str_lower_char(s.p[i]);
		if (!is_label_byte(text[i]) && !memchr(".*?[]!", text[i], 6))
			return -EINVAL;
	}
	text[s.n] = '\0';
	memcpy(ret, text, s.n + 1);
	return 0;
}

bool host_pattern_matches(struct str pattern, const struct host *h)
{
	if (!glob_is_pattern(pattern))
		return str_eq(pattern, host_str(h));
	return h->kind == HOST_NAME && glob_match(pattern, host_str(h));
}
