/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names and the addresses made up for them: 198.18.0.0/15 (RFC 2544) and fd00:c10c::/64. There is
 * one map per sandbox. A name keeps its address as long as it is in the map, and is dropped only
 * when max other names were used since. */

#include "base/macro.h"
#include "base/str.h"
#include <netinet/in.h>
#include <stdbool.h>

#define DNS_SYNTHETIC_NAMES 65536 /* names in a map, at most */

struct dns_synthetic;

/* max: 1 to DNS_SYNTHETIC_NAMES. NULL if memory is out. */
struct dns_synthetic *dns_synthetic_new(unsigned max);
/* NULL is fine. */
void dns_synthetic_free(struct dns_synthetic *m);
DEFINE_CLEANUP(struct dns_synthetic, dns_synthetic_free)

/* Get the addresses of name (case and one dot at the end are ignored), and make them if there are
 * none yet. Either ret may be NULL. Return 0, -EINVAL for what is no name (dns_name_canonical()),
 * or -ENOMEM. */
_warn_unused_ int dns_synthetic_get(
	struct dns_synthetic *m, struct str name, struct in_addr *ret4, struct in6_addr *ret6);

/* Return the name that an address (AF_INET, AF_INET6, v4-mapped) stands for, in lower case,
 * borrowed until the next dns_synthetic_get(); STR_NULL if the address is not synthetic or stands
 * for no name (any more). Counts as a use of the name. */
struct str dns_synthetic_name(struct dns_synthetic *m, const struct sockaddr *addr);

/* Number of names in the map. */
unsigned dns_synthetic_count(const struct dns_synthetic *m);
