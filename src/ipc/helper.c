/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/helper.h"

MESSAGE_TABLE(helper_listeners, HELPER_LISTENERS_FIELDS, NULL);
MESSAGE_TABLE(helper_counted, HELPER_COUNTED_FIELDS, NULL);
MESSAGE_TABLE(helper_replaced, HELPER_REPLACED_FIELDS, NULL);
MESSAGE_TABLE(helper_who, HELPER_WHO_FIELDS, NULL);
MESSAGE_TABLE(helper_owner, HELPER_OWNER_FIELDS, NULL);
MESSAGE_TABLE(helper_login_open, HELPER_LOGIN_OPEN_FIELDS, NULL);
MESSAGE_TABLE(helper_login, HELPER_LOGIN_FIELDS, NULL);
MESSAGE_TABLE(helper_login_end, HELPER_LOGIN_END_FIELDS, NULL);

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

bool helper_get_listeners(struct chan_frame *f, int ret_fds[HELPER_SOCKETS])
{
	struct helper_listeners m;
	unsigned n = 0;

	if (!message_get(f->payload, helper_listeners_message(), &m) ||
		f->fds_n != (unsigned)__builtin_popcount(m.present))
		return false;
	for (unsigned i = 0; i < HELPER_SOCKETS; i++)
		ret_fds[i] = m.present & 1U << i ? TAKE_FD(f->fds[n++]) : -1;
	return true;
}
