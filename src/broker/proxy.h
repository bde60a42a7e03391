/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ask a proxy for a connection to an origin (CONNECT, RFC 9110 section 9.3.6). */

#include "base/buf.h"
#include "http/h1.h"
#include "loop/loop.h"

struct host;
struct proxy;

struct proxy_ask {
	struct loop_io io;
	int fd;         /* to the proxy; -1: nothing is under way */
	struct buf out; /* what it has not taken */
	struct h1_parser parser;
	struct http_head head;
	/* why: NULL if fd leads to the origin now; the callee takes it. Else printable text, which
	 * says nothing about the proxy's name. */
	void (*done)(struct proxy_ask *a, const char *why);
	char message[160];
};

/* Ask on fd, which is taken. a->done is set; it is called later, and not after proxy_ask_end().
 * Return 0 or -errno. The caller bounds the time. */
_warn_unused_ int proxy_ask_begin(struct proxy_ask *a, struct loop *loop, int fd,
	const struct proxy *proxy, const struct host *host, uint16_t port);
void proxy_ask_end(struct proxy_ask *a);
