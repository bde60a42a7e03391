/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/netconf.h"

MESSAGE_TABLE(netconf_secret, NETCONF_SECRET_FIELDS, NULL);
MESSAGE_TABLE(netconf_github_app, NETCONF_GITHUB_APP_FIELDS, NULL);
MESSAGE_TABLE(netconf_connect_to, NETCONF_CONNECT_TO_FIELDS, NULL);
MESSAGE_TABLE(netconf_record, NETCONF_RECORD_FIELDS, NULL);
MESSAGE_TABLE(netconf_counts, NETCONF_COUNTS_FIELDS, NULL);
MESSAGE_TABLE(netconf_replaced, NETCONF_REPLACED_FIELDS, NULL);
MESSAGE_TABLE(netconf_two, NETCONF_TWO_FIELDS, NULL);
MESSAGE_TABLE(netconf_failure, NETCONF_FAILURE_FIELDS, NULL);

const message_fn netconf_messages[] = {netconf_secret_message, netconf_github_app_message,
	netconf_connect_to_message, netconf_record_message, netconf_counts_message,
	netconf_replaced_message, netconf_two_message, netconf_failure_message, NULL};

int netconf_send_two(struct chan *c, enum netconf_frame type, struct str a, struct str b)
{
	const struct netconf_two m = {a, b};

	return message_send(c, (uint16_t)type, netconf_two_message(), &m, NULL, 0);
}

bool netconf_get_two(struct str payload, struct str *ret_a, struct str *ret_b)
{
	struct netconf_two m;
	bool ok = message_get(payload, netconf_two_message(), &m);

	*ret_a = m.a;
	*ret_b = m.b;
	return ok;
}

int netconf_send_refused(struct chan *c, const struct cloche_err *err)
{
	return message_send(c, NETCONF_REFUSED, netconf_failure_message(), err, NULL, 0);
}

int netconf_send_record(struct chan *c, const struct netconf_record *m, int fd)
{
	return message_send(c, NETCONF_RECORD, netconf_record_message(), m, &fd, 1);
}

int netconf_get_refused(struct str payload, struct cloche_err *err)
{
	struct netconf_failure m;

	if (!message_get(payload, netconf_failure_message(), &m))
		return err_set(err, E_PROTOCOL, "the broker's answer is malformed");
	if (err)
		*err = m.err;
	return -m.err.code;
}
