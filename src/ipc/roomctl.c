/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/roomctl.h"

MESSAGE_TABLE(roomctl_exec, ROOMCTL_EXEC_FIELDS, NULL);
MESSAGE_TABLE(roomctl_signal, ROOMCTL_SIGNAL_FIELDS, NULL);
MESSAGE_TABLE(roomctl_resize, ROOMCTL_RESIZE_FIELDS, NULL);
MESSAGE_TABLE(roomctl_started, ROOMCTL_STARTED_FIELDS, NULL);
MESSAGE_TABLE(roomctl_failed, ROOMCTL_FAILED_FIELDS, NULL);
MESSAGE_TABLE(roomctl_exited, ROOMCTL_EXITED_FIELDS, NULL);
MESSAGE_TABLE(roomctl_stopped, ROOMCTL_STOPPED_FIELDS, NULL);

int roomctl_send_exec(struct chan *c, const struct roomctl_exec *m, const int *fds, unsigned fds_n)
{
	return message_send(c, ROOM_EXEC, roomctl_exec_message(), m, fds, fds_n);
}
