/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/event.h"
#include "base/clock.h"
#include "gateway/conn.h"
#include "gateway/request.h"
#include "gateway/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024 };

static void put(struct gateway *g, const struct net_event *e)
{
	struct net_event cut = *e;

	cut.a = str_prefix(e->a, TEXT_MAX);
	cut.b = str_prefix(e->b, TEXT_MAX);
	cut.c = str_prefix(e->c, TEXT_MAX);
	cut.target = str_prefix(e->target, TEXT_MAX);
	gateway_sent(g, net_send_event(&g->broker, &cut));
	gateway_touch(g);
}

/* If a second is over, begin a new one and log how many events were dropped. */
static void roll(struct gateway *g, uint64_t now)
{
	struct event_log *log = &g->events;
	char text[64];
	int n;

	if (now - log->second < USEC_PER_SEC)
		return;
	log->second = now;
	log->n = 0;
	if (log->dropped == 0)
		return;
	n = snprintf(text, sizeof(text), "%" PRIu64 " events were not logged", log->dropped);
	log->dropped = 0;
	put(g, &(struct net_event){
		       .kind = NET_EVENT_LIMIT,
		       .a = STR("events"),
		       .b = str_make(text, (size_t)n),
	       });
}

void event_send(struct gateway *g, const struct net_event *e)
{
	roll(g, loop_now(g->loop));
	if (++g->events.n > g->limits->events_per_sec)
		g->events.dropped++;
	else
		put(g, e);
}

void event_send_of(struct conn *c, struct net_event e)
{
	e.scheme = conn_scheme(c);
	e.connection = c->number;
	e.client = c->client;
	e.owner = conn_owner(c);
	if (e.port == 0)
		e.port = c->port;
	event_send(c->g, &e);
}

void event_send_conn(struct conn *c, enum net_event_kind kind, uint16_t status, const char *why)
{
	char text[CONN_DEST_MAX];

	event_send_of(c, (struct net_event){
				 .kind = kind,
				 .status = status,
				 .a = conn_dest_text(c, text),
				 .b = str_from(why),
			 });
}

void event_malformed(struct conn *c, const struct http_head *head, unsigned status, const char *why)
{
	struct str host = http_head_host(head);

	event_send_of(c, (struct net_event){
				 .kind = NET_EVENT_MALFORMED,
				 .status = (uint16_t)status,
				 .a = host.n ? host : host_str(&c->host),
				 .b = str_from(why),
				 .method = http_head_method(head),
				 .target = http_head_target(head),
			 });
}

/* Return what the request says about `why`, a part of where its connection goes. */
static struct str said_instead(
	const struct http_head *head, const char *why, char buffer[CONN_DEST_MAX])
{
	struct str host = http_head_host(head);
	int n;

	if (strcmp(why, "scheme") == 0)
		return http_head_scheme(head);
	if (strcmp(why, "port") != 0)
		return host;
	n = snprintf(
		buffer, CONN_DEST_MAX, "%.*s:%u", STR_FMT(str_prefix(host, HOST_MAX)), head->port);
	return str_make(buffer, (size_t)n);
}

void event_refused(struct conn *c, const struct http_head *head, const struct request *r)
{
	struct str host = http_head_host(head);
	char text[CONN_DEST_MAX];
	struct host dest;
	struct net_event e = {
		.kind = r->refusal.event,
		.status = r->refusal.status,
		.a = host,
		.b = str_from(r->refusal.why),
		.method = http_head_method(head),
		.target = http_head_target(head),
	};

	if (e.kind == NET_EVENT_CONNECT) {
		e.a = e.method;
		e.b = host;
		e.port = head->port; /* that of the target, as the host is */
	} else if (e.kind == NET_EVENT_MISMATCH) {
		conn_dest_name(c, &dest);
		e.a = host_str(c->tls ? &c->host : &dest);
		e.b = said_instead(head, r->refusal.why, text);
		e.c = str_from(r->refusal.why);
	} else if (e.kind == NET_EVENT_UPGRADE) {
		e.b = http_fields_get(&head->fields, STR("Upgrade"));
	}
	event_send_of(c, e);
}
