/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sends events to the broker, to be logged. A room cannot fill the log with them: events beyond a
 * rate are only counted, and the count is logged. */

#include "ipc/netchan.h"

struct gateway;
struct conn;

struct event_log {
	uint64_t second; /* start of the second that is being counted */
	unsigned n;
	uint64_t dropped;
};

/* Send e. Long texts are truncated. */
void event_send(struct gateway *g, const struct net_event *e);
/* Send e about a connection: fill in which one, its scheme, and its port unless e has one. */
void event_send_of(struct conn *c, struct net_event e);
/* Send an event about a connection: its a is the destination as text ("name (198.18.0.3:22)"), its
 * b is why. */
void event_send_conn(struct conn *c, enum net_event_kind kind, uint16_t status, const char *why);

/* Send NET_EVENT_MALFORMED with what is known of the request. status is that of the answer, or 0 if
 * there is no answer. */
struct http_head;
void event_malformed(
	struct conn *c, const struct http_head *head, unsigned status, const char *why);
/* Send the event that request_judge() has put into r. */
struct request;
void event_refused(struct conn *c, const struct http_head *head, const struct request *r);
