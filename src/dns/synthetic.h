/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names and the addresses made up for them: 198.18.0.0/15 (RFC 2544) and fd00:c10c::/64. One map a
 * sandbox; a name keeps its address for as long as it is in the map, and leaves it only when max
 * other names were used since. */

#include "base/macro.h"
#include "base/str.h"
#include <netinet/in.h>
#include <stdbool.h>

#define DNS_SYNTHETIC_NAMES 65536 /* names in a map, at most */

struct dns_synthetic;

/* max: 1 to DNS_SYNTHETIC_NAMES. NULL if memory is out. */
struct dns_synthetic *dns_synthetic_new(unsigned max);
/* Takes NULL. */
void dns_synthetic_free(struct dns_synthetic *m);
DEFINE_CLEANUP(struct dns_synthetic, dns_synthetic_free)

/* Address of name (case and one dot at the end are ignored), made if there is none yet. Either
 * ret may be NULL. Returns 0, -EINVAL for an empty or too long name, -ENOMEM. */
_warn_unused_ int dns_synthetic_get(
	struct dns_synthetic *m, struct str name, struct in_addr *ret4, struct in6_addr *ret6);

/* Name behind an address (AF_INET, AF_INET6, v4-mapped), lower case, borrowed until the next
 * dns_synthetic_get(); STR_NULL if it is none of ours or stands for no name (any more). Counts
 * as a use of the name. */
struct str dns_synthetic_name(struct dns_synthetic *m, const struct sockaddr *addr);

/* How many names are in it. */
unsigned dns_synthetic_count(const struct dns_synthetic *m);
