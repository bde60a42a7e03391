/* fuzz-deps: base ipc provider */
/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a sandbox with the room's specification in it, and such a specification: the first
 * byte says which, the rest is the payload. What is accepted is encoded again and must decode to
 * the same bytes. The other messages: fuzz-message.c. */
#include "ipc/control.h"
#include "provider/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again_room(const struct room_spec *s)
{
	_cleanup_(buf_donep) struct buf first = BUF_INIT(16 << 20), second = BUF_INIT(16 << 20);
	struct wire_out w1 = wire_out(&first), w2 = wire_out(&second);
	struct room_spec again;
	struct wire_in r;

	room_spec_put(&w1, s);
	r = wire_in(buf_str(&first));
	if (w1.error || !room_spec_get(&r, &again) || !wire_ok(&r))
		abort();
	room_spec_put(&w2, &again);
	if (w2.error || !str_eq(buf_str(&first), buf_str(&second)))
		abort();
	room_spec_done(&again);
}

static void try_room(struct str payload)
{
	struct wire_in r = wire_in(payload);
	struct room_spec s;

	if (room_spec_get(&r, &s)) {
		same_again_room(&s);
		(void)!room_spec_check(&s, NULL);
	}
	room_spec_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str payload;
	struct ctl_start start;

	if (size == 0)
		return 0;
	payload = str_make(data + 1, size - 1);
	switch (data[0]) {
	case CTL_START:
		if (ctl_get_start(payload, &start))
			try_room(start.room);
		ctl_start_done(&start);
		break;
	case 'r':
		try_room(payload);
		break;
	}
	return 0;
}
