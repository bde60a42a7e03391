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
/* Set the result for name. If the map is full, the least recently used name is dropped. Return 0 or
 * -ENOMEM. */
_warn_unused_ int dns_names_put(
	struct dns_names *m, struct str name, const struct dns_result *result);

/* Append an address (AF_INET, AF_INET6; others are left out) without its port, unless r has it
 * already or is full. */
void dns_result_add(struct dns_result *r, const struct sockaddr *addr);
/* Make the address in text (v6 without brackets and zone) the only one of r. Return false if text
 * is not an address. */
bool dns_result_from_text(struct dns_result *r, struct str text);

/* Add the lines of a hosts file (hosts(5)); malformed lines are skipped. Return 0 or -ENOMEM. */
_warn_unused_ int dns_hosts_parse(struct dns_names *m, struct str text);

/* Append the servers of a resolv.conf(5) to ret, like "127.0.0.1,[2001:db8::1]": the first three,
 * as in the C library, or 127.0.0.1 if there are none. Servers with a zone ("%eth0") are left
 * out. */
_warn_unused_ int dns_servers_parse(struct buf *ret, struct str text);

/* Write name to ret[DNS_NAME_MAX + 1] in lower case, without one dot at the end, terminated. It
 * must consist of labels of 1 to 63 letters, digits, '-' and '_'. Return 0 or -EINVAL. */
_warn_unused_ int dns_name_canonical(struct str name, char *ret, struct str *ret_name);
