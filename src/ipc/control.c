/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/control.h"

MESSAGE_TABLE(ctl_start, CTL_START_FIELDS, NULL);
MESSAGE_TABLE(ctl_attach, CTL_ATTACH_FIELDS, NULL);
MESSAGE_TABLE(ctl_exec, CTL_EXEC_FIELDS, NULL);
MESSAGE_TABLE(ctl_signal, CTL_SIGNAL_FIELDS, NULL);
MESSAGE_TABLE(ctl_resize, CTL_RESIZE_FIELDS, NULL);
MESSAGE_TABLE(ctl_stop, CTL_STOP_FIELDS, NULL);
MESSAGE_TABLE(ctl_join, CTL_JOIN_FIELDS, NULL);
MESSAGE_TABLE(ctl_forward, CTL_FORWARD_FIELDS, NULL);
MESSAGE_TABLE(ctl_warning, CTL_WARNING_FIELDS, NULL);
MESSAGE_TABLE(ctl_started, CTL_STARTED_FIELDS, NULL);
MESSAGE_TABLE(ctl_failure, CTL_FAILURE_FIELDS, NULL);
MESSAGE_TABLE(ctl_exec_started, CTL_EXEC_STARTED_FIELDS, NULL);
MESSAGE_TABLE(ctl_exec_failed, CTL_EXEC_FAILED_FIELDS, NULL);
MESSAGE_TABLE(ctl_exec_exited, CTL_EXEC_EXITED_FIELDS, NULL);
MESSAGE_TABLE(ctl_usage, CTL_USAGE_FIELDS, NULL);
MESSAGE_TABLE(ctl_ended, CTL_ENDED_FIELDS, NULL);
MESSAGE_TABLE(ctl_stats, CTL_STATS_FIELDS, NULL);
MESSAGE_TABLE(ctl_refusal, CTL_REFUSAL_FIELDS, NULL);

const message_fn ctl_messages[] = {ctl_start_message, ctl_attach_message, ctl_exec_message,
	ctl_signal_message, ctl_resize_message, ctl_stop_message, ctl_join_message,
	ctl_forward_message, ctl_warning_message, ctl_started_message, ctl_failure_message,
	ctl_exec_started_message, ctl_exec_failed_message, ctl_exec_exited_message,
	ctl_ended_message, ctl_stats_message, ctl_refusal_message, NULL};

void ctl_start_done(struct ctl_start *m)
{
	message_done(ctl_start_message(), m);
}

unsigned ctl_start_fds(const struct ctl_start *m)
{
	return (m->gateway ? 1U : 0U) + (m->recorded ? 2U : 0U);
}

int ctl_send_start(struct chan *c, const struct ctl_start *m, const int *fds)
{
	return message_send(c, CTL_START, ctl_start_message(), m, fds, ctl_start_fds(m));
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
	int given[3];
	unsigned n = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(m->stdio); i++)
		if (m->stdio[i] == CTL_STDIO_FD)
			given[n++] = fds[i];
	return message_send(c, CTL_EXEC, ctl_exec_message(), m, given, n);
}

int ctl_send_join_outputs(struct chan *c, const struct ctl_join *m, const int outputs[2])
{
	return message_send(c, CTL_JOIN, ctl_join_message(), m, outputs, 2);
}

int ctl_send_error(struct chan *c, const struct cloche_err *err)
{
	return message_send(c, CTL_ERROR, ctl_failure_message(), err, NULL, 0);
}

int ctl_get_error(struct str payload, struct cloche_err *err)
{
	struct ctl_failure m;

	if (!message_get(payload, ctl_failure_message(), &m))
		return err_set(err, E_PROTOCOL, "malformed error from the supervisor");
	if (err)
		*err = m.err;
	return -m.err.code;
}

int ctl_send_exec_started(struct chan *c, const struct ctl_exec_started *m, int fd)
{
	return message_send(
		c, CTL_EXEC_STARTED, ctl_exec_started_message(), m, &fd, fd >= 0 ? 1 : 0);
}

int ctl_send_stats(struct chan *c)
{
	return chan_send(c, CTL_STATS, STR_NULL, NULL, 0);
}

int ctl_send_stats_now(struct chan *c, const struct ctl_stats *m)
{
	return message_send(c, CTL_STATS_NOW, ctl_stats_message(), m, NULL, 0);
}

bool ctl_get_stats_now(struct str payload, struct ctl_stats *ret)
{
	return message_get(payload, ctl_stats_message(), ret);
}

int ctl_send_forward(struct chan *c, const struct ctl_forward *m, int listener)
{
	return message_send(c, CTL_FORWARD, ctl_forward_message(), m, &listener, 1);
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

int ctl_send_complete(struct chan *c)
{
	return chan_send(c, CTL_COMPLETE, STR_NULL, NULL, 0);
}

int ctl_send_completed(struct chan *c)
{
	return chan_send(c, CTL_COMPLETED, STR_NULL, NULL, 0);
}

int ctl_send_refused(struct chan *c, uint16_t request, const struct cloche_err *err)
{
	const struct ctl_refusal m = {.request = request, .err = *err};

	return message_send(c, CTL_REFUSED, ctl_refusal_message(), &m, NULL, 0);
}

int ctl_get_refused(struct str payload, uint16_t *ret_request, struct cloche_err *err)
{
	struct ctl_refusal m;

	if (!message_get(payload, ctl_refusal_message(), &m))
		return err_set(err, E_PROTOCOL, "malformed refusal from the supervisor");
	*ret_request = m.request;
	if (err)
		*err = m.err;
	return -m.err.code;
}
