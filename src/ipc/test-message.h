/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What test-message.c is told by the folder whose messages it tests. */

#include "ipc/message.h"

/* Their tables, up to NULL. */
extern const message_fn *const test_messages;
/* Each field of m has its smallest or its largest value: changes those that the message's own check
 * refuses together. */
void test_message_mend(const struct message *t, void *m);
