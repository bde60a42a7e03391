/* SPDX-License-Identifier: Apache-2.0 */
#include "far/protocol.h"

MESSAGE_TABLE(far_room_spec, FAR_ROOM_SPEC_FIELDS, NULL);
MESSAGE_TABLE(far_exec, FAR_EXEC_FIELDS, NULL);
MESSAGE_TABLE(far_kill, FAR_KILL_FIELDS, NULL);
MESSAGE_TABLE(far_kill_tree, FAR_KILL_TREE_FIELDS, NULL);
MESSAGE_TABLE(far_files, FAR_FILES_FIELDS, NULL);
MESSAGE_TABLE(far_made, FAR_MADE_FIELDS, NULL);
MESSAGE_TABLE(far_connection, FAR_CONNECTION_FIELDS, NULL);
MESSAGE_TABLE(far_usage, FAR_USAGE_FIELDS, NULL);
MESSAGE_TABLE(far_over, FAR_OVER_FIELDS, NULL);
MESSAGE_TABLE(farctl_begin, FARCTL_BEGIN_FIELDS, NULL);
MESSAGE_TABLE(farctl_files, FARCTL_FILES_FIELDS, NULL);
MESSAGE_TABLE(farctl_says, FARCTL_SAYS_FIELDS, NULL);
MESSAGE_TABLE(keeper_carry, KEEPER_CARRY_FIELDS, NULL);
MESSAGE_TABLE(far_check, FAR_CHECK_FIELDS, NULL);
MESSAGE_TABLE(far_probed, FAR_PROBED_FIELDS, NULL);

int far_send(struct link *l, enum far_message type, const struct message *t, const void *m)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(LINK_MAX_PAYLOAD);
	struct wire_out w = wire_out(&b);

	message_put(&w, t, m);
	return w.error ? w.error : link_send(l, type, buf_str(&b));
}

int far_send_error(struct link *l, const struct cloche_err *why)
{
	return far_send(l, FAR_FAILED, cloche_err_message(), why);
}
