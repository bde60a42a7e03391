/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker of a running sandbox has one channel, to its supervisor. The
 * supervisor passes it one end of a new socket, over which we send the policy as at the start: as
 * text, which only the broker reads. The broker takes all of it or nothing. */
#include "api/instance/instance.h"
#include "api/instance/made.h"
#include "api/start/network.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/socket.h>

enum { ANSWER_MS = 20 * 1000 };

static int take_answer(
	const struct chan_frame *f, cloche_policy_change *ret, struct cloche_err *err)
{
	struct netconf_replaced m;

	if (f->type == NETCONF_REFUSED)
		return netconf_get_refused(f->payload, err);
	if (f->type != NETCONF_REPLACED || !netconf_get_replaced(f->payload, &m))
		return err_set(err, E_PROTOCOL, "the broker sent an invalid message");
	if (ret)
		*ret = (cloche_policy_change){.rules = m.rules, .closed = m.closed};
	return 0;
}

static int exchange(struct chan *c, const cloche_allowlist *list, bool keep,
	cloche_policy_change *ret, struct cloche_err *err)
{
	struct chan_frame f;
	int r = keep ? chan_send(c, NETCONF_KEEP, STR_NULL, NULL, 0) : 0;

	if (r == 0)
		r = network_send_allowlist(c, list);
	if (r == 0)
		r = chan_send(c, NETCONF_DONE, STR_NULL, NULL, 0);
	if (r < 0)
		return err_sys(err, -r, "send the policy");
	r = chan_recv_wait(c, &f, ANSWER_MS);
	if (r == -ETIMEDOUT)
		return err_set(err, E_BUSY, "the network's broker does not answer");
	if (r < 0)
		return err_set(err, E_NETWORK, "the network's broker has gone");
	r = take_answer(&f, ret, err);
	chan_frame_done(&f);
	return r;
}

int instance_policy_channel(
	const cloche_instance *instance, struct chan *ret, struct cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	int pair[2], r = instance_attach(instance, &client, err);

	if (r < 0)
		return r;
	r = fd_socketpair(SOCK_STREAM, pair);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	r = client_policy(client, pair[1], err);
	fd_close(pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return r;
	}
	r = chan_init(ret, pair[0], NETCONF_MAX_PAYLOAD, NETWORK_OUT_MAX);
	if (r == 0)
		return 0;
	chan_done(ret);
	return err_sys(err, -r, "set up a channel");
}

static int set_policy(const cloche_instance *instance, const cloche_allowlist *list, bool keep,
	cloche_policy_change *ret, struct cloche_err *err)
{
	struct chan c;
	int r = instance_policy_channel(instance, &c, err);

	if (r < 0)
		return r;
	r = exchange(&c, list, keep, ret, err);
	chan_done(&c);
	return r;
}

static int change_policy(const cloche_instance *instance, const cloche_allowlist *list, bool keep,
	cloche_policy_change *ret, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT, *e = err ? err : &own;
	int r = set_policy(instance, list, keep, ret, e);

	if (r < 0)
		return err_wrap(e, r, "policy of %s", instance->id);
	/* This is for forks, which a sandbox of an older version has not, and one that has ended
	 * meanwhile neither. */
	r = made_set_allowlist(instance, list, keep, e);
	if (r == -E_UNSUPPORTED || r == -E_NOT_FOUND) {
		err_clear(e);
		return 0;
	}
	return r < 0 ? err_wrap(e, r, "the policy of %s holds, but forks have the one before",
			       instance->id)
		     : 0;
}

int cloche_instance_set_allowlist(const cloche_instance *instance, const cloche_allowlist *list,
	cloche_policy_change *ret, cloche_err *err)
{
	return change_policy(instance, list, false, ret, err);
}

int cloche_instance_add_allowlist(const cloche_instance *instance, const cloche_allowlist *list,
	cloche_policy_change *ret, cloche_err *err)
{
	return change_policy(instance, list, true, ret, err);
}
