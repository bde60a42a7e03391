/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a client that watches is asked about each request that the policy refuses
 * and a rule for exactly this request would allow; so what no allowlist can allow (an address, an
 * ambiguous path, what was denied) is never asked. Such a request is held: its body waits in its
 * window. A person who allows it gives it a policy of its own, the one in force and that rule; it
 * is then judged by the filters as any other, with its body as if that came now. Nobody who answers
 * is inside: the socket comes from the supervisor, which takes it from the sandbox's owner.
 *
 * If nobody answers in a minute, or nobody watches any more (and the sandbox was not made to be
 * watched, --ask), it is refused as ever. A client that does not read is dropped. */
#include "broker/watch.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "ipc/chan.h"
#include "ipc/netconf.h"
#include "loop/loop.h"
#include "policy/allowlist.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

enum { HELD_MAX = 64, WATCHERS_MAX = 8, WATCHER_OUT_MAX = 4 << 20 };
#define PATIENCE_USEC (60 * USEC_PER_SEC)

struct watcher {
	struct watcher *prev, *next;
	struct broker *broker;
	struct chan chan;
	struct loop_io io;
	bool dead;
};

struct watch_held {
	struct watch_held *prev, *next;
	struct broker *broker;
	uint32_t number, stream;
	struct loop_timer late;
	struct net_owner owner; /* its texts are in `texts` */
	char texts[];
};

/* --- the watchers --- */

static void watcher_free(struct watcher *w)
{
	loop_io_remove(&w->io);
	DL_DELETE(w->broker->watching.watchers, w);
	chan_done(&w->chan);
	free(w);
}

static void watcher_flush(struct watcher *w)
{
	w->dead |= chan_flush(&w->chan) < 0;
	if (!w->dead)
		loop_io_set(&w->io, chan_pending(&w->chan) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int watcher_ask(struct watcher *w, const struct watch_held *h, const struct stream *s)
{
	const struct policy_request req = decide_what(s);
	_cleanup_(buf_donep) struct buf yaml = BUF_INIT(NETCONF_MAX_VALUE);
	int r = policy_suggest(s->policy, &req, &s->verdict, &yaml);

	if (r < 0)
		return r;
	return netconf_send_question(
		&w->chan, &(struct netconf_question){
				  .number = h->number,
				  .is_host = s->verdict.reason == POLICY_HOST,
				  .scheme = str_from(policy_scheme_word(req.scheme)),
				  .host = req.host,
				  .port = req.port,
				  .method = req.method,
				  .target = req.target,
				  .owner = h->owner,
				  .suggestion = buf_str(&yaml),
			  });
}

static void watchers_ask(struct broker *b, const struct watch_held *h, const struct stream *s)
{
	struct watcher *w;

	DL_FOREACH (b->watching.watchers, w) {
		w->dead |= watcher_ask(w, h, s) < 0;
		watcher_flush(w);
	}
}

static void watchers_withdraw(struct broker *b, uint32_t number)
{
	const struct netconf_withdrawn m = {.number = number};
	struct watcher *w;

	DL_FOREACH (b->watching.watchers, w) {
		w->dead |= netconf_send_withdrawn(&w->chan, &m) < 0;
		watcher_flush(w);
	}
}

/* --- what is held --- */

static struct stream *held_stream(const struct watch_held *h)
{
	struct stream *s;

	HASH_FIND(hh, h->broker->streams.open, &h->stream, sizeof(h->stream), s);
	return s;
}

static void held_remove(struct watch_held *h)
{
	loop_timer_clear(&h->late);
	DL_DELETE(h->broker->watching.held, h);
}

/* End the question; h is gone afterwards. */
static void held_refuse(struct watch_held *h)
{
	struct broker *b = h->broker;
	struct stream *s = held_stream(h);
	struct policy_request req = decide_what(s);
	const struct net_owner *was = b->lines.owner;

	held_remove(h);
	b->lines.owner = h->owner.pid ? &h->owner : NULL;
	refuse_policy(s, &req);
	b->lines.owner = was;
	watchers_withdraw(b, h->number);
	free(h);
	broker_flush_later(b);
}

static void held_on_late(struct loop_timer *t)
{
	struct watch_held *h = container_of(t, struct watch_held, late);

	stream_note(held_stream(h), "nobody answered");
	held_refuse(h);
}

/* Store the policy in force with a rule for exactly this request, and what it says; NULL if even
 * that does not allow it. */
static struct allowlist *held_policy(const struct stream *s, struct verdict *ret)
{
	const struct policy_request req = decide_what(s);
	struct allowlist *in_force = s->broker->policy;
	_cleanup_(buf_donep) struct buf yaml = BUF_INIT(NETCONF_MAX_VALUE);
	_cleanup_(allowlist_freep) struct allowlist *more = allowlist_new(), *all = NULL;
	struct verdict now;

	if (!more || policy_decide(in_force, &req, &now) < 0 ||
		policy_suggest(in_force, &req, &now, &yaml) < 0 || buf_len(&yaml) == 0 ||
		allowlist_add_yaml(more, buf_str(&yaml), "allowed when it was asked", NULL) < 0 ||
		allowlist_extend(in_force, more, &all, NULL) < 0)
		return NULL;
	if (policy_decide(all, &req, ret) < 0 || !ret->allow)
		return NULL;
	return TAKE_PTR(all);
}

/* From now on the request has this policy (taken), whatever becomes of it. */
static void held_adopt(struct stream *s, struct allowlist *policy, const struct verdict *v)
{
	allowlist_free(s->policy);
	s->policy = policy;
	s->policy_number = s->broker->policy_number;
	s->verdict = *v;
}

/* Let the request go on; h is gone afterwards. */
static void held_go_on(struct watch_held *h)
{
	struct broker *b = h->broker;
	struct stream *s = held_stream(h);

	watchers_withdraw(b, h->number);
	held_remove(h);
	free(h);
	decide_held(s);
	broker_flush_later(b);
}

bool watch_is_denied(const struct stream *s)
{
	return allowlist_denies_host(s->broker->policy, NULL, &s->host);
}

bool watch_hold(struct stream *s)
{
	struct broker *b = s->broker;
	const struct net_owner *owner = b->lines.owner;
	_cleanup_(allowlist_freep) struct allowlist *would = NULL;
	struct watch_held *h, *other;
	struct verdict v;
	size_t texts_n = owner ? owner->name.n + owner->program.n : 0;
	int n;

	DL_COUNT(b->watching.held, other, n);
	if ((!b->watching.watchers && !b->watching.expected) || n >= HELD_MAX ||
		s->kind == NET_KIND_TUNNEL || s->host.kind != HOST_NAME || watch_is_denied(s))
		return false;
	would = held_policy(s, &v);
	h = would ? calloc(1, sizeof(*h) + texts_n) : NULL;
	if (!h)
		return false;
	*h = (struct watch_held){.broker = b, .number = ++b->watching.last, .stream = s->id};
	if (owner) {
		h->owner = *owner;
		memcpy(h->texts, owner->name.p ? owner->name.p : "", owner->name.n);
		memcpy(h->texts + owner->name.n, owner->program.p ? owner->program.p : "",
			owner->program.n);
		h->owner.name = str_make(h->texts, owner->name.n);
		h->owner.program = str_make(h->texts + owner->name.n, owner->program.n);
	}
	if (loop_timer_set(b->loop, &h->late, clock_mono_usec() + PATIENCE_USEC, held_on_late) <
		0) {
		free(h);
		return false;
	}
	DL_APPEND(b->watching.held, h);
	stream_go(s, STREAM_HELD);
	watchers_ask(b, h, s);
	return true;
}

void watch_forget(struct stream *s)
{
	struct watch_held *h;

	DL_FOREACH (s->broker->watching.held, h)
		if (h->stream == s->id)
			break;
	if (!h)
		return;
	watchers_withdraw(s->broker, h->number);
	held_remove(h);
	free(h);
}

void watch_judge_again(struct broker *b)
{
	struct watch_held *h, *tmp;

	DL_FOREACH_SAFE (b->watching.held, h, tmp) {
		struct stream *s = held_stream(h);
		struct policy_request req = decide_what(s);
		struct verdict v;

		if (policy_decide(b->policy, &req, &v) < 0)
			continue;
		held_adopt(s, allowlist_ref(b->policy), &v);
		if (v.allow)
			held_go_on(h);
		else if (watch_is_denied(s))
			held_refuse(h);
	}
}

/* --- answers --- */

static bool watcher_take_answer(struct watcher *w, const struct chan_frame *f)
{
	struct netconf_answer m;
	struct watch_held *h;
	struct allowlist *policy;
	struct verdict v;

	if (f->type != NETCONF_ANSWER || f->fds_n > 0 || !netconf_get_answer(f->payload, &m))
		return false;
	DL_FOREACH (w->broker->watching.held, h)
		if (h->number == m.number)
			break;
	if (!h) /* it came too late */
		return true;
	policy = m.allow ? held_policy(held_stream(h), &v) : NULL;
	if (!policy) {
		held_refuse(h);
		return true;
	}
	held_stream(h)->once = true;
	held_adopt(held_stream(h), policy, &v);
	held_go_on(h);
	return true;
}

/* Refuse what is held if nobody is left who could answer. */
static void watchers_reap(struct broker *b)
{
	struct watcher *w, *tmp;

	DL_FOREACH_SAFE (b->watching.watchers, w, tmp)
		if (w->dead)
			watcher_free(w);
	while (!b->watching.watchers && !b->watching.expected && b->watching.held)
		held_refuse(b->watching.held);
}

static void watcher_on_io(struct loop_io *io, uint32_t events)
{
	struct watcher *w = container_of(io, struct watcher, io);
	struct broker *b = w->broker;
	struct chan_frame f;
	int n;

	watcher_flush(w);
	while (!w->dead && (n = chan_recv(&w->chan, &f)) != 0) {
		w->dead |= n < 0 || !watcher_take_answer(w, &f);
		if (n > 0)
			chan_frame_done(&f);
	}
	watchers_reap(b);
}

void watch_begin(struct broker *b, int fd)
{
	struct watcher *w = calloc(1, sizeof(*w)), *other;
	struct watch_held *h;
	int n;

	DL_COUNT(b->watching.watchers, other, n);
	if (!w || n >= WATCHERS_MAX) {
		free(w);
		close(fd);
		return;
	}
	w->broker = b;
	DL_APPEND(b->watching.watchers, w);
	if (chan_init(&w->chan, fd, NETCONF_MAX_NAME, WATCHER_OUT_MAX) < 0 ||
		loop_io_add(b->loop, &w->io, w->chan.fd, EPOLLIN, watcher_on_io) < 0 ||
		chan_send(&w->chan, NETCONF_OK, STR_NULL, NULL, 0) < 0) {
		watcher_free(w);
		return;
	}
	w->chan.max_send = NETCONF_MAX_PAYLOAD;
	DL_FOREACH (b->watching.held, h)
		w->dead |= watcher_ask(w, h, held_stream(h)) < 0;
	watcher_flush(w);
	if (w->dead)
		watcher_free(w);
}

void watch_free(struct broker *b)
{
	struct watch_held *h, *tmp;

	DL_FOREACH_SAFE (b->watching.held, h, tmp) {
		held_remove(h);
		free(h);
	}
	while (b->watching.watchers)
		watcher_free(b->watching.watchers);
}
