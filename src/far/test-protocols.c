/* SPDX-License-Identifier: Apache-2.0 */
#include "far/test-messages.h"
#include "ipc/test-message.h"

const message_fn *const test_messages = far_messages;

void test_message_mend(const struct message *t, void *m)
{
}
