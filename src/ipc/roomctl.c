/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/roomctl.h"
#include "ipc/frame.h"

enum { MAX_FDS_MASK = 7, MAX_SIGNAL = 64, MAX_SCOPE = 3, MAX_ERRNO = 4095, MAX_STATUS = 0xffff };

int roomctl_send_exec(struct chan *c, const struct roomctl_exec *m, const int *fds, unsigned fds_n)
{
	struct frame_out f = frame_begin(c, ROOM_EXEC);

	wire_put_u32(&f.w, m->exec);
	wire_put_u8(&f.w, m->fds_mask);
	wire_put_u8(&f.w, m->last);
	exec_spec_put(&f.w, &m->spec);
	return frame_end(&f, fds, fds_n);
}

bool roomctl_get_exec(struct str payload, struct roomctl_exec *ret)
{
	struct wire_in r = wire_in(payload);

	*ret = (struct roomctl_exec){.exec = wire_get_u32(&r)};
	ret->fds_mask = wire_get_u8(&r);
	ret->last = wire_get_bool(&r);
	return exec_spec_get(&r, &ret->spec) && wire_ok(&r) && ret->fds_mask <= MAX_FDS_MASK;
}

int roomctl_send_signal(struct chan *c, const struct roomctl_signal *m)
{
	struct frame_out f = frame_begin(c, ROOM_SIGNAL);

	wire_put_u32(&f.w, m->exec);
	wire_put_u8(&f.w, m->signo);
	wire_put_u8(&f.w, m->scope);
	return frame_end(&f, NULL, 0);
}

bool roomctl_get_signal(struct str payload, struct roomctl_signal *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->signo = wire_get_u8(&r);
	ret->scope = wire_get_u8(&r);
	return wire_ok(&r) && ret->signo >= 1 && ret->signo <= MAX_SIGNAL &&
	       ret->scope <= MAX_SCOPE;
}

int roomctl_send_resize(struct chan *c, uint32_t exec, uint16_t rows, uint16_t cols)
{
	struct frame_out f = frame_begin(c, ROOM_RESIZE);

	wire_put_u32(&f.w, exec);
	wire_put_u16(&f.w, rows);
	wire_put_u16(&f.w, cols);
	return frame_end(&f, NULL, 0);
}

bool roomctl_get_resize(
	struct str payload, uint32_t *ret_exec, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct wire_in r = wire_in(payload);

	*ret_exec = wire_get_u32(&r);
	*ret_rows = wire_get_u16(&r);
	*ret_cols = wire_get_u16(&r);
	return wire_ok(&r);
}

int roomctl_send_ready(struct chan *c)
{
	return chan_send(c, ROOM_READY, STR_NULL, NULL, 0);
}

int roomctl_send_started(struct chan *c, uint32_t exec, uint32_t pid, int master)
{
	struct frame_out f = frame_begin(c, ROOM_STARTED);

	wire_put_u32(&f.w, exec);
	wire_put_u32(&f.w, pid);
	return frame_end(&f, &master, master >= 0 ? 1 : 0);
}

bool roomctl_get_started(struct str payload, uint32_t *ret_exec, uint32_t *ret_pid)
{
	struct wire_in r = wire_in(payload);

	*ret_exec = wire_get_u32(&r);
	*ret_pid = wire_get_u32(&r);
	return wire_ok(&r);
}

int roomctl_send_failed(struct chan *c, const struct roomctl_failed *m)
{
	struct frame_out f = frame_begin(c, ROOM_FAILED);

	wire_put_u32(&f.w, m->exec);
	wire_put_u8(&f.w, (uint8_t)m->stage);
	wire_put_u32(&f.w, m->sys_errno);
	return frame_end(&f, NULL, 0);
}

bool roomctl_get_failed(struct str payload, struct roomctl_failed *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->stage = wire_get_enum(&r, ROOM_STAGE_END_);
	ret->sys_errno = wire_get_u32(&r);
	return wire_ok(&r) && ret->sys_errno <= MAX_ERRNO;
}

int roomctl_send_exited(struct chan *c, const struct roomctl_exited *m)
{
	struct frame_out f = frame_begin(c, ROOM_EXITED);

	wire_put_u32(&f.w, m->exec);
	wire_put_u32(&f.w, m->status);
	return frame_end(&f, NULL, 0);
}

bool roomctl_get_exited(struct str payload, struct roomctl_exited *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->status = wire_get_u32(&r);
	return wire_ok(&r) && ret->status <= MAX_STATUS;
}
