/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/control.h"
#include "ipc/helper.h"
#include "ipc/netconf.h"
#include "ipc/recording.h"
#include "ipc/roomctl.h"
#include "ipc/test-message.h"

const message_fn *const test_protocols[] = {roomctl_messages, helper_messages, ctl_messages,
	netconf_messages, net_messages, recording_messages, NULL};

void test_message_mend(const struct message *t, void *m)
{
}
