/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers the room's DNS queries over UDP and TCP. No other server is ever asked. */

#include "base/str.h"
#include "loop/loop.h"

struct gateway;
struct conn;
struct dns_answer;
struct dns_logged;

struct dns_socket {
	struct gateway *g; /* NULL: not in use */
	int fd;
	struct loop_io io;
	struct loop_timer timer;
	uint64_t second; /* start of the second that is being counted */
	unsigned n;
};

/* The names that were logged lately. */
struct dns_log {
	struct dns_logged *by_name; /* hash, the oldest first */
	unsigned n;
};

/* Take fd. Return 0 or -errno. */
_warn_unused_ int dns_udp_add(struct gateway *g, struct dns_socket *s, int fd);
void dns_udp_done(struct dns_socket *s);
/* The stage of a connection to port 53. */
void dns_tcp_start(struct conn *c);
/* Log a query of this type and its answer, unless the name was logged lately. The name may be any
 * bytes, at most DNS_WIRE_NAME_MAX. */
void dns_log_answer(
	struct gateway *g, struct str name, uint16_t type, const struct dns_answer *answer);
void dns_log_done(struct gateway *g);
