/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/control.h"
#include "base/jsonout.h"
#include "base/strv.h"

/* As shells and timeout(1) have it. */
enum { EXIT_TIMEOUT = 124, EXIT_SIGNAL = 128 };

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
MESSAGE_TABLE(ctl_exec_stopped, CTL_EXEC_STOPPED_FIELDS, NULL);
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
	return (m->gateway ? 1U : 0U) + (m->recorded ? 2U : 0U) + (unsigned)strv_count(m->logins);
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

int ctl_exit_code(const struct ctl_exec_exited *m)
{
	if (m->timed_out)
		return EXIT_TIMEOUT;
	return m->signaled ? EXIT_SIGNAL + m->status : m->status;
}

void ctl_exit_write(const struct ctl_exec_exited *m, struct jsonout *o)
{
	jsonout_number(o, "exit_code", (uint64_t)ctl_exit_code(m));
	if (m->signaled)
		jsonout_number(o, "signal", m->status);
	else
		jsonout_raw(o, "signal", STR("null"));
	jsonout_bool(o, "timed_out", m->timed_out);
	jsonout_bool(o, "oom_killed", m->oom_killed);
	jsonout_bool(o, "pids_refused", m->pids_refused);
	jsonout_bool(o, "stopped", m->stopped);
	jsonout_number(o, "duration_usec", m->duration_usec);
}
