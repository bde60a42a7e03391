/* SPDX-License-Identifier: Apache-2.0 */
#include "files/test-messages.h"
#include "ipc/test-message.h"

const message_fn *const test_messages = files_messages;

void test_message_mend(const struct message *t, void *m)
{
	struct files_request *q = m;
	const struct files_entry *e = m;

	if (t == files_request_message())
		q->op = q->other.n ? FILES_OP_RENAME : FILES_OP_READ;
	if (t == files_entry_message()) /* a text of the test, in memory of its own */
		for (char *p = (char *)(uintptr_t)e->name.p; p < e->name.p + e->name.n; p++)
			*p = *p == '/' ? '-' : *p;
}
