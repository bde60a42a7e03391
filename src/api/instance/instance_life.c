/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, ends and removes long-lived sandboxes, and asks running ones. */
#include "api/instance/instance.h"
#include "api/instance/made.h"
#include "api/start/ports.h"
#include "api/start/room.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "job/job.h"
#include "manager/cleanup.h"
#include "manager/execlog.h"
#include "manager/owner.h"
#include "record/logs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE (10 * USEC_PER_SEC) /* for a supervisor to clean up */

/* Wait until the sandbox is complete. */
static int wait_until_made(struct client *client, struct network *net, const cloche_sandbox *sb,
	struct cloche_err *err)
{
	int r = client_wait_started(client, err);

	if (r == 0 && net->open)
		r = client_wait_for(client, &net->accepted, err);
	if (r == 0)
		r = runtime_prepare(client, sb, err);
	return r;
}

void instance_discard(struct client *client)
{
	char id[CTL_ID_MAX + 1];
	_cleanup_fd_ int base = rundir_open(NULL);

	snprintf(id, sizeof(id), "%s", client_id(client));
	/* Nobody else would end it if this is a cancelled job. */
	job_hold_cancel();
	(void)!client_end(client, 0, NULL);
	if (base >= 0)
		(void)!sandbox_remove(base, id, NULL);
	job_release_cancel();
}

/* sb has the tools that it needs added; made is as the user described it. */
static int begin(const cloche_sandbox *sb, const cloche_sandbox *made, cloche_warning_fn fn,
	void *user, struct client **ret_client, cloche_instance **ret, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;
	struct network net;
	struct client *client = NULL;
	struct ctl_start how = {.detached = true, .kept = true, .unfinished = true};
	int r;

	if (sb->network_log_fd >= 0)
		return err_set(err, E_USAGE,
			"a live network log needs somebody to watch it: write it to a file");
	how.config = sandbox_describe(sb);
	if (!how.config)
		return err_nomem(err);
	r = room_start(sb, &how, &net, NULL, fn, user, &client, err);
	if (r == 0) {
		client_on_warning(client, fn, user);
		sandbox_tell_doubtful(sb, fn, user);
		r = wait_until_made(client, &net, sb, err);
		if (r == 0)
			r = ports_publish(sb, client, err);
		if (r == 0)
			r = cloche_instance_open(client_id(client), &instance, err);
		if (r == 0)
			r = made_write(instance, made, NULL, err);
		client_on_warning(client, NULL, NULL);
		loop_io_remove(&net.io); /* the client outlives it */
		if (r < 0)
			(void)!instance_complete(client, r, NULL);
	}
	network_done(&net);
	if (r < 0)
		return r;
	*ret_client = client;
	*ret = TAKE_PTR(instance);
	return 0;
}

bool instance_wait_settled(const cloche_instance *instance, uint64_t at_most_usec)
{
	uint64_t now = clock_mono_usec(), until = now + at_most_usec;

	/* Whoever removes what is left of a sandbox has its lock, too. */
	for (; now < until; now = clock_mono_usec()) {
		_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;

		if (sandbox_open(instance->base, instance->id, &entry, NULL) < 0)
			return false;
		if (entry.life != SANDBOX_LIVE)
			return true;
		if (sandbox_await_end(instance->base, instance->id, -1,
			    (int)((until - now) / USEC_PER_MSEC) + 1) < 0)
			return false;
	}
	return false;
}

int instance_begin(const cloche_sandbox *sb, cloche_warning_fn fn, void *user,
	struct client **ret_client, cloche_instance **ret, struct cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = sandbox_copy(sb);
	int r = copy ? runtime_add_tools(copy, err)
		     : err_sys(err, errno, "copy a sandbox's configuration");

	/* So much is kept of each log at least, and the record has to say so. */
	if (copy && copy->output_limit)
		copy->output_limit = MAX(copy->output_limit, (uint64_t)EXECLOG_MIN_BYTES);
	return r < 0 ? r : begin(copy, sb, fn, user, ret_client, ret, err);
}

int instance_complete(struct client *client, int r, struct cloche_err *err)
{
	char id[CTL_ID_MAX + 1];

	if (r == 0)
		r = client_complete(client, err);
	if (r < 0) {
		snprintf(id, sizeof(id), "%s", client_id(client));
		instance_discard(client);
		oplogs_forget(id);
	}
	client_free(client);
	return r;
}

int cloche_instance_create(const cloche_sandbox *sb, cloche_warning_fn fn, void *user,
	cloche_instance **ret, cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;
	struct client *client;
	int r = instance_begin(sb, fn, user, &client, &instance, err);

	if (r == 0)
		r = instance_complete(client, 0, err);
	if (r == 0)
		*ret = TAKE_PTR(instance);
	return r;
}

/* Whether it has ended in order. If its supervisor is about to leave, wait for that. */
static bool life_is_over(const cloche_instance *instance)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;

	return instance_wait_settled(instance, PATIENCE) &&
	       sandbox_open(instance->base, instance->id, &entry, NULL) == 0 &&
	       entry.life == SANDBOX_ENDED;
}

int cloche_instance_stop(const cloche_instance *instance, uint64_t grace_ms, cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	uint64_t grace = clock_usec_of_msec(grace_ms);
	struct client *client = NULL;
	int r = instance_open_entry(instance, &entry, err);

	if (r < 0 || entry.life == SANDBOX_ENDED)
		return r;
	r = instance_attach(instance, &client, err);
	/* It may have ended by itself meanwhile. */
	if (r == -E_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	if (r == 0)
		r = client_end(client, grace, err);
	client_free(client);
	if (r == 0)
		(void)instance_wait_settled(instance, PATIENCE);
	/* It may have ended by itself before it could answer. */
	if (r == -E_INTERNAL && life_is_over(instance)) {
		err_clear(err);
		return 0;
	}
	return r < 0 ? err_wrap(err, r, "stop %s", instance->id) : r;
}

/* Kill a supervisor that does not answer any more. The room dies with it, and what is left is
 * swept. */
static void kill_supervisor(const cloche_instance *instance)
{
	_cleanup_(cloche_instance_freep) cloche_instance *fresh = instance_copy(instance);
	const json_t *record;

	if (!fresh || cloche_instance_refresh(fresh, NULL) < 0)
		return;
	record = fresh->record;
	/* The lock does not prove that it lives: a process that removes what it left holds the
	 * lock, too. */
	fd_close(program_end((pid_t)json_integer_value(json_object_get(record, "pid")),
		json_count_at(record, "pid_start"),
		json_string_value(json_object_get(record, "boot_id"))));
}

int cloche_instance_remove(const cloche_instance *instance, bool force, cloche_err *err)
{
	struct client *client = NULL;
	int r;

	if (force) {
		r = client_attach(instance->base, instance->id, &client, NULL);
		if (r == 0 && client_end(client, 0, NULL) < 0)
			kill_supervisor(instance);
		client_free(client);
	}
	r = sandbox_remove(instance->base, instance->id, err);
	if (r == -E_BUSY && force) {
		kill_supervisor(instance);
		/* Another process may be about to remove it. */
		(void)instance_wait_settled(instance, PATIENCE);
		r = sandbox_remove(instance->base, instance->id, err);
	}
	if (r == -E_BUSY) {
		err_set(err, E_BUSY, "sandbox %s runs", instance->id);
		err_hint(err, "stop it first, or: cloche rm -f %s", instance->id);
	}
	return r;
}

int instance_remove_idle(const cloche_instance *instance, struct cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	int r = client_attach(instance->base, instance->id, &client, err);

	if (r == 0)
		r = client_stop_idle(client, err);
	if (r < 0)
		return r;
	(void)instance_wait_settled(instance, PATIENCE);
	return sandbox_remove(instance->base, instance->id, err);
}

struct pruning {
	cloche_prune_fn fn;
	void *user;
};

JOB_TELL2(call_prune_fn, cloche_prune_fn, const char *, bool)

static void on_swept(void *user, const char *id)
{
	const struct pruning *p = user;

	if (p->fn)
		call_prune_fn(p->fn, id, true, p->user);
}

int cloche_instance_prune(cloche_prune_fn fn, void *user, cloche_err *err)
{
	struct pruning p = {fn, user};
	_cleanup_(strv_freep) char **ids = NULL;
	_cleanup_fd_ int base = rundir_open(err);
	int r;

	if (base < 0)
		return base;
	sandboxes_sweep(base, on_swept, &p);
	r = sandboxes_list(base, &ids, err);
	for (size_t i = 0; r == 0 && ids && ids[i]; i++) {
		_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;

		r = sandbox_open(base, ids[i], &entry, err);
		if (r == -E_NOT_FOUND || (r == 0 && entry.life != SANDBOX_ENDED)) {
			r = 0;
			continue;
		}
		if (r == 0)
			r = sandbox_remove(base, ids[i], err);
		if (r == 0 && fn)
			call_prune_fn(fn, ids[i], false, user);
	}
	return r;
}

int cloche_instance_stats(const cloche_instance *instance, cloche_stats *ret, cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	struct ctl_stats_now m;
	cloche_stats all;
	int r;

	if (ret->size == 0)
		return err_set(err, E_USAGE, "the size of cloche_stats is not set");
	r = instance_attach(instance, &client, err);
	if (r == 0)
		r = client_stats(client, &m, err);
	if (r < 0)
		return r;
	all = (cloche_stats){.size = ret->size,
		.at_us = m.now_usec,
		.uptime_ms = m.uptime_usec / USEC_PER_MSEC,
		.cpu_us = m.cpu_usec,
		.memory_bytes = m.memory_bytes,
		.memory_peak_bytes = m.memory_peak_bytes,
		.memory_limit = m.memory_limit,
		.pids = m.pids,
		.pids_peak = m.pids_peak,
		.pids_limit = m.pids_limit,
		.io_read_bytes = m.io_read_bytes,
		.io_write_bytes = m.io_write_bytes,
		.commands_running = m.execs_running,
		.commands_total = m.execs_total,
		.network_allowed = m.net_allowed,
		.network_blocked = m.net_blocked,
		.network_sent = m.net_sent,
		.network_received = m.net_received};
	memcpy(ret, &all, MIN(ret->size, sizeof(all)));
	return 0;
}

/* Return a host port that leads to guest_port already, according to the record, or 0. */
static uint16_t find_forward(const cloche_instance *instance, uint16_t guest_port)
{
	_cleanup_(cloche_instance_freep) cloche_instance *fresh = NULL;
	const json_t *forwards, *one;
	size_t i;

	if (instance_copy_fresh(instance, &fresh, NULL) < 0)
		return 0;
	forwards = json_object_get(fresh->record, "forwards");
	json_array_foreach (forwards, i, one)
		if (json_integer_value(json_object_get(one, "guest_port")) == guest_port)
			return (uint16_t)json_integer_value(json_object_get(one, "host_port"));
	return 0;
}

int cloche_instance_forward(const cloche_instance *instance, uint16_t guest_port,
	uint16_t host_port, uint16_t *ret_host_port, cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	struct ctl_forward m = {.guest_port = guest_port, .host_address = STR("127.0.0.1")};
	_cleanup_fd_ int fd = -1;
	int r;

	if (guest_port == 0)
		return err_set(err, E_USAGE, "port 0 cannot be reached");
	r = instance_attach(instance, &client, err);
	if (r < 0)
		return r;
	if (host_port == 0)
		m.host_port = find_forward(instance, guest_port);
	if (m.host_port != 0) {
		*ret_host_port = m.host_port;
		return 0;
	}
	fd = ports_listen("127.0.0.1", host_port, &m.host_port, err);
	if (fd < 0)
		return fd;
	r = client_forward(client, &m, fd, err);
	if (r == 0)
		*ret_host_port = m.host_port;
	return r;
}

/* --- sandboxes whose manager has died --- */

static bool lifetime_is_over(const cloche_instance *instance)
{
	const char *lifetime = cloche_instance_label(instance, INSTANCE_LABEL_LIFETIME);
	uint64_t now = clock_real_usec(), created = instance->info.created_us;
	uint64_t age = now > created ? now - created : 0;

	return lifetime && created > 0 && age / USEC_PER_SEC >= strtoull(lifetime, NULL, 10);
}

bool instance_end_orphan(const cloche_instance *instance)
{
	const char *manager = cloche_instance_label(instance, OWNER_LABEL);
	struct cloche_err err = CLOCHE_ERR_INIT;
	char text[CLEANUP_ERROR_MAX];
	int r;

	if (!manager || !lifetime_is_over(instance) || owner_is_live(instance->base, manager))
		return false;
	r = instance_remove_idle(instance, &err);
	snprintf(text, sizeof(text), "%s: %.400s", instance->id, err.message);
	/* Busy: it is in use. Not found: another process was faster. */
	if (r != -E_BUSY && r != -E_NOT_FOUND)
		cleanup_note(instance->base, r < 0 ? text : NULL);
	return r == 0;
}
