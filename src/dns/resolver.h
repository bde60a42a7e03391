/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Resolves names for upstream connections, by DNS (c-ares) and the hosts file. No file is opened
 * after dns_resolver_new(), so that the process may restrict itself. Later contents of resolv.conf
 * and the hosts file are given to dns_resolver_renew().
 *
 * It owns no loop: `watch` says which descriptors to wait for, and the owner calls
 * dns_resolver_ready() when one is ready and dns_resolver_tick() when dns_resolver_next_usec() has
 * come. */

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include <netinet/in.h>
#include <stdbool.h>

#define DNS_ADDRS_MAX 16                    /* addresses kept of one name */
#define DNS_TIMEOUT_USEC (5 * USEC_PER_SEC) /* of a whole lookup */
#define DNS_CACHE_NAMES 1024                /* names with addresses, and as many without */
#define DNS_ABSENT_USEC (5 * USEC_PER_SEC)  /* how long names without addresses are kept */
#define DNS_LOOKUPS_MAX 512                 /* names asked for at the same time */

struct dns_resolver_config {
	const char *servers;    /* "127.0.0.1:5353,..."; NULL: as in /etc/resolv.conf */
	const char *hosts_path; /* NULL: /etc/hosts; "": none */
	/* Wait for this descriptor to become readable, writable. Neither: forget it, because it is
	 * about to be closed. Called from within any function below. */
	void (*watch)(void *arg, int fd, bool readable, bool writable);
	void *arg;
};

/* Port is 0 in each address. */
struct dns_result {
	unsigned n;
	union dns_addr {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addrs[DNS_ADDRS_MAX];
	uint64_t expires_usec; /* CLOCK_MONOTONIC; not to be used after that */
};

struct dns_resolver;
struct dns_lookup;

/* Called once for each lookup that was started. r: 0 and a result (n > 0, borrowed for the call),
 * or negative and err: -E_NOT_FOUND (no such name, or no address), -E_NETWORK (no answer, or a
 * timeout), -E_NO_MEMORY. The lookup is invalid then. The handler may start and cancel lookups, but
 * not free the resolver. */
struct dns_lookup_handler {
	void (*done)(
		void *arg, int r, const struct dns_result *result, const struct cloche_err *err);
	void *arg;
};

/* Copy what is needed of config. */
_warn_unused_ int dns_resolver_new(const struct dns_resolver_config *config,
	struct dns_resolver **ret, struct cloche_err *err);
/* Drop lookups under way without calling back. NULL is fine. */
void dns_resolver_free(struct dns_resolver *r);
DEFINE_CLEANUP(struct dns_resolver, dns_resolver_free)

/* Ask these servers ("127.0.0.1:5353,[::1]:53") from now on, whatever resolv.conf says. No query
 * may be under way. Return 0 or negative with err. */
_warn_unused_ int dns_resolver_set_servers(
	struct dns_resolver *r, const char *servers, struct cloche_err *err);

/* Use these new texts of resolv.conf and the hosts file, and forget what was known. Queries that
 * were sent go on. Return 0 or -ENOMEM. */
_warn_unused_ int dns_resolver_renew(struct dns_resolver *r, struct str resolv, struct str hosts);

/* Resolve an absolute name (letters, digits, '-', '_', dots; no search list) to v4 and v6
 * addresses, in the order in which the servers gave them. Return 1 with *ret_now filled if the
 * answer is known already; 0 if handler.done will be called later, never from within this call,
 * with *ret_lookup to cancel it; negative with err. An address as text (v6 without brackets) is its
 * own answer. */
_warn_unused_ int dns_resolver_lookup(struct dns_resolver *r, struct str name,
	struct dns_lookup_handler handler, struct dns_result *ret_now,
	struct dns_lookup **ret_lookup, struct cloche_err *err);
/* Return whether the addresses are known without asking anybody: the name is an address, it is in
 * the hosts file, or it was asked for before. */
bool dns_resolver_known(struct dns_resolver *r, struct str name, struct dns_result *ret);
/* Cancel a lookup: handler.done will not be called. Takes NULL. */
void dns_lookup_cancel(struct dns_lookup *lookup);

void dns_resolver_ready(struct dns_resolver *r, int fd, bool readable, bool writable);
/* Return when dns_resolver_tick() is due (CLOCK_MONOTONIC), or USEC_INFINITY if nothing is under
 * way. It changes with every call of the functions here. */
uint64_t dns_resolver_next_usec(const struct dns_resolver *r);
void dns_resolver_tick(struct dns_resolver *r);
