/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells the broker what is to be logged. A room cannot fill a log with it: beyond a rate, events
 * are counted instead, and the count is logged. */

#include "ipc/netchan.h"

struct gateway;
struct conn;

struct event_log {
	uint64_t second; /* start of the second that is being counted */
	unsigned n;
	uint64_t dropped;
};

/* Long texts are cut. */
void event_send(struct gateway *g, const struct net_event *e);
/* An event of a connection: a is its destination as text ("name (198.18.0.3:22)"), b is why. */
void event_send_conn(struct conn *c, enum net_event_kind kind, uint16_t status, const char *why);

/* NET_EVENT_MALFORMED with what is known of the request; status: what it is answered, 0: nothing.
 */
struct http_head;
void event_malformed(
	struct conn *c, const struct http_head *head, unsigned status, const char *why);
/* The event that request_judge() has asked for. */
struct request;
void event_refused(struct conn *c, const struct http_head *head, const struct request *r);
