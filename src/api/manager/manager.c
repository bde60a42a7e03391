/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a manager is a list, under one lock, of the sandboxes that this process has
 * made. What other processes have to know about it is in labels of those sandboxes, and in a file
 * that is locked as long as the manager lives (manager/owner.h). The lock is not held while
 * something is done to a sandbox. */
#include "api/manager/manager.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/sized.h"
#include "config/agentgate.h"
#include "job/job.h"
#include "manager/cleanup.h"
#include "provider/names.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

enum { DEFAULT_MILLICPUS = 2000 };
#define DEFAULT_MEMORY ((uint64_t)4096 << 20)
#define DEFAULT_LIFETIME_MS ((uint64_t)3600 * 1000)

JOB_TELL1(tell_warning, cloche_warning_fn, const char *)

void manager_tell(cloche_manager *m, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (m->fn)
		tell_warning(m->fn, text, m->user);
}

/* --- opening --- */

/* Read the environment's defaults, and use ours for what it does not set. */
static int read_defaults(cloche_manager *m, struct cloche_err *err)
{
	struct agentgate settings;
	cloche_sandbox *sb = m->defaults = cloche_sandbox_new();
	int r = sb ? agentgate_read(sb, &settings, NULL, m->fn, m->user, err) : err_nomem(err);

	if (r == 0 && !settings.sandboxed) {
		manager_tell(m, "AGENTGATE_SDK_ENABLE_SANDBOX is off: the provider is subprocess, "
				"which isolates nothing");
		r = sandbox_set_provider(sb, PROVIDER_UNSANDBOXED, err);
	}
	if (r < 0)
		return r;
	if (sb->limits.memory_bytes == 0) {
		sandbox_set_memory(sb, DEFAULT_MEMORY);
		sb->memory_optional = true;
	}
	if (sb->limits.cpus_milli == 0) {
		sandbox_set_cpus(sb, DEFAULT_MILLICPUS);
		sb->cpus_optional = true;
	}
	m->max_runs = settings.max_runs;
	m->interval_ms = settings.cleanup_ms;
	if (sb->timeout_ms == 0)
		sb->timeout_ms = DEFAULT_LIFETIME_MS;
	m->lifetime_ms = sb->timeout_ms;
	return 0;
}

static int make_lock(cloche_manager *m, struct cloche_err *err)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r == 0)
		r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (r == 0)
		r = pthread_cond_init(&m->changed, &attr);
	if (r != 0)
		return err_sys(err, r, "make a condition variable");
	pthread_condattr_destroy(&attr);
	return 0;
}

static void manager_free(cloche_manager *m)
{
	struct managed *s, *tmp;

	DL_FOREACH_SAFE (m->sandboxes, s, tmp)
		managed_free(s);
	cloche_sandbox_free(m->defaults);
	owner_done(m->base, &m->owner);
	fd_close(m->base);
	fd_close(m->thread_fd);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

int cloche_manager_open(cloche_warning_fn fn, void *user, cloche_manager **ret, cloche_err *err)
{
	cloche_manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_nomem(err);
	*m = (cloche_manager){.base = -1,
		.thread_fd = -1,
		.owner = OWNER_INIT,
		.fn = fn,
		.user = user,
		.pid = getpid(),
		.collected_at = clock_mono_usec(),
		.lock = PTHREAD_MUTEX_INITIALIZER};
	r = make_lock(m, err);
	if (r < 0) {
		free(m);
		return r;
	}
	r = read_defaults(m, err);
	if (r == 0)
		r = m->base = rundir_open(err);
	if (r >= 0)
		r = owner_make(m->base, &m->owner, err);
	if (r == 0) {
		pthread_mutex_lock(&m->lock);
		r = manager_start_thread(m, err);
		pthread_mutex_unlock(&m->lock);
	}
	if (r < 0) {
		manager_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void cloche_manager_close(cloche_manager *m)
{
	if (!m)
		return;
	(void)!manager_set_at_exit(m, false, NULL);
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	/* It may be in the middle of a cleanup. */
	job_hold_cancel();
	if (m->has_thread && job_wait_fd(m->thread_fd, POLLIN, -1) > 0)
		pthread_join(m->thread, NULL);
	job_release_cancel();
	manager_free(m);
}

cloche_sandbox *cloche_manager_defaults(cloche_manager *m)
{
	return m->defaults;
}

cloche_sandbox *cloche_manager_configure(const cloche_manager *m)
{
	return sandbox_copy(m->defaults);
}

int cloche_manager_set_options(
	cloche_manager *m, const cloche_manager_options *options, cloche_err *err)
{
	cloche_manager_options o = CLOCHE_MANAGER_OPTIONS_INIT;
	int r = sized_take(&o, sizeof(o), options, "cloche_manager_options", err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&m->lock);
	if (o.max_runs != CLOCHE_MANAGER_UNCHANGED)
		m->max_runs = (unsigned)MIN(o.max_runs, (uint64_t)UINT_MAX);
	if (o.lifetime_ms != CLOCHE_MANAGER_UNCHANGED)
		m->lifetime_ms = o.lifetime_ms;
	if (o.cleanup_interval_ms != CLOCHE_MANAGER_UNCHANGED) {
		m->interval_ms = o.cleanup_interval_ms;
		r = manager_start_thread(m, err);
	}
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	if (r == 0 && o.cleanup_at_exit >= 0)
		r = manager_set_at_exit(m, o.cleanup_at_exit > 0, err);
	return r;
}

/* --- sandboxes --- */

static int add_labels(
	cloche_manager *m, cloche_sandbox *sb, const char *run_id, struct cloche_err *err)
{
	char text[MANAGER_RUN_ID_MAX + 64];
	int r;

	snprintf(text, sizeof(text), OWNER_LABEL "=%s", m->owner.id);
	r = sandbox_add_label(sb, text, err);
	pthread_mutex_lock(&m->lock);
	snprintf(text, sizeof(text), INSTANCE_LABEL_LIFETIME "=%llu",
		(unsigned long long)(m->lifetime_ms / 1000 + (m->lifetime_ms % 1000 > 0)));
	pthread_mutex_unlock(&m->lock);
	if (r == 0)
		r = sandbox_add_label(sb, text, err);
	if (r < 0 || !run_id)
		return r;
	snprintf(text, sizeof(text), INSTANCE_LABEL_RUN "=%s", run_id);
	return sandbox_add_label(sb, text, err);
}

static int check_run_id(const char *run_id, struct cloche_err *err)
{
	size_t n = run_id ? strlen(run_id) : 1;
	bool ok = n > 0 && n <= MANAGER_RUN_ID_MAX;

	for (size_t i = 0; run_id && ok && i < n; i++)
		ok = run_id[i] >= ' ' && run_id[i] < 0x7f;
	return ok ? 0
		  : err_set(err, E_USAGE, "the id of a run has 1 to %d printable characters",
			    MANAGER_RUN_ID_MAX);
}

/* Add a sandbox to the list; it no longer counts as one that is being made. */
static int track(cloche_manager *m, const cloche_sandbox *sb, const cloche_instance *i,
	const char *run_id, struct cloche_err *err)
{
	struct managed *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	memcpy(s->id, i->id, sizeof(s->id));
	snprintf(s->name, sizeof(s->name), "%s", sb->name ? sb->name : "");
	snprintf(s->run_id, sizeof(s->run_id), "%s", run_id ? run_id : "");
	s->memory = manager_memory(sb);
	s->created_us = clock_real_usec();
	s->end = -1;
	pthread_mutex_lock(&m->lock);
	DL_APPEND(m->sandboxes, s);
	m->entered--;
	m->entered_memory -= s->memory;
	/* The first in the queue has to watch it, too. */
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static int make(cloche_manager *m, const cloche_sandbox *sb, const char *run_id,
	cloche_instance **ret, struct cloche_err *err)
{
	cloche_instance *i = NULL;
	int r = cloche_instance_create(sb, m->fn, m->user, &i, err);

	if (r == 0)
		r = track(m, sb, i, run_id, err);
	if (r < 0) {
		job_hold_cancel();
		if (i)
			(void)!cloche_instance_remove(i, true, NULL);
		job_release_cancel();
		cloche_instance_free(i);
		return r;
	}
	*ret = i;
	return 0;
}

int cloche_manager_create(cloche_manager *m, const cloche_sandbox *sb, const char *run_id,
	uint64_t wait_ms, cloche_instance **ret, cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = sandbox_copy(sb);
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = copy ? check_run_id(run_id, err)
		     : err_sys(err, errno, "copy a sandbox's configuration");

	if (r == 0)
		r = add_labels(m, copy, run_id, err);
	if (r == 0)
		r = cloche_manager_enter(m, copy, wait_ms, err);
	if (r < 0)
		return r;
	r = make(m, copy, run_id, ret, &why);
	if (r == 0)
		return 0;
	pthread_mutex_lock(&m->lock);
	snprintf(m->error, sizeof(m->error), "a sandbox could not be made: %s", why.message);
	pthread_mutex_unlock(&m->lock);
	cloche_manager_leave(m, copy);
	if (err)
		*err = why;
	return r;
}

/* With the lock held. */
static struct managed *find(cloche_manager *m, const char *id)
{
	struct managed *s;

	DL_FOREACH (m->sandboxes, s)
		if (strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

/* Remove what is left of a sandbox that has ended or crashed. If the rest of a crashed one cannot
 * be removed, return an error, so that it is tried again. */
static int remove_rest(int base, const char *id, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry e = SANDBOX_ENTRY_INIT;
	struct cleanup c;
	int r = sandbox_open(base, id, &e, err);

	if (r < 0)
		return r == -E_NOT_FOUND ? 0 : r;
	if (e.life != SANDBOX_CRASHED)
		return sandbox_remove(base, id, err);
	sandboxes_sweep(base, NULL, NULL);
	if (faccessat(base, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	cleanup_read(base, &c);
	return err_set(err, E_SYSTEM, "what it left cannot be removed: %s", c.error);
}

static int remove_sandbox(const char *id, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *i = NULL;
	int r = cloche_instance_open(id, &i, err);

	if (r < 0)
		return r == -E_NOT_FOUND ? 0 : r; /* another process has removed it */
	r = cloche_instance_stop(i, 0, NULL);
	return r == 0 || r == -E_NOT_FOUND ? remove_rest(i->base, id, err)
					   : cloche_instance_remove(i, true, err);
}

int cloche_manager_destroy(cloche_manager *m, const char *id, cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct managed *s;
	bool known;
	int r;

	pthread_mutex_lock(&m->lock);
	known = find(m, id) != NULL;
	pthread_mutex_unlock(&m->lock);
	if (!known)
		return err_set(err, E_NOT_FOUND, "this manager has no sandbox \"%s\"", id);
	r = remove_sandbox(id, &why);
	pthread_mutex_lock(&m->lock);
	s = find(m, id); /* another thread may have been faster */
	if (s && r == 0) {
		DL_DELETE(m->sandboxes, s);
		managed_free(s);
	} else if (s) {
		s->doomed = true;
		snprintf(m->error, sizeof(m->error), "%s: %s", id, why.message);
	}
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	manager_settle_promises(m);
	if (r < 0) {
		manager_tell(m, "sandbox %s could not be removed; this will be tried again: %s", id,
			why.message);
		if (err)
			*err = why;
	}
	return r;
}

/* --- several at once --- */

/* Copy the list, so that the lock is not held while something is done to the sandboxes. */
static int copy_list(cloche_manager *m, struct managed **ret, size_t *ret_n, struct cloche_err *err)
{
	const struct managed *s;
	size_t n = 0;

	pthread_mutex_lock(&m->lock);
	(void)manager_count_running(m);
	DL_FOREACH (m->sandboxes, s)
		n++;
	*ret = calloc(n + 1, sizeof(**ret));
	*ret_n = n;
	n = 0;
	DL_FOREACH (m->sandboxes, s) {
		if (!*ret)
			break;
		(*ret)[n++] = *s;
	}
	pthread_mutex_unlock(&m->lock);
	return *ret ? 0 : err_nomem(err);
}

JOB_ASK1(ask_managed, cloche_managed_fn, bool, false, const cloche_managed *)

int cloche_manager_each(cloche_manager *m, cloche_managed_fn fn, void *user, cloche_err *err)
{
	_cleanup_(freep) struct managed *list = NULL;
	size_t n = 0;
	int r = copy_list(m, &list, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		const cloche_managed one = {.id = list[i].id,
			.name = list[i].name,
			.run_id = list[i].run_id,
			.created_us = list[i].created_us,
			.running = !list[i].over};

		if (!ask_managed(fn, &one, user))
			break;
	}
	return r;
}

/* Destroy the sandboxes of a run (NULL: of all), or only the doomed ones among them. */
static int destroy_some(
	cloche_manager *m, const char *run_id, bool doomed, size_t *ret, struct cloche_err *err)
{
	_cleanup_(freep) struct managed *list = NULL;
	size_t n = 0, done = 0;
	int r = copy_list(m, &list, &n, err);

	for (size_t i = 0; list && i < n; i++) {
		struct cloche_err why = CLOCHE_ERR_INIT;
		int one;

		if ((run_id && strcmp(list[i].run_id, run_id) != 0) || (doomed && !list[i].doomed))
			continue;
		one = cloche_manager_destroy(m, list[i].id, &why);
		done += one == 0;
		if (one < 0 && one != -E_NOT_FOUND && r == 0) {
			r = one;
			if (err)
				*err = why;
		}
	}
	if (ret)
		*ret = done;
	return r;
}

int cloche_manager_destroy_run(cloche_manager *m, const char *run_id, size_t *ret, cloche_err *err)
{
	return destroy_some(m, run_id, false, ret, err);
}

int manager_destroy_doomed(cloche_manager *m, struct cloche_err *err)
{
	return destroy_some(m, NULL, true, NULL, err);
}

int cloche_manager_cleanup(cloche_manager *m, cloche_err *err)
{
	int r = destroy_some(m, NULL, false, NULL, err);
	int also = cloche_manager_collect(m, r < 0 ? NULL : err);

	return r < 0 ? r : also;
}
