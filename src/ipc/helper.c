/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/helper.h"
#include "ipc/frame.h"

#include <errno.h>

int helper_send_listeners(
	struct chan *c, const struct helper_listeners *m, const int fds[HELPER_SOCKETS])
{
	int given[HELPER_SOCKETS];
	unsigned n = 0;
	size_t mark;
	struct buf *b = chan_begin(c, HELPER_LISTENERS, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	for (unsigned i = 0; i < HELPER_SOCKETS; i++)
		if (m->present & 1U << i)
			given[n++] = fds[i];
	wire_put_u8(&w, m->present);
	wire_put_str(&w, m->own);
	if (w.error < 0) {
		chan_abort(c, mark);
		return w.error;
	}
	return chan_end(c, mark, given, n);
}

bool helper_get_listeners(
	struct chan_frame *f, struct helper_listeners *ret, int ret_fds[HELPER_SOCKETS])
{
	struct wire_in r = wire_in(f->payload);
	struct helper_listeners m = {.present = wire_get_u8(&r)};
	unsigned n = 0;

	m.own = wire_get_str(&r, HELPER_MAX_OWN);
	if (!wire_ok(&r) || m.present >= 1U << HELPER_SOCKETS ||
		f->fds_n != (unsigned)__builtin_popcount(m.present))
		return false;
	for (unsigned i = 0; i < HELPER_SOCKETS; i++)
		ret_fds[i] = m.present & 1U << i ? TAKE_FD(f->fds[n++]) : -1;
	*ret = m;
	return true;
}

int helper_send_ready(struct chan *c)
{
	return chan_send(c, HELPER_READY, STR_NULL, NULL, 0);
}

int helper_send_failed(struct chan *c, const struct cloche_err *err)
{
	size_t mark;
	struct buf *b = chan_begin(c, HELPER_FAILED, &mark);
	struct wire_out w = wire_out(b);

	if (!b)
		return -ENOBUFS;
	wire_put_err(&w, err);
	if (w.error < 0) {
		chan_abort(c, mark);
		return w.error;
	}
	return chan_end(c, mark, NULL, 0);
}

int helper_get_failed(struct str payload, struct cloche_err *err)
{
	struct wire_in r = wire_in(payload);
	int code = wire_get_err(&r, err);

	if (!wire_ok(&r) || code == 0)
		return err_set(err, E_PROTOCOL, "malformed report of a failure");
	return code;
}

int helper_send_count(struct chan *c)
{
	return chan_send(c, HELPER_COUNT, STR_NULL, NULL, 0);
}

int helper_send_policy(struct chan *c, int client)
{
	return chan_send(c, HELPER_POLICY, STR_NULL, &client, 1);
}

int helper_send_names_changed(struct chan *c)
{
	return chan_send(c, HELPER_NAMES_CHANGED, STR_NULL, NULL, 0);
}

int helper_send_names(struct chan *c, const int fds[2])
{
	return chan_send(c, HELPER_NAMES, STR_NULL, fds, 2);
}

int helper_send_counted(struct chan *c, const struct helper_counts *m)
{
	struct frame_out f = frame_begin(c, HELPER_COUNTED);

	wire_put_u64(&f.w, m->allowed);
	wire_put_u64(&f.w, m->blocked);
	wire_put_u64(&f.w, m->sent);
	wire_put_u64(&f.w, m->received);
	return frame_end(&f, NULL, 0);
}

bool helper_get_counted(struct str payload, struct helper_counts *ret)
{
	struct wire_in r = wire_in(payload);

	ret->allowed = wire_get_u64(&r);
	ret->blocked = wire_get_u64(&r);
	ret->sent = wire_get_u64(&r);
	ret->received = wire_get_u64(&r);
	return wire_ok(&r);
}

int helper_send_replaced(struct chan *c, const struct helper_policy *m)
{
	struct frame_out f = frame_begin(c, HELPER_REPLACED);

	wire_put_u32(&f.w, m->rules);
	wire_put_str(&f.w, m->sources);
	return frame_end(&f, NULL, 0);
}

bool helper_get_replaced(struct str payload, struct helper_policy *ret)
{
	struct wire_in r = wire_in(payload);

	ret->rules = wire_get_u32(&r);
	ret->sources = wire_get_str(&r, HELPER_MAX_SOURCES);
	return wire_ok(&r);
}

int helper_send_who(struct chan *c, uint32_t number, const struct net_client *client)
{
	struct frame_out f = frame_begin(c, HELPER_WHO);

	wire_put_u32(&f.w, number);
	net_put_client(&f.w, client);
	return frame_end(&f, NULL, 0);
}

bool helper_get_who(struct str payload, uint32_t *ret_number, struct net_client *ret)
{
	struct wire_in r = wire_in(payload);

	*ret_number = wire_get_u32(&r);
	net_get_client(&r, ret);
	return wire_ok(&r);
}

int helper_send_owner(struct chan *c, const struct helper_owner *m)
{
	struct frame_out f = frame_begin(c, HELPER_OWNER);

	wire_put_u32(&f.w, m->number);
	wire_put_u32(&f.w, m->pid);
	wire_put_str(&f.w, m->name);
	wire_put_str(&f.w, m->program);
	return frame_end(&f, NULL, 0);
}

bool helper_get_owner(struct str payload, struct helper_owner *ret)
{
	struct wire_in r = wire_in(payload);

	ret->number = wire_get_u32(&r);
	ret->pid = wire_get_u32(&r);
	ret->name = wire_get_str(&r, 64);
	ret->program = wire_get_str(&r, 1024);
	return wire_ok(&r);
}
