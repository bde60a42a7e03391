/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker writes the network log of the sandbox, and inotify wakes the
 * client's loop, which reads on and tells the caller. What comes at the very end is read when the
 * broker has gone. */
#include "api/record/network_log.h"
#include "api/run/run.h"
#include "job/job.h"

JOB_TELL1(run_call_network, cloche_network_fn, const cloche_network_entry *)

static void network_tell(cloche_run *run)
{
	cloche_network_entry e;

	network_log_settle(run->network_log);
	while (cloche_network_log_next(run->network_log, &e, NULL) > 0)
		run_call_network(run->on_network, &e, run->on_network_user);
}

static void on_network_log(struct loop_io *io, uint32_t events)
{
	network_tell(container_of(io, struct cloche_run, network_io));
}

/* It is only for the caller's eyes, so the run goes on without it. */
void run_watch_network(cloche_run *run)
{
	struct client *client = atomic_load(&run->client);
	_cleanup_(freep) char *path = NULL;
	int fd;

	if (!run->on_network || run->where != RUN_OWN || run->detached ||
		cloche_network_log_find(client_id(client), &path, NULL) < 0 ||
		cloche_network_log_open(path, &run->network_log, NULL) < 0)
		return;
	fd = network_log_watch(run->network_log, NULL);
	if (fd < 0 ||
		loop_io_add(client_loop(client), &run->network_io, fd, EPOLLIN, on_network_log) < 0)
		run_drop_network(run);
	else
		network_tell(run);
}

void run_end_network(cloche_run *run)
{
	if (run->network_log)
		network_tell(run);
	run_drop_network(run);
}

void run_drop_network(cloche_run *run)
{
	loop_io_remove(&run->network_io);
	cloche_network_log_close(run->network_log);
	run->network_log = NULL;
}
