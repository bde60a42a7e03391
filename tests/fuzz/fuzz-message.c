/* fuzz-deps: base ipc files far */
/* SPDX-License-Identifier: Apache-2.0 */
/* Every message that has a table: the first byte says which, the rest is the payload. What is
 * accepted must be encoded to the same bytes. */
#include "far/test-messages.h"
#include "files/test-messages.h"
#include "ipc/test-messages.h"

enum { MAX_MESSAGE = 16 << 20, MAX_STRUCT = 32 * 1024 };

static const message_fn *const folders[] = {ipc_messages, files_messages, far_messages};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(const struct message *t, struct str payload)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_MESSAGE);
	struct wire_out w = wire_out(&b);
	static char m[MAX_STRUCT];

	if (t->size > sizeof(m))
		abort();
	if (!message_get(payload, t, m))
		return;
	message_put(&w, t, m);
	if (w.error || !str_eq(buf_str(&b), payload))
		abort();
	message_done(t, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned which = size ? data[0] : 0;

	for (size_t p = 0; size && p < ARRAY_SIZE(folders); p++)
		for (const message_fn *t = folders[p]; *t; t++)
			if (which-- == 0)
				same_again((*t)(), str_make(data + 1, size - 1));
	return 0;
}
