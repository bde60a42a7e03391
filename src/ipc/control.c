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
MESSAGE_TABLE(ctl_exec_started, CTL_EXEC_STARTED_FIELDS, NULL);
MESSAGE_TABLE(ctl_exec_failed, CTL_EXEC_FAILED_FIELDS, NULL);
MESSAGE_TABLE(ctl_exec_exited, CTL_EXEC_EXITED_FIELDS, NULL);
MESSAGE_TABLE(ctl_usage, CTL_USAGE_FIELDS, NULL);
MESSAGE_TABLE(ctl_ended, CTL_ENDED_FIELDS, NULL);
MESSAGE_TABLE(ctl_stats_now, CTL_STATS_NOW_FIELDS, NULL);
MESSAGE_TABLE(ctl_refused, CTL_REFUSED_FIELDS, NULL);

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
