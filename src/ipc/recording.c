/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/recording.h"

MESSAGE_TABLE(recording_begin, RECORDING_BEGIN_FIELDS, NULL);
MESSAGE_TABLE(recording_tree, RECORDING_TREE_FIELDS, NULL);
MESSAGE_TABLE(recording_event, RECORDING_EVENT_FIELDS, NULL);
MESSAGE_TABLE(recording_ended, RECORDING_ENDED_FIELDS, NULL);
MESSAGE_TABLE(recording_done, RECORDING_DONE_FIELDS, NULL);
MESSAGE_TABLE(recording_trouble, RECORDING_TROUBLE_FIELDS, NULL);

const message_fn recording_messages[] = {recording_begin_message, recording_tree_message,
	recording_event_message, recording_ended_message, recording_done_message,
	recording_trouble_message, NULL};

int recording_send_tree(struct chan *c, const struct recording_tree *m, int fd)
{
	return message_send(c, RECORDING_TREE, recording_tree_message(), m, &fd, 1);
}

int recording_send_look(struct chan *c)
{
	return chan_send(c, RECORDING_LOOK, STR_NULL, NULL, 0);
}

int recording_send_event(struct chan *c, enum recording_frame type, const struct recording_event *m)
{
	return message_send(c, (uint16_t)type, recording_event_message(), m, NULL, 0);
}

bool recording_get_event(struct str payload, struct recording_event *ret)
{
	return message_get(payload, recording_event_message(), ret);
}

int recording_send_ended(struct chan *c, const struct recording_ended *m, int dir)
{
	return message_send(c, RECORDING_ENDED, recording_ended_message(), m, &dir, dir >= 0);
}

int recording_send_ready(struct chan *c)
{
	return chan_send(c, RECORDING_READY, STR_NULL, NULL, 0);
}
