/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one canonical form of a host, and the strict reading of "host[:port]". A name that another
 * program could read as another name is refused, not repaired. */

#include "base/macro.h"
#include "base/str.h"

#define HOST_MAX 253

enum host_kind {
	HOST_NAME, /* letters, digits, '-' and '_' in labels */
	HOST_IPV4, /* dotted quad */
	HOST_IPV6, /* "[...]" as inet_ntop writes it, brackets included */
};

struct host {
	enum host_kind kind;
	size_t n;
	char text[HOST_MAX + 1]; /* lower case, no trailing dot, terminated */
};

/* Canonicalise s: lower case, one trailing dot dropped. Accept A-labels and LDH plus '_' (labels
 * of 1 to 63, at most 253 in all), four-part dotted quads without leading zeros, and bracketed IPv6
 * literals without a zone. Refuse every other spelling of an address (127.1, 0x7f.1, 2130706433,
 * 0177.0.0.1), IPv4-mapped IPv6 and any other byte. Return 0 or -EINVAL; ret is untouched then. */
_warn_unused_ int host_parse(struct str s, struct host *ret);

/* The same for "host" or "host:port" (RFC 9110 section 7.2): no userinfo, port 1 to 65535 in plain
 * decimal without leading zeros. *ret_port is 0 if no port is written ("host:" is refused). */
_warn_unused_ int host_parse_authority(struct str s, struct host *ret, uint16_t *ret_port);

/* View of the canonical text. */
static inline struct str host_str(const struct host *h)
{
	return str_make(h->text, h->n);
}

/* The same without the brackets of an address. */
static inline struct str host_bare(const struct host *h)
{
	return h->kind == HOST_IPV6 ? str_make(h->text + 1, h->n - 2) : host_str(h);
}

/* Canonicalise a host pattern into ret (lower case, one trailing dot dropped): a host, or labels
 * with `*`, `?`, `[seq]`. Return 0 or -EINVAL. */
_warn_unused_ int host_pattern_parse(struct str s, char ret[HOST_MAX + 1]);

/* Whether a canonical host matches a canonical pattern. A pattern with wildcards matches names
 * only, never an address literal: those have to be written out. `*.x.com` does not match `x.com`.
 */
bool host_pattern_matches(struct str pattern, const struct host *h);
