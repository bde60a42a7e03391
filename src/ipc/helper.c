/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/helper.h"

MESSAGE_TABLE(helper_listeners, HELPER_LISTENERS_FIELDS, NULL);
MESSAGE_TABLE(helper_failure, HELPER_FAILURE_FIELDS, NULL);
MESSAGE_TABLE(helper_counted, HELPER_COUNTED_FIELDS, NULL);
MESSAGE_TABLE(helper_replaced, HELPER_REPLACED_FIELDS, NULL);
MESSAGE_TABLE(helper_who, HELPER_WHO_FIELDS, NULL);
MESSAGE_TABLE(helper_owner, HELPER_OWNER_FIELDS, NULL);

const message_fn helper_messages[] = {helper_listeners_message, helper_failure_message,
	helper_counted_message, helper_replaced_message, helper_who_message, helper_owner_message,
	NULL};

int helper_send_listeners(
	struct chan *c, const struct helper_listeners *m, const int fds[HELPER_SOCKETS])
{
	int given[HELPER_SOCKETS];
	unsigned n = 0;

	for (unsigned i = 0; i < HELPER_SOCKETS; i++)
		if (m->present & 1U << i)
			given[n++] = fds[i];
	return message_send(c, HELPER_LISTENERS, helper_listeners_message(), m, given, n);
}

bool helper_get_listeners(
	struct chan_frame *f, struct helper_listeners *ret, int ret_fds[HELPER_SOCKETS])
{
	struct helper_listeners m;
	unsigned n = 0;

	if (!message_get(f->payload, helper_listeners_message(), &m) ||
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
	return message_send(c, HELPER_FAILED, helper_failure_message(), err, NULL, 0);
}

int helper_get_failed(struct str payload, struct cloche_err *err)
{
	struct helper_failure m;

	if (!message_get(payload, helper_failure_message(), &m))
		return err_set(err, E_PROTOCOL, "malformed report of a failure");
	if (err)
		*err = m.err;
	return -m.err.code;
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
