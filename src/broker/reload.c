/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-WHOLE-POLICY): a client of a running sandbox sends a socket, over which
 * a new policy comes. It is built beside the policy in force. The last frame puts it on record and
 * in force, between two requests, as a whole; if anything goes wrong before that, nothing changes.
 * After an error the remaining frames are read and dropped, so that the answer reaches a client
 * that is still writing.
 *
 * Requests under way are judged again, as if they came now. Those that would be refused are
 * refused, or broken off if the answer has begun. The others keep the verdict and the rules that
 * let them through (each holds a reference to its policy), unless these allowed other addresses or
 * a filter says that what it has done or found does not stand. Those of which nothing was sent get
 * the new rules. Idle connections and those that were only made to find something out are closed,
 * and the gateway forgets what it was told about names. */
#include "broker/reload.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/config.h"
#include "broker/decide.h"
#include "broker/dial.h"
#include "broker/github.h"
#include "broker/mint.h"
#include "broker/origin.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/renew.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "broker/watch.h"
#include "ipc/chan.h"
#include "ipc/helper.h"
#include "ipc/netchan.h"
#include "ipc/netconf.h"
#include "loop/loop.h"
#include "netlog/netlog.h"
#include "policy/allowlist.h"
#include "policy/decide.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

enum { RELOADS_MAX = 16, SOURCES_MAX = 1024, NAMES_MAX = 400 };
#define RELOAD_USEC (30 * USEC_PER_SEC)

struct reload {
	struct reload *prev, *next;
	struct broker *broker;
	struct chan chan;
	struct loop_io io;
	struct loop_timer late;
	struct allowlist *policy;
	unsigned sources;
	bool keeps;            /* it is added to the policy in force */
	char names[NAMES_MAX]; /* of the sources, for the log */
	struct cloche_err err; /* the first error */
};

static void reload_free(struct reload *r)
{
	loop_io_remove(&r->io);
	loop_timer_clear(&r->late);
	DL_DELETE(r->broker->reloads, r);
	chan_done(&r->chan);
	allowlist_free(r->policy);
	r->broker->rest_due = true;
	free(r);
}

/* --- what is gathered --- */

static void add_name(struct reload *r, struct str name)
{
	size_t n = strlen(r->names);

	snprintf(r->names + n, sizeof(r->names) - n, "%s%.*s", n ? ", " : "",
		STR_FMT(str_prefix(name, sizeof(r->names))));
}

static int take_source(struct reload *r, const struct chan_frame *f)
{
	bool denies = f->type == NETCONF_ALLOW && str_starts(f->payload, STR("!"));
	struct netconf_allowlist m = {.label = denies ? STR("deny") : STR("--allow")};
	int result;

	if (++r->sources > SOURCES_MAX)
		return err_set(&r->err, E_LIMIT, "more than %d allowlists", SOURCES_MAX);
	result = config_take_rules(r->policy, f, &r->err);
	if (result == 0 && f->type == NETCONF_ALLOWLIST)
		(void)!netconf_get_allowlist(f->payload, &m);
	if (result == 0)
		add_name(r, m.label);
	return result;
}

static void reload_keep(struct reload *r)
{
	r->keeps = true;
	add_name(r, STR("what held"));
}

/* --- what is under way --- */

static void adopt(struct stream *s, const struct verdict *v)
{
	allowlist_free(s->policy);
	s->policy = allowlist_ref(s->broker->policy);
	s->policy_number = s->broker->policy_number;
	s->verdict = *v;
}

static void break_off(struct stream *s, const struct policy_request *req, const struct verdict *v)
{
	stream_note(s, "broken off: the policy was replaced");
	dial_cancel(s);
	upstream_detach(s);
	if (stream_has_answer(s)) {
		stream_reset(s, NET_RESET_CANCELLED);
		return;
	}
	if (v->allow) {
		refuse_upstream(s, 503, "policy_replaced",
			"the policy was replaced while the request was under way: try again");
		return;
	}
	adopt(s, v);
	refuse_policy(s, req);
}

/* The rule allows other addresses now: if s has no connection yet, start again. */
static void move(struct stream *s, const struct verdict *v)
{
	if (!s->up) {
		dial_cancel(s);
		upstream_detach(s);
	}
	adopt(s, v);
	if (!s->up)
		request_go(s, true);
}

/* The new policy allows s, too: let it go on if what was done under the old one is enough. */
static bool reload_go_on(struct stream *s, const struct verdict *v)
{
	const struct allow_rule *was = s->verdict.rule;

	if (s->kind != NET_KIND_TUNNEL && !chain_stands(s, v))
		return false;
	if (!s->dial && !s->waits && !s->up) /* it still waits for its body or a token */
		adopt(s, v);
	else if (!allow_rule_same_addresses(was, v->rule) && !dial_may_stay(s, v->rule))
		return false;
	else if (!allow_rule_same_addresses(was, v->rule))
		move(s, v);
	return true;
}

/* Return false if the request may not go on. */
static bool judge_again(struct stream *s)
{
	struct policy_request req = decide_what(s);
	struct verdict v;

	/* Without memory the verdict is a refusal. */
	if (policy_decide(s->broker->policy, &req, &v) == 0 &&
		((s->once && !watch_is_denied(s)) || (v.allow && reload_go_on(s, &v))))
		return true;
	break_off(s, &req, &v);
	return false;
}

static uint32_t judge_some_again(struct broker *b, bool that_wait)
{
	struct stream *s, *tmp;
	uint32_t closed = 0;

	HASH_ITER (hh, b->streams.open, s, tmp)
		if ((s->waits != NULL) == that_wait && !stream_is_over(s) && s->verdict.allow &&
			!judge_again(s))
			closed++;
	return closed;
}

/* If a stream is broken off, those that wait for its connection dial themselves. So the ones that
 * wait are judged first. */
static uint32_t judge_all_again(struct broker *b)
{
	uint32_t closed = judge_some_again(b, true);

	return closed + judge_some_again(b, false);
}

/* --- the end --- */

static int put_on_record(struct reload *r)
{
	const struct netlog_event ev = {.kind = NETLOG_POLICY,
		.count = allowlist_count(r->policy),
		.note = str_from(r->names)};

	if (netlog_write(r->broker->lines.log, &ev) == 0)
		return 0;
	return err_set(&r->err, E_SYSTEM, "the network log cannot be written, so the policy stays");
}

/* For the sandbox's record. If the supervisor has gone, reading from it will show that. */
static void tell_supervisor(struct reload *r, uint32_t rules)
{
	const struct helper_replaced m = {.rules = rules, .sources = str_from(r->names)};

	if (helper_send_replaced(&r->broker->supervisor, &m) == 0)
		(void)!broker_flush_supervisor(r->broker);
}

static int replace(struct reload *r)
{
	struct broker *b = r->broker;
	struct netconf_replaced m = {.rules = (uint32_t)allowlist_count(r->policy)};
	struct allowlist *was = b->policy;

	b->policy = TAKE_PTR(r->policy);
	b->policy_number++;
	pool_drop_idle(b);
	mints_settle(b);
	if (net_send_forget(&b->net) < 0 || broker_tell_ports(b, false) < 0)
		broker_fail(b);
	m.closed = judge_all_again(b);
	watch_judge_again(b);
	origin_close_probes(b);
	github_judge_again(b);
	renew_judge_again(b);
	allowlist_free(was);
	broker_flush_later(b);
	tell_supervisor(r, m.rules);
	return netconf_send_replaced(&r->chan, &m);
}

/* Another client may have changed the policy in force since this one began. */
static int add_kept(struct reload *r)
{
	struct allowlist *all;
	int result;

	if (!r->keeps)
		return 0;
	result = allowlist_extend(r->broker->policy, r->policy, &all, &r->err);
	if (result < 0)
		return result;
	allowlist_free(r->policy);
	r->policy = all;
	return 0;
}

/* DONE has come: apply the policy, and answer in any case. If the client has gone before DONE was
 * read, nothing is done. */
static void reload_finish(struct reload *r)
{
	struct chan_frame f;
	int sent = chan_recv(&r->chan, &f);

	if (sent < 0) {
		reload_free(r);
		return;
	}
	if (sent > 0) {
		chan_frame_done(&f);
		err_set(&r->err, E_PROTOCOL, "a policy ends with its last frame");
	}
	if (r->err.code == 0 && r->broker->offline)
		err_set(&r->err, E_UNSUPPORTED,
			"the network is answered from a recording, and no policy is asked");
	if (r->err.code == 0 && add_kept(r) == 0 && put_on_record(r) == 0)
		sent = replace(r);
	else
		sent = netconf_send_refused(&r->chan, &r->err);
	if (sent == 0)
		(void)!chan_flush(&r->chan);
	reload_free(r);
}

/* Only as the first frame. */
static bool reload_is_watch(const struct reload *r, const struct chan_frame *f)
{
	return f->type == NETCONF_WATCH && f->payload.n == 0 && f->fds_n == 0 && r->sources == 0 &&
	       !r->keeps && r->err.code == 0;
}

/* The client has no new policy, but wants to be asked; it waits for an answer, so nothing more has
 * come. */
static void reload_become_watch(struct reload *r)
{
	struct broker *b = r->broker;
	int fd = r->chan.fd;

	loop_io_remove(&r->io);
	r->chan.fd = -1;
	reload_free(r);
	watch_begin(b, fd);
}

static void on_reload(struct loop_io *io, uint32_t events)
{
	struct reload *r = container_of(io, struct reload, io);
	struct chan_frame f;
	int n;

	while ((n = chan_recv(&r->chan, &f)) == 1) {
		bool done = f.type == NETCONF_DONE;

		if (reload_is_watch(r, &f)) {
			reload_become_watch(r);
			return;
		}
		if (r->err.code != 0)
			; /* it has failed: drop the frame */
		else if (f.fds_n > 0)
			err_set(&r->err, E_PROTOCOL, "a policy comes without descriptors");
		else if (f.type == NETCONF_KEEP && f.payload.n == 0 && !r->keeps)
			reload_keep(r);
		else if (!done)
			(void)!take_source(r, &f);
		chan_frame_done(&f);
		if (done) {
			reload_finish(r);
			return;
		}
	}
	if (n < 0)
		reload_free(r);
}

static void reload_on_late(struct loop_timer *t)
{
	reload_free(container_of(t, struct reload, late));
}

static bool reload_watch(struct reload *r)
{
	return loop_io_add(r->broker->loop, &r->io, r->chan.fd, EPOLLIN, on_reload) == 0;
}

void reload_begin(struct broker *b, int fd)
{
	struct reload *r = calloc(1, sizeof(*r)), *other;
	int n;

	DL_COUNT(b->reloads, other, n);
	if (!r || n >= RELOADS_MAX) {
		free(r);
		close(fd);
		return;
	}
	r->broker = b;
	r->policy = allowlist_new();
	n = chan_init(&r->chan, fd, NETCONF_MAX_PAYLOAD, NETCONF_MAX_PAYLOAD);
	DL_APPEND(b->reloads, r);
	/* A reload that comes before the first policy waits for that. */
	if (n < 0 || !r->policy ||
		loop_timer_set(b->loop, &r->late, clock_mono_usec() + RELOAD_USEC, reload_on_late) <
			0 ||
		(b->serving && !reload_watch(r)))
		reload_free(r);
}

void reloads_start(struct broker *b)
{
	struct reload *r, *tmp;

	DL_FOREACH_SAFE (b->reloads, r, tmp)
		if (!reload_watch(r))
			reload_free(r);
}

void reloads_free(struct broker *b)
{
	struct reload *r, *tmp;

	DL_FOREACH_SAFE (b->reloads, r, tmp)
		reload_free(r);
}
