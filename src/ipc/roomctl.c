/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/roomctl.h"

MESSAGE_TABLE(roomctl_exec, ROOMCTL_EXEC_FIELDS, NULL);
MESSAGE_TABLE(roomctl_signal, ROOMCTL_SIGNAL_FIELDS, NULL);
MESSAGE_TABLE(roomctl_resize, ROOMCTL_RESIZE_FIELDS, NULL);
MESSAGE_TABLE(roomctl_started, ROOMCTL_STARTED_FIELDS, NULL);
MESSAGE_TABLE(roomctl_failed, ROOMCTL_FAILED_FIELDS, NULL);
MESSAGE_TABLE(roomctl_exited, ROOMCTL_EXITED_FIELDS, NULL);

const message_fn roomctl_messages[] = {roomctl_exec_message, roomctl_signal_message,
	roomctl_resize_message, roomctl_started_message, roomctl_failed_message,
	roomctl_exited_message, NULL};

int roomctl_send_exec(struct chan *c, const struct roomctl_exec *m, const int *fds, unsigned fds_n)
{
	return message_send(c, ROOM_EXEC, roomctl_exec_message(), m, fds, fds_n);
}

int roomctl_send_ready(struct chan *c)
{
	return chan_send(c, ROOM_READY, STR_NULL, NULL, 0);
}

int roomctl_send_started(struct chan *c, const struct roomctl_started *m, int master)
{
	return message_send(
		c, ROOM_STARTED, roomctl_started_message(), m, &master, master >= 0 ? 1 : 0);
}
