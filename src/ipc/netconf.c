/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/netconf.h"
#include "ipc/frame.h"

#include <errno.h>
#include <stdio.h>

enum {
	MAX_NAME = 256,
	MAX_SECRET = 64 * 1024,
	MAX_PATTERNS = 256,
	MAX_REPOSITORIES = 500,
	MAX_PATTERN = 512
};

/* Ends the frame, or withdraws it where a value did not fit. */
static int finish(struct chan *c, const struct wire_out *w, size_t mark)
{
	if (w->error < 0) {
		chan_abort(c, mark);
		return w->error;
	}
	return chan_end(c, mark, NULL, 0);
}

int netconf_send_secret(struct chan *c, const struct netconf_secret *m)
{
	size_t mark;
	struct buf *b = chan_begin(c, NETCONF_SECRET, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	wire_put_str(&w, m->name);
	wire_put_str(&w, m->value);
	wire_put_str(&w, m->surrogate);
	wire_put_strv(&w, m->scopes);
	wire_put_strv(&w, m->headers);
	wire_put_u8(&w, m->allow_foreign);
	wire_put_u8(&w, m->role);
	return finish(c, &w, mark);
}

bool netconf_get_secret(struct str payload, struct netconf_secret *ret)
{
	struct wire_in r = wire_in(payload);
	struct netconf_secret m = {0};

	m.name = wire_get_str(&r, MAX_NAME);
	m.value = wire_get_str(&r, MAX_SECRET);
	m.surrogate = wire_get_str(&r, MAX_SECRET);
	m.scopes = wire_get_strv(&r, MAX_PATTERNS, MAX_PATTERN);
	m.headers = wire_get_strv(&r, MAX_PATTERNS, MAX_PATTERN);
	m.allow_foreign = wire_get_bool(&r);
	m.role = wire_get_u8(&r);
	if (!wire_ok(&r)) {
		strv_free(m.scopes);
		strv_free(m.headers);
		return false;
	}
	*ret = m;
	return true;
}

int netconf_send_github_app(struct chan *c, const struct netconf_github_app *m)
{
	size_t mark;
	struct buf *b = chan_begin(c, NETCONF_GITHUB_APP, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	wire_put_str(&w, m->name);
	wire_put_str(&w, m->surrogate);
	wire_put_str(&w, m->app_id);
	wire_put_str(&w, m->installation_id);
	wire_put_str(&w, m->key);
	wire_put_str(&w, m->base_url);
	wire_put_str(&w, m->permissions);
	wire_put_strv(&w, m->repositories);
	wire_put_strv(&w, m->scopes);
	wire_put_u8(&w, m->allow_foreign);
	return finish(c, &w, mark);
}

bool netconf_get_github_app(struct str payload, struct netconf_github_app *ret)
{
	struct wire_in r = wire_in(payload);
	struct netconf_github_app m = {0};

	m.name = wire_get_str(&r, MAX_NAME);
	m.surrogate = wire_get_str(&r, MAX_NAME);
	m.app_id = wire_get_str(&r, MAX_NAME);
	m.installation_id = wire_get_str(&r, MAX_NAME);
	m.key = wire_get_str(&r, MAX_SECRET);
	m.base_url = wire_get_str(&r, MAX_PATTERN);
	m.permissions = wire_get_str(&r, MAX_SECRET);
	m.repositories = wire_get_strv(&r, MAX_REPOSITORIES, MAX_NAME);
	m.scopes = wire_get_strv(&r, MAX_PATTERNS, MAX_PATTERN);
	m.allow_foreign = wire_get_bool(&r);
	if (!wire_ok(&r)) {
		strv_free(m.repositories);
		strv_free(m.scopes);
		return false;
	}
	*ret = m;
	return true;
}

int netconf_send_connect_to(struct chan *c, const struct netconf_connect_to *m)
{
	size_t mark;
	struct buf *b = chan_begin(c, NETCONF_CONNECT_TO, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	wire_put_str(&w, m->host);
	wire_put_u16(&w, m->port);
	wire_put_str(&w, m->address);
	wire_put_u16(&w, m->to_port);
	return finish(c, &w, mark);
}

bool netconf_get_connect_to(struct str payload, struct netconf_connect_to *ret)
{
	struct wire_in r = wire_in(payload);

	ret->host = wire_get_str(&r, MAX_PATTERN);
	ret->port = wire_get_u16(&r);
	ret->address = wire_get_str(&r, MAX_PATTERN);
	ret->to_port = wire_get_u16(&r);
	return wire_ok(&r);
}

int netconf_send_two(struct chan *c, enum netconf_frame type, struct str a, struct str b)
{
	size_t mark;
	struct buf *out = chan_begin(c, (uint16_t)type, &mark);
	struct wire_out w = wire_out(out);

	if (!out)
		return -ENOBUFS;
	wire_put_str(&w, a);
	wire_put_str(&w, b);
	return finish(c, &w, mark);
}

bool netconf_get_two(struct str payload, struct str *ret_a, struct str *ret_b)
{
	struct wire_in r = wire_in(payload);

	*ret_a = wire_get_str(&r, NETCONF_MAX_PAYLOAD);
	*ret_b = wire_get_str(&r, NETCONF_MAX_PAYLOAD);
	return wire_ok(&r);
}

int netconf_send_refused(struct chan *c, const struct cloche_err *err)
{
	size_t mark;
	struct buf *b = chan_begin(c, NETCONF_REFUSED, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	wire_put_err(&w, err);
	return finish(c, &w, mark);
}

int netconf_get_refused(struct str payload, struct cloche_err *err)
{
	struct wire_in r = wire_in(payload);
	int code = wire_get_err(&r, err);

	return wire_ok(&r) ? code : err_set(err, E_PROTOCOL, "the broker's answer is malformed");
}

int netconf_send_counts(struct chan *c, const struct netconf_counts *m)
{
	size_t mark;
	struct buf *b = chan_begin(c, NETCONF_COUNTS, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	wire_put_u64(&w, m->allowed);
	wire_put_u64(&w, m->blocked);
	return finish(c, &w, mark);
}

bool netconf_get_counts(struct str payload, struct netconf_counts *ret)
{
	struct wire_in r = wire_in(payload);

	ret->allowed = wire_get_u64(&r);
	ret->blocked = wire_get_u64(&r);
	return wire_ok(&r);
}

int netconf_send_replaced(struct chan *c, const struct netconf_replaced *m)
{
	struct frame_out f = frame_begin(c, NETCONF_REPLACED);

	wire_put_u32(&f.w, m->rules);
	wire_put_u32(&f.w, m->closed);
	return frame_end(&f, NULL, 0);
}

bool netconf_get_replaced(struct str payload, struct netconf_replaced *ret)
{
	struct wire_in r = wire_in(payload);

	ret->rules = wire_get_u32(&r);
	ret->closed = wire_get_u32(&r);
	return wire_ok(&r);
}
