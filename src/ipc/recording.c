/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/recording.h"

MESSAGE_TABLE(recording_begin, RECORDING_BEGIN_FIELDS, NULL);
MESSAGE_TABLE(recording_tree, RECORDING_TREE_FIELDS, NULL);
MESSAGE_TABLE(recording_hide, RECORDING_HIDE_FIELDS, NULL);
MESSAGE_TABLE(recording_event, RECORDING_EVENT_FIELDS, NULL);
MESSAGE_TABLE(recording_ended, RECORDING_ENDED_FIELDS, NULL);
MESSAGE_TABLE(recording_done, RECORDING_DONE_FIELDS, NULL);
MESSAGE_TABLE(recording_trouble, RECORDING_TROUBLE_FIELDS, NULL);

int recording_send_event(struct chan *c, enum recording_frame type, const struct recording_event *m)
{
	return message_send(c, (uint16_t)type, recording_event_message(), m, NULL, 0);
}
