/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/control.h"
#include "base/strv.h"
#include "ipc/frame.h"

#include <string.h>

enum { MAX_NAME = 128, MAX_LABEL = 512, MAX_SIGNAL = 64, MAX_ADDRESS = 64 };

void ctl_start_done(struct ctl_start *m)
{
	free(m->id);
	free(m->name);
	free(m->provider);
	free(m->cwd);
	free(m->config);
	m->id = m->name = m->provider = m->cwd = m->config = NULL;
	m->labels = strv_free(m->labels);
	m->env = strv_free(m->env);
}

int ctl_send_start(struct chan *c, const struct ctl_start *m, int config_fd)
{
	struct frame_out f = frame_begin(c, CTL_START);

	wire_put_u32(&f.w, m->version);
	wire_put_u8(&f.w, m->one_shot);
	wire_put_u8(&f.w, m->detached);
	wire_put_u8(&f.w, m->kept);
	wire_put_u8(&f.w, m->gateway);
	wire_put_z(&f.w, m->id);
	wire_put_z(&f.w, m->name);
	wire_put_z(&f.w, m->provider);
	wire_put_strv(&f.w, m->labels);
	wire_put_u64(&f.w, m->timeout_usec);
	wire_put_u64(&f.w, m->grace_usec);
	wire_put_strv(&f.w, m->env);
	wire_put_z(&f.w, m->cwd);
	wire_put_u64(&f.w, m->exec_timeout_usec);
	wire_put_u64(&f.w, m->log_bytes);
	wire_put_z(&f.w, m->config);
	wire_put_str(&f.w, m->room);
	return frame_end(&f, &config_fd, m->gateway ? 1 : 0);
}

bool ctl_get_start(struct str payload, struct ctl_start *ret)
{
	struct wire_in r = wire_in(payload);

	*ret = (struct ctl_start){.version = wire_get_u32(&r)};
	ret->one_shot = wire_get_bool(&r);
	ret->detached = wire_get_bool(&r);
	ret->kept = wire_get_bool(&r);
	ret->gateway = wire_get_bool(&r);
	ret->id = wire_get_z(&r, CTL_ID_MAX);
	ret->name = wire_get_z(&r, MAX_NAME);
	ret->provider = wire_get_z(&r, MAX_NAME);
	ret->labels = wire_get_strv(&r, CTL_MAX_LABELS, MAX_LABEL);
	ret->timeout_usec = wire_get_u64(&r);
	ret->grace_usec = wire_get_u64(&r);
	ret->env = wire_get_strv(&r, EXEC_MAX_ARGS, EXEC_MAX_ARG);
	ret->cwd = wire_get_z(&r, EXEC_MAX_PATH);
	ret->exec_timeout_usec = wire_get_u64(&r);
	ret->log_bytes = wire_get_u64(&r);
	ret->config = wire_get_z(&r, CTL_MAX_CONFIG);
	ret->room = wire_get_str(&r, CTL_MAX_ROOM);
	return wire_ok(&r);
}

int ctl_send_attach(struct chan *c)
{
	struct frame_out f = frame_begin(c, CTL_ATTACH);

	wire_put_u32(&f.w, CTL_VERSION);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_attach(struct str payload, uint32_t *ret_version)
{
	struct wire_in r = wire_in(payload);

	*ret_version = wire_get_u32(&r);
	return wire_ok(&r);
}

unsigned ctl_exec_fds(const struct ctl_exec *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(m->stdio); i++)
		n += m->stdio[i] == CTL_STDIO_FD;
	return n;
}

int ctl_send_exec(struct chan *c, const struct ctl_exec *m, const int fds[3])
{
	struct frame_out f = frame_begin(c, CTL_EXEC);
	int given[3];
	unsigned n = 0;

	wire_put_u32(&f.w, m->exec);
	wire_put_u8(&f.w, m->flags);
	for (unsigned i = 0; i < ARRAY_SIZE(m->stdio); i++) {
		wire_put_u8(&f.w, (uint8_t)m->stdio[i]);
		if (m->stdio[i] == CTL_STDIO_FD)
			given[n++] = fds[i];
	}
	message_put(&f.w, exec_spec_message(), &m->spec);
	return frame_end(&f, given, n);
}

bool ctl_get_exec(struct str payload, struct ctl_exec *ret)
{
	struct wire_in r = wire_in(payload);

	*ret = (struct ctl_exec){.exec = wire_get_u32(&r), .flags = wire_get_u8(&r)};
	for (unsigned i = 0; i < ARRAY_SIZE(ret->stdio); i++)
		ret->stdio[i] = wire_get_enum(&r, CTL_STDIO_END_);
	return message_take(&r, exec_spec_message(), &ret->spec) && wire_ok(&r) && ret->exec != 0 &&
	       !(ret->flags & ~CTL_EXEC_FLAGS_);
}

int ctl_send_signal(struct chan *c, const struct ctl_signal *m)
{
	struct frame_out f = frame_begin(c, CTL_SIGNAL);

	wire_put_u32(&f.w, m->exec);
	wire_put_u8(&f.w, m->signo);
	wire_put_u8(&f.w, (uint8_t)m->scope);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_signal(struct str payload, struct ctl_signal *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->signo = wire_get_u8(&r);
	ret->scope = wire_get_enum(&r, CTL_SCOPE_END_);
	return wire_ok(&r) && ret->signo >= 1 && ret->signo <= MAX_SIGNAL;
}

int ctl_send_resize(struct chan *c, const struct ctl_resize *m)
{
	struct frame_out f = frame_begin(c, CTL_RESIZE);

	wire_put_u32(&f.w, m->exec);
	wire_put_u16(&f.w, m->rows);
	wire_put_u16(&f.w, m->cols);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_resize(struct str payload, struct ctl_resize *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->rows = wire_get_u16(&r);
	ret->cols = wire_get_u16(&r);
	return wire_ok(&r) && ret->rows <= EXEC_MAX_DIMENSION && ret->cols <= EXEC_MAX_DIMENSION;
}

int ctl_send_stop(struct chan *c, uint64_t grace_usec)
{
	struct frame_out f = frame_begin(c, CTL_STOP);

	wire_put_u64(&f.w, grace_usec);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_stop(struct str payload, uint64_t *ret_grace_usec)
{
	struct wire_in r = wire_in(payload);

	*ret_grace_usec = wire_get_u64(&r);
	return wire_ok(&r);
}

int ctl_send_warning(struct chan *c, struct str text)
{
	struct frame_out f = frame_begin(c, CTL_WARNING);

	wire_put_str(&f.w, str_prefix(text, CTL_MAX_TEXT));
	return frame_end(&f, NULL, 0);
}

bool ctl_get_warning(struct str payload, struct str *ret)
{
	struct wire_in r = wire_in(payload);

	*ret = wire_get_str(&r, CTL_MAX_TEXT);
	return wire_ok(&r);
}

int ctl_send_started(struct chan *c, const struct ctl_started *m)
{
	struct frame_out f = frame_begin(c, CTL_STARTED);

	wire_put_str(&f.w, m->id);
	wire_put_str(&f.w, m->provider);
	wire_put_u32(&f.w, m->pid);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_started(struct str payload, struct ctl_started *ret)
{
	struct wire_in r = wire_in(payload);

	ret->id = wire_get_str(&r, CTL_ID_MAX);
	ret->provider = wire_get_str(&r, CTL_ID_MAX);
	ret->pid = wire_get_u32(&r);
	return wire_ok(&r);
}

int ctl_send_error(struct chan *c, const struct cloche_err *err)
{
	struct frame_out f = frame_begin(c, CTL_ERROR);

	wire_put_err(&f.w, err);
	return frame_end(&f, NULL, 0);
}

int ctl_get_error(struct str payload, struct cloche_err *err)
{
	struct wire_in r = wire_in(payload);
	struct cloche_err e = CLOCHE_ERR_INIT;

	wire_get_err(&r, &e);
	if (!wire_ok(&r))
		return err_set(err, E_PROTOCOL, "malformed error from the supervisor");
	if (err)
		*err = e;
	return -e.code;
}

int ctl_send_exec_started(struct chan *c, const struct ctl_exec_started *m, int fd)
{
	struct frame_out f = frame_begin(c, CTL_EXEC_STARTED);

	wire_put_u32(&f.w, m->exec);
	wire_put_u32(&f.w, m->pid);
	wire_put_u32(&f.w, m->number);
	wire_put_u8(&f.w, m->tty);
	return frame_end(&f, &fd, fd >= 0 ? 1 : 0);
}

bool ctl_get_exec_started(struct str payload, struct ctl_exec_started *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->pid = wire_get_u32(&r);
	ret->number = wire_get_u32(&r);
	ret->tty = wire_get_bool(&r);
	return wire_ok(&r);
}

int ctl_send_exec_failed(struct chan *c, const struct ctl_exec_failed *m)
{
	struct frame_out f = frame_begin(c, CTL_EXEC_FAILED);

	wire_put_u32(&f.w, m->exec);
	wire_put_u32(&f.w, m->code);
	wire_put_u32(&f.w, m->sys_errno);
	wire_put_str(&f.w, str_prefix(m->message, CTL_MAX_TEXT));
	return frame_end(&f, NULL, 0);
}

bool ctl_get_exec_failed(struct str payload, struct ctl_exec_failed *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->code = wire_get_u32(&r);
	ret->sys_errno = wire_get_u32(&r);
	ret->message = wire_get_str(&r, CTL_MAX_TEXT);
	return wire_ok(&r) && err_is_code(ret->code);
}

int ctl_send_exec_exited(struct chan *c, const struct ctl_exec_exited *m)
{
	struct frame_out f = frame_begin(c, CTL_EXEC_EXITED);

	wire_put_u32(&f.w, m->exec);
	wire_put_u8(&f.w, m->signaled);
	wire_put_u8(&f.w, m->status);
	wire_put_u8(&f.w, m->timed_out);
	wire_put_u8(&f.w, m->oom_killed);
	wire_put_u8(&f.w, m->pids_refused);
	wire_put_u8(&f.w, m->stopped);
	wire_put_u64(&f.w, m->duration_usec);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_exec_exited(struct str payload, struct ctl_exec_exited *ret)
{
	struct wire_in r = wire_in(payload);

	ret->exec = wire_get_u32(&r);
	ret->signaled = wire_get_bool(&r);
	ret->status = wire_get_u8(&r);
	ret->timed_out = wire_get_bool(&r);
	ret->oom_killed = wire_get_bool(&r);
	ret->pids_refused = wire_get_bool(&r);
	ret->stopped = wire_get_bool(&r);
	ret->duration_usec = wire_get_u64(&r);
	return wire_ok(&r);
}

int ctl_send_ended(struct chan *c, const struct ctl_ended *m)
{
	struct frame_out f = frame_begin(c, CTL_ENDED);

	wire_put_u8(&f.w, (uint8_t)m->reason);
	wire_put_u64(&f.w, m->usage.cpu_usec);
	wire_put_u64(&f.w, m->usage.memory_peak_bytes);
	wire_put_u64(&f.w, m->usage.pids_peak);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_ended(struct str payload, struct ctl_ended *ret)
{
	struct wire_in r = wire_in(payload);

	ret->reason = wire_get_enum(&r, CTL_REASON_END_);
	ret->usage.cpu_usec = wire_get_u64(&r);
	ret->usage.memory_peak_bytes = wire_get_u64(&r);
	ret->usage.pids_peak = wire_get_u64(&r);
	return wire_ok(&r);
}

int ctl_send_join(struct chan *c, uint32_t exec, uint32_t number)
{
	struct frame_out f = frame_begin(c, CTL_JOIN);

	wire_put_u32(&f.w, exec);
	wire_put_u32(&f.w, number);
	return frame_end(&f, NULL, 0);
}

bool ctl_get_join(struct str payload, uint32_t *ret_exec, uint32_t *ret_number)
{
	struct wire_in r = wire_in(payload);

	*ret_exec = wire_get_u32(&r);
	*ret_number = wire_get_u32(&r);
	return wire_ok(&r) && *ret_exec != 0;
}

int ctl_send_stats(struct chan *c)
{
	return chan_send(c, CTL_STATS, STR_NULL, NULL, 0);
}

/* The fields in the order of the message. */
#define STATS_FIELDS(X)                                                                            \
	X(now_usec)                                                                                \
	X(uptime_usec)                                                                             \
	X(cpu_usec)                                                                                \
	X(memory_bytes)                                                                            \
	X(memory_peak_bytes)                                                                       \
	X(memory_limit)                                                                            \
	X(pids)                                                                                    \
	X(pids_peak)                                                                               \
	X(pids_limit)                                                                              \
	X(io_read_bytes)                                                                           \
	X(io_write_bytes)                                                                          \
	X(execs_running)                                                                           \
	X(execs_total)                                                                             \
	X(net_allowed)                                                                             \
	X(net_blocked)                                                                             \
	X(net_sent)                                                                                \
	X(net_received)

int ctl_send_stats_now(struct chan *c, const struct ctl_stats *m)
{
	struct frame_out f = frame_begin(c, CTL_STATS_NOW);

#define PUT(field) wire_put_u64(&f.w, m->field);
	STATS_FIELDS(PUT)
#undef PUT
	return frame_end(&f, NULL, 0);
}

bool ctl_get_stats_now(struct str payload, struct ctl_stats *ret)
{
	struct wire_in r = wire_in(payload);

#define GET(field) ret->field = wire_get_u64(&r);
	STATS_FIELDS(GET)
#undef GET
	return wire_ok(&r);
}

int ctl_send_forward(struct chan *c, const struct ctl_forward *m, int listener)
{
	struct frame_out f = frame_begin(c, CTL_FORWARD);

	wire_put_u16(&f.w, m->guest_port);
	wire_put_u16(&f.w, m->host_port);
	wire_put_str(&f.w, m->host_address);
	return frame_end(&f, &listener, 1);
}

bool ctl_get_forward(struct str payload, struct ctl_forward *ret)
{
	struct wire_in r = wire_in(payload);

	ret->guest_port = wire_get_u16(&r);
	ret->host_port = wire_get_u16(&r);
	ret->host_address = wire_get_str(&r, MAX_ADDRESS);
	return wire_ok(&r) && ret->guest_port != 0;
}

int ctl_send_forwarded(struct chan *c)
{
	return chan_send(c, CTL_FORWARDED, STR_NULL, NULL, 0);
}

int ctl_send_layers(struct chan *c)
{
	return chan_send(c, CTL_LAYERS, STR_NULL, NULL, 0);
}

int ctl_send_layers_are(struct chan *c, int upper, int lower)
{
	const int fds[2] = {upper, lower};

	return chan_send(c, CTL_LAYERS_ARE, STR_NULL, fds, 2);
}

int ctl_send_policy(struct chan *c, int socket)
{
	return chan_send(c, CTL_POLICY, STR_NULL, &socket, 1);
}

int ctl_send_policy_passed(struct chan *c)
{
	return chan_send(c, CTL_POLICY_PASSED, STR_NULL, NULL, 0);
}

int ctl_send_refused(struct chan *c, uint16_t request, const struct cloche_err *err)
{
	struct frame_out f = frame_begin(c, CTL_REFUSED);

	wire_put_u16(&f.w, request);
	wire_put_err(&f.w, err);
	return frame_end(&f, NULL, 0);
}

int ctl_get_refused(struct str payload, uint16_t *ret_request, struct cloche_err *err)
{
	struct wire_in r = wire_in(payload);
	struct cloche_err e = CLOCHE_ERR_INIT;

	*ret_request = wire_get_u16(&r);
	wire_get_err(&r, &e);
	if (!wire_ok(&r) || e.code <= 0)
		return err_set(err, E_PROTOCOL, "malformed refusal from the supervisor");
	if (err)
		*err = e;
	return -e.code;
}
