/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/test-message.h"
#include "ipc/test-messages.h"

const message_fn *const test_messages = ipc_messages;

void test_message_mend(const struct message *t, void *m)
{
}
