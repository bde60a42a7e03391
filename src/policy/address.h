/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decide which resolved addresses may be dialled: only globally reachable unicast, unless a rule
 * names the range. This guards against names that point at the host, its network or a metadata
 * service. */

#include "base/macro.h"
#include "base/str.h"
#include <netinet/in.h>
#include <sys/socket.h>

/* A range; IPv4 is held as IPv4-mapped IPv6, so bits counts from 0 to 128. */
struct cidr {
	uint8_t addr[16];
	uint8_t bits;
};

/* Parse "10.0.0.0/8", "fd00::/8" or a single address. Return 0 or -EINVAL (also when bits beyond
 * the prefix are set). */
_warn_unused_ int cidr_parse(struct str s, struct cidr *ret);
/* The range of one address. Return 0 or -EAFNOSUPPORT. */
_warn_unused_ int cidr_from_sockaddr(const struct sockaddr *sa, struct cidr *ret);
/* Return whether an address, held as in a range, is in that range. */
bool cidr_contains(const struct cidr *range, const uint8_t addr[16]);
/* Write "10.0.0.0/8" into ret. */
#define CIDR_TEXT_MAX 64
void cidr_format(const struct cidr *c, char ret[CIDR_TEXT_MAX]);

struct address_policy {
	const struct cidr *allow; /* ranges that the rule names (borrowed) */
	size_t n_allow;
	bool allow_private; /* `allow_private: true`: private, unique-local, shared, loopback and
			       the host's own; not link-local, metadata or reserved ranges */
	const struct cidr *own; /* the host's own interface addresses (borrowed) */
	size_t n_own;
};

/* Return NULL if sa may be dialled, or the reason why not, such as "loopback address" (static
 * text). Embedded IPv4 (mapped, NAT64) is judged as that IPv4 address. Unspecified, multicast and
 * broadcast addresses are refused whatever the rule says. */
const char *address_refusal(const struct sockaddr *sa, const struct address_policy *p);

/* Return whether a refusal may say how to allow this address. Not if it is that of a metadata
 * service, link-local, or never dialled. */
bool address_may_be_advised(const struct sockaddr *sa);
