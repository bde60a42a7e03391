/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker sends its questions over a socket of our own (ipc/netconf.h).
 * What is to be allowed always is added to the policy in force, after which the broker lets the
 * request go on by itself; so a question is kept until it is answered. It is also kept for the
 * workspace (config/always.h), whose later sandboxes begin with it. */
#include "api/instance/instance.h"
#include "base/str.h"
#include "config/always.h"
#include "ipc/netconf.h"
#include <cloche/watch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { WATCH_ANSWER_MS = 20 * 1000, WATCH_KEPT_MAX = 256 };

struct watch_question {
	struct watch_question *prev, *next;
	cloche_question shown;
	char *method, *url, *program, *always, *rule;
	bool is_host;
};

struct cloche_watch {
	cloche_instance *instance;
	struct chan chan;
	struct watch_question *kept;
	unsigned kept_n;
	cloche_question withdrawn;
};

static void watch_drop(struct cloche_watch *w, struct watch_question *q)
{
	DL_DELETE(w->kept, q);
	w->kept_n--;
	free(q->method);
	free(q->url);
	free(q->program);
	free(q->always);
	free(q->rule);
	free(q);
}

static struct watch_question *watch_find(struct cloche_watch *w, uint32_t number)
{
	struct watch_question *q;

	DL_FOREACH (w->kept, q)
		if (q->shown.number == number)
			break;
	return q;
}

/* ":PORT" if the scheme stands for another one. */
static const char *watch_port(const struct netconf_question *m, char ret[8])
{
	ret[0] = '\0';
	if (m->port != (str_eq(m->scheme, STR("https")) ? 443 : 80))
		snprintf(ret, 8, ":%u", m->port);
	return ret;
}

static int watch_fill(struct watch_question *q, const struct netconf_question *m)
{
	struct str program = m->owner.program.n ? m->owner.program : m->owner.name;
	char port[8];

	watch_port(m, port);
	if (asprintf(&q->url, "%.*s://%.*s%s%.*s", STR_FMT(m->scheme), STR_FMT(m->host), port,
		    STR_FMT(m->target)) < 0)
		q->url = NULL;
	/* A port of its own is part of what is allowed. */
	if (q->url && m->is_host && asprintf(&q->always, "%.*s%s", STR_FMT(m->host), port) < 0)
		q->always = NULL;
	if (q->url && !m->is_host &&
		asprintf(&q->always, "%.*s %s", STR_FMT(m->method), q->url) < 0)
		q->always = NULL;
	q->method = str_dup(m->method);
	q->program = str_dup(program);
	q->rule = str_dup(m->suggestion);
	q->is_host = m->is_host;
	if (!q->url || !q->always || !q->method || !q->program || !q->rule)
		return -ENOMEM;
	q->shown = (cloche_question){.size = sizeof(q->shown),
		.number = m->number,
		.pid = m->owner.pid,
		.program = q->program,
		.method = q->method,
		.url = q->url,
		.always = q->always};
	return 0;
}

static int watch_keep(struct cloche_watch *w, struct str payload, const cloche_question **ret,
	struct cloche_err *err)
{
	struct watch_question *q;
	struct netconf_question m;

	if (!netconf_get_question(payload, &m) || w->kept_n >= WATCH_KEPT_MAX)
		return err_set(err, E_PROTOCOL, "the broker sent an invalid message");
	q = calloc(1, sizeof(*q));
	if (!q)
		return err_nomem(err);
	DL_APPEND(w->kept, q);
	w->kept_n++;
	if (watch_fill(q, &m) < 0) {
		watch_drop(w, q);
		return err_nomem(err);
	}
	*ret = &q->shown;
	return 1;
}

/* Return 1 if it was one of ours that nobody has answered here. */
static int watch_withdraw(struct cloche_watch *w, struct str payload, const cloche_question **ret,
	struct cloche_err *err)
{
	struct netconf_withdrawn m;
	struct watch_question *q;

	if (!netconf_get_withdrawn(payload, &m))
		return err_set(err, E_PROTOCOL, "the broker sent an invalid message");
	q = watch_find(w, m.number);
	if (!q)
		return 0;
	watch_drop(w, q);
	w->withdrawn = (cloche_question){.size = sizeof(w->withdrawn),
		.number = m.number,
		.withdrawn = true,
		.program = "",
		.method = "",
		.url = "",
		.always = ""};
	*ret = &w->withdrawn;
	return 1;
}

int cloche_watch_next(cloche_watch *w, const cloche_question **ret, cloche_err *err)
{
	struct chan_frame f;
	int r = 0, n;

	while (r == 0 && (n = chan_recv(&w->chan, &f)) != 0) {
		if (n < 0)
			return err_set(err, E_BROKEN, "sandbox %s has ended", w->instance->id);
		if (f.type == NETCONF_QUESTION)
			r = watch_keep(w, f.payload, ret, err);
		else if (f.type == NETCONF_WITHDRAWN)
			r = watch_withdraw(w, f.payload, ret, err);
		else
			r = err_set(err, E_PROTOCOL, "the broker sent an invalid message");
		chan_frame_done(&f);
	}
	return r;
}

/* Keep it for later sandboxes of the project. */
static int watch_keep_always(
	const struct cloche_watch *w, const struct allow_source *s, struct cloche_err *err)
{
	const json_t *config = json_object_get(w->instance->record, "config");
	const char *dir = json_string_value(json_object_get(config, "workspace"));

	return dir ? always_add(dir, s, err) : 0;
}

/* The rule holds in this sandbox first; then the question needs no other answer, whether or not it
 * can be kept. */
static int watch_always(struct cloche_watch *w, struct watch_question *q, struct cloche_err *err)
{
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *list = cloche_allowlist_new();
	int r = list ? 0 : err_nomem(err);

	if (r == 0 && q->is_host)
		r = cloche_allowlist_add_host(list, q->always, err);
	else if (r == 0)
		r = cloche_allowlist_add_text(list, q->always, q->rule, strlen(q->rule), err);
	if (r == 0)
		r = cloche_instance_add_allowlist(w->instance, list, NULL, err);
	if (r < 0)
		return r;
	watch_drop(w, q);
	return watch_keep_always(w, &list->sources[0], err);
}

int cloche_watch_answer(cloche_watch *w, uint32_t number, cloche_answer answer, cloche_err *err)
{
	struct watch_question *q = watch_find(w, number);
	int r;

	if (!q)
		return 0;
	if (answer == CLOCHE_ANSWER_ALWAYS)
		return watch_always(w, q, err);
	watch_drop(w, q);
	r = netconf_send_answer(&w->chan,
		&(struct netconf_answer){.number = number, .allow = answer == CLOCHE_ANSWER_ONCE});
	if (r == 0)
		r = chan_flush_wait(&w->chan, WATCH_ANSWER_MS);
	return r < 0 ? err_set(err, E_BROKEN, "sandbox %s has ended", w->instance->id) : 0;
}

static int watch_begin(struct cloche_watch *w, struct cloche_err *err)
{
	struct chan_frame f;
	int r = instance_policy_channel(w->instance, &w->chan, err);

	if (r < 0)
		return r;
	r = chan_send(&w->chan, NETCONF_WATCH, STR_NULL, NULL, 0);
	if (r == 0)
		r = chan_recv_wait(&w->chan, &f, WATCH_ANSWER_MS);
	if (r < 0)
		return err_set(err, E_NETWORK, "the network's broker does not answer");
	r = f.type == NETCONF_OK ? 0
				 : err_set(err, E_PROTOCOL, "the broker sent an invalid message");
	chan_frame_done(&f);
	return r;
}

int cloche_watch_new(const cloche_instance *instance, cloche_watch **ret, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT, *e = err ? err : &own;
	cloche_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_nomem(err);
	w->chan.fd = -1;
	w->instance = instance_copy(instance);
	r = w->instance ? cloche_instance_refresh(w->instance, e)
			: err_sys(e, errno, "copy the handle of a sandbox");
	if (r == 0)
		r = watch_begin(w, e);
	if (r < 0) {
		r = err_wrap(e, r, "watching %s", instance->id);
		cloche_watch_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

int cloche_watch_fd(const cloche_watch *w)
{
	return w->chan.fd;
}

void cloche_watch_free(cloche_watch *w)
{
	if (!w)
		return;
	while (w->kept)
		watch_drop(w, w->kept);
	if (w->chan.fd >= 0)
		chan_done(&w->chan);
	cloche_instance_free(w->instance);
	free(w);
}
