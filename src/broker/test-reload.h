/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Gives a broker that serves another policy. */
#include "broker/test-world.h"
#include "ipc/helper.h"

#include "base/fd.h"
#include <errno.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

#define ONLY_A "domains: [a.site.test]\n"
#define ONLY_B "domains: [b.site.test]\n"

/* A client's socket, whose other end the broker has. */
static void policy_begin(struct world *w, struct chan *ret)
{
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(helper_send_policy(&w->g.supervisor, &pair[1]) == 0);
	must(chan_flush_wait(&w->g.supervisor, PATIENCE_MS) == 0);
	close(pair[1]);
	must(chan_init(ret, pair[0], NETCONF_MAX_PAYLOAD, 8 << 20) == 0);
}

static void policy_add(struct chan *c, const char *yaml)
{
	must(netconf_send_allowlist(
		     c, &(struct netconf_allowlist){STR("new.yaml"), str_from(yaml)}) == 0);
	must(chan_flush_wait(c, PATIENCE_MS) == 0);
}

/* Say DONE and take the answer: 0 with *ret filled, or its refusal. */
static int policy_done(struct chan *c, struct netconf_replaced *ret, struct cloche_err *err)
{
	struct chan_frame f;
	int r;

	must(chan_send(c, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(chan_recv_wait(c, &f, PATIENCE_MS) == 1);
	if (f.type == NETCONF_REFUSED) {
		r = netconf_get_refused(f.payload, err);
	} else {
		must(f.type == NETCONF_REPLACED && netconf_get_replaced(f.payload, ret));
		r = 0;
	}
	check_int(chan_recv_wait(c, &f, PATIENCE_MS), -EPIPE);
	chan_done(c);
	return r;
}

static int set_policy(
	struct world *w, const char *yaml, struct netconf_replaced *ret, struct cloche_err *err)
{
	struct chan c;

	policy_begin(w, &c);
	policy_add(&c, yaml);
	return policy_done(&c, ret, err);
}

static unsigned status_of(struct world *w, const char *host)
{
	struct got r;
	unsigned status;

	rig_ask(&w->g, &(struct ask){.scheme = NET_HTTPS, .host = host, .target = "/hello"}, &r);
	status = r.status;
	got_done(&r);
	return status;
}

/* What was sent to the broker before has been taken: it answers in order. */
__attribute__((unused)) static void wait_taken(struct world *w)
{
	(void)status_of(w, "a.site.test");
}

/* Until the answer's head is there, of a stream whose body nobody reads. */
__attribute__((unused)) static void wait_head(struct world *w, uint32_t id, struct got *r)
{
	for (int ms = 0; ms < PATIENCE_MS && r->status == 0; ms += 100)
		rig_collect(&w->g, id, r, 100);
}
