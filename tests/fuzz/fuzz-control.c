/* fuzz-deps: base ipc provider */
/* SPDX-License-Identifier: Apache-2.0 */
/* Every message of the control protocol, of init's protocol, and a room's specification: the first
 * byte says which, the rest is the payload. What is accepted is encoded again and must decode to
 * the same bytes. */
#include "ipc/control.h"
#include "ipc/helper.h"
#include "ipc/netconf.h"
#include "ipc/roomctl.h"
#include "provider/spec_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again_exec(const struct exec_spec *s)
{
	_cleanup_(buf_donep) struct buf first = BUF_INIT(16 << 20), second = BUF_INIT(16 << 20);
	struct wire_out w1 = wire_out(&first), w2 = wire_out(&second);
	struct exec_spec again;
	struct wire_in r;

	message_put(&w1, exec_spec_message(), s);
	r = wire_in(buf_str(&first));
	if (w1.error || !message_take(&r, exec_spec_message(), &again) || !wire_ok(&r))
		abort();
	message_put(&w2, exec_spec_message(), &again);
	if (w2.error || !str_eq(buf_str(&first), buf_str(&second)))
		abort();
	exec_spec_done(&again);
}

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

static void try_execs(uint8_t which, struct str payload)
{
	struct ctl_exec exec;
	struct roomctl_exec room_exec;

	if (which == CTL_EXEC) {
		if (ctl_get_exec(payload, &exec))
			same_again_exec(&exec.spec);
		ctl_exec_done(&exec);
	} else {
		if (roomctl_get_exec(payload, &room_exec))
			same_again_exec(&room_exec.spec);
		exec_spec_done(&room_exec.spec);
	}
}

static void try_small(struct str payload)
{
	union {
		struct ctl_signal signal;
		struct ctl_resize resize;
		struct ctl_started started;
		struct ctl_exec_failed failed;
		struct ctl_exec_exited exited;
		struct ctl_ended ended;
		struct ctl_exec_started running;
		struct ctl_stats stats;
		struct ctl_forward forward;
		struct roomctl_signal room_signal;
		struct roomctl_failed room_failed;
		struct roomctl_exited room_exited;
		struct helper_counts counts;
		struct helper_policy policy;
		struct netconf_replaced replaced;
	} u;
	struct cloche_err err = CLOCHE_ERR_INIT;
	uint16_t port;
	uint32_t a, b;
	uint64_t grace;
	struct str text;

	(void)ctl_get_attach(payload, &a);
	(void)ctl_get_signal(payload, &u.signal);
	(void)ctl_get_resize(payload, &u.resize);
	(void)ctl_get_stop(payload, &grace);
	(void)ctl_get_warning(payload, &text);
	(void)ctl_get_started(payload, &u.started);
	(void)ctl_get_error(payload, &err);
	(void)ctl_get_exec_started(payload, &u.running);
	(void)ctl_get_join(payload, &a, &b);
	(void)ctl_get_stats_now(payload, &u.stats);
	(void)ctl_get_forward(payload, &u.forward);
	(void)ctl_get_refused(payload, &port, &err);
	(void)ctl_get_exec_failed(payload, &u.failed);
	(void)ctl_get_exec_exited(payload, &u.exited);
	(void)ctl_get_ended(payload, &u.ended);
	(void)roomctl_get_signal(payload, &u.room_signal);
	(void)roomctl_get_failed(payload, &u.room_failed);
	(void)roomctl_get_exited(payload, &u.room_exited);
	(void)helper_get_counted(payload, &u.counts);
	(void)helper_get_failed(payload, &err);
	(void)helper_get_replaced(payload, &u.policy);
	(void)netconf_get_replaced(payload, &u.replaced);
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
	case CTL_EXEC:
	case ROOM_EXEC + 16:
		try_execs(data[0], payload);
		break;
	case 'r':
		try_room(payload);
		break;
	default:
		try_small(payload);
		break;
	}
	return 0;
}
