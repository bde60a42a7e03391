/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A bounded map from names to resolved addresses: the resolver's cache, and the hosts file. Names
 * are canonical: lower case, no dot at the end. */

#include "base/buf.h"
#include "dns/resolver.h"

struct dns_named;

struct dns_names {
	struct dns_named *map, *order;
	unsigned count, max;
};

void dns_names_done(struct dns_names *m);
/* The addresses of name if they are good at `now`, or NULL; borrowed until the next change. */
const struct dns_result *dns_names_get(struct dns_names *m, struct str name, uint64_t now);
/* Replaces what is known of name; the least recently used one leaves a full map. Returns 0 or
 * -ENOMEM. */
_warn_unused_ int dns_names_put(
	struct dns_names *m, struct str name, const struct dns_result *result);

/* Appends an address (AF_INET, AF_INET6; others are left out), once, without port. */
void dns_result_add(struct dns_result *r, const struct sockaddr *addr);
/* Reads an address from text (v6 without brackets and zone) as the only one of r. */
bool dns_result_from_text(struct dns_result *r, struct str text);

/* Adds the lines of a hosts file (hosts(5)); lines that make no sense are skipped. Returns 0 or
 * -ENOMEM. */
_warn_unused_ int dns_hosts_parse(struct dns_names *m, struct str text);

/* The servers of a resolv.conf(5) as "127.0.0.1,[2001:db8::1]": the first three, as the C library
 * has it; if there is none, this machine. Those with a zone ("%eth0") are left out. */
_warn_unused_ int dns_servers_parse(struct buf *ret, struct str text);

/* Lower case, without one dot at the end, terminated, into ret[DNS_NAME_MAX + 1]: labels of 1 to
 * 63 letters, digits, '-' and '_'. Returns 0 or -EINVAL. */
_warn_unused_ int dns_name_canonical(struct str name, char *ret, struct str *ret_name);
