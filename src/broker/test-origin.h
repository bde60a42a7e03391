/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: an HTTP/1.1 origin whose answers are chosen by the request's target. */

#include "tls/testing.h"

/* What the origin has seen, for all connections together. */
struct origin_seen {
	unsigned requests;
	struct buf heads; /* of all requests, one after the other */
};

/* Serves connections: pass it to test_origin_config with a struct origin_seen as arg.
 *	/hello		"hello"			/echo	the request's head
 *	/chunked	chunked, with a trailer	/eof	up to the end of the connection
 *	/cut		breaks off		/cutclose  the same without any framing
 *	/big/N		N bytes			/sink	reads the body, answers its length
 *	/once		answers, then closes without saying so
 *	/die		the same, but a second request of a connection is never answered
 *	/never		does not answer		/split	an echo of the head, cut into single bytes
 *	/raw/N		malformed answer N	/echohead  Authorization comes back in a field */
void origin_serve(struct test_conn *c, void *arg);
extern const char *const origin_malformed[];
extern const size_t origin_malformed_n;
