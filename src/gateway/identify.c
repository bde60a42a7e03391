/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/identify.h"
#include "http/limits.h"
#include "http/valid.h"

/* A StartupMessage or SSLRequest: a length and then one of these. */
static bool is_postgres(struct str s)
{
	return s.n >= 8 && s.p[0] == 0 && s.p[1] == 0 &&
	       (memcmp(s.p + 4, "\x04\xd2\x16\x2f", 4) == 0 ||
		       memcmp(s.p + 4, "\x00\x03\x00\x00", 4) == 0);
}

/* "METHOD " after at most one empty line. A long word in capitals is left to the parser, which
 * has an answer for it; any other long word is not HTTP. */
static enum identity request_line(struct str s)
{
	size_t token;

	if (str_starts(s, STR("\r\n")))
		s = str_from_index(s, 2);
	else if (str_eq(s, STR("\r")))
		return IDENTITY_MORE;
	token = http_span_class(s, HTTP_C_TOKEN);
	if (token < s.n)
		return token > 0 && token <= HTTP_METHOD_MAX && s.p[token] == ' '
			       ? IDENTITY_HTTP
			       : IDENTITY_UNKNOWN;
	if (token <= HTTP_METHOD_MAX)
		return IDENTITY_MORE;
	return str_is_all(str_prefix(s, token), STR_UPPER) ? IDENTITY_HTTP : IDENTITY_UNKNOWN;
}

enum identity identify(struct str first)
{
	if (first.n == 0)
		return IDENTITY_MORE;
	switch (first.p[0]) {
	case 0x16: /* a handshake record (RFC 8446 5.1) */
		return IDENTITY_TLS;
	case 4:
		return IDENTITY_SOCKS4;
	case 5:
		return IDENTITY_SOCKS5;
	case 0:
		if (first.n < 8)
			return IDENTITY_MORE;
		return is_postgres(first) ? IDENTITY_POSTGRES : IDENTITY_UNKNOWN;
	default:
		break;
	}
	if (str_starts(first, STR("SSH-")))
		return IDENTITY_SSH;
	return request_line(first);
}

const char *identity_text(enum identity id)
{
	static const char *const texts[] = {
		[IDENTITY_MORE] = "nothing",
		[IDENTITY_TLS] = "TLS",
		[IDENTITY_HTTP] = "plain HTTP",
		[IDENTITY_SOCKS4] = "SOCKS4",
		[IDENTITY_SOCKS5] = "SOCKS5",
		[IDENTITY_SSH] = "SSH",
		[IDENTITY_POSTGRES] = "PostgreSQL",
		[IDENTITY_UNKNOWN] = "neither TLS nor HTTP",
	};

	return texts[id];
}
