/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Connect to a host and port. */

#include "base/err.h"
#include "broker/constants.h"
#include "dns/resolver.h"
#include "loop/loop.h"
#include "policy/proxy.h"

#include <stdbool.h>

struct allow_rule;
struct broker;
struct cidr;
struct override;
struct stream;

struct dialer {
	struct override *overrides;
	struct cidr *own; /* addresses of this machine */
	size_t overrides_n, own_n;
	struct proxies proxies; /* that origins are reached through */
	char *servers;          /* name servers to ask; NULL: those of the host */
	struct dns_resolver *resolver;
	struct loop_timer timer;
	uint64_t names_asked; /* when the supervisor was asked whether the host's files changed */
	struct resolver_fd {
		struct broker *broker;
		struct loop_io io;
		int fd;
	} fds[RESOLVER_FDS];
};

/* Resolve the name, judge the addresses and connect. This ends with upstream_new() or a refusal. */
void dial_start(struct stream *s);
void dial_cancel(struct stream *s);
/* Return whether the connection of s leads to an address that the rule allows. Also true if s has
 * no connection, or if --connect-to gave the address. */
bool dial_may_stay(const struct stream *s, const struct allow_rule *rule);
_warn_unused_ int dial_setup(struct broker *b, struct cloche_err *err);
void dial_teardown(struct broker *b);
