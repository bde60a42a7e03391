/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: an HTTP/1.1 origin whose answers are chosen by the request's target. */

#include "tls/testing.h"

/* What the origin has seen, for all connections together. */
struct origin_seen {
	unsigned requests;
	struct buf heads; /* of all requests, one after the other */
};

/* Serve connections: pass it to test_origin_config with a struct origin_seen as arg.
 *	/hello		"hello"			/echo	the request's head
 *	/chunked	chunked, with a trailer	/eof	up to the end of the connection
 *	/cut		breaks off		/cutclose  the same without any framing
 *	/big/N		N bytes			/sink	reads the body, answers its length
 *	/once		answers, then closes without saying so
 *	/die		the same, but a second request of a connection is never answered
 *	/mute		"hello", but the first time nothing at all
 *	/gzip		a whole one, up to the end of the connection, which is cut
 *	/never		does not answer		/split	an echo of the head, cut into single bytes
 *	/raw/N		malformed answer N	/echohead  Authorization comes back in a field */
void origin_serve(struct test_conn *c, void *arg);
/* The same over HTTP/2 (HTTP/1.1 if that was agreed on). The heads that it has seen are
 * "GET /path HTTP/2\nname: value\n".
 *	/hello	/big/N	/never	as above	/sink	the same, and the trailers; 100 if asked
 *	/interim	103, then "hello"	/only	a head alone
 *	/trailers	"hello" and a trailer	/bidi	what comes, as it comes, and a trailer
 *	/bidi/TYPE	the same, and says that it is of this type
 *	/status/N	N, without a body	/cut	closes in the middle
 *	/reset, /cancel	breaks off by such an error
 *	/bye		"hello", then GOAWAY
 *	/goaway, /refused  the first time: has not looked at it
 *	/bad		a malformed head
 *	/hello?http1	wants HTTP/1.1
 *	/app/...	a token of GitHub's, after a second */
void origin_serve_h2(struct test_conn *c, void *arg);
/* For a file beside it: takes the lock. */
void origin_note(struct origin_seen *seen, struct str head);
extern const char *const origin_malformed[];
extern const size_t origin_malformed_n;
