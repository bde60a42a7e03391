/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a sandbox's handle as the owner of tasks. A task of it is one like any other
 * that has joined the group of the handle (sandbox/group.h), which knows those that execute. */
#include "api/task.h"
#include "base/fd.h"
#include "ipc/rundir.h"
#include "manager/sandboxes.h"
#include "provider/provider.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_REASONS = 8192 };

/* Whether that provider could make a room now. */
static int tasks_probe(const char *name, struct cloche_err *err)
{
	const struct provider *p = provider_find(str_from(name), err);

	return p ? p->probe(p, err) : -err->code;
}

/* Adds "NAME: why" to what is said if none works; a program that is not there is no news. */
static int tasks_add_reason(
	struct buf *reasons, const char *name, int r, const struct cloche_err *why)
{
	if (r == -E_NOT_FOUND)
		return 0;
	return buf_printf(reasons, "%s%s: %s", buf_len(reasons) ? "; " : "", name, why->message);
}

/* As the supervisor chooses when a sandbox is made, but without making one. */
static int tasks_check_provider(const cloche_sandbox *sb, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf reasons = BUF_INIT(MAX_REASONS);
	struct cloche_err first = CLOCHE_ERR_INIT;
	const char *name;
	int r = provider_name_choose(sb->provider, &name, err);

	if (r < 0)
		return r;
	if (strcmp(name, "auto") != 0 && strcmp(name, PROVIDER_AUTO_OR_NONE) != 0)
		return tasks_probe(name, err);
	for (size_t i = 0; i < PROVIDERS_AUTO; i++) {
		struct cloche_err why = CLOCHE_ERR_INIT;

		r = tasks_probe(provider_name_at(i), &why);
		if (r == 0)
			return 0;
		if (i == 0)
			first = why;
		if (tasks_add_reason(&reasons, provider_name_at(i), r, &why) == -ENOMEM)
			return err_nomem(err);
	}
	if (strcmp(name, PROVIDER_AUTO_OR_NONE) == 0)
		return tasks_probe(PROVIDER_UNSANDBOXED, err);
	(void)err_set(err, E_UNSUPPORTED, "no provider works here: %s", buf_cstr(&reasons));
	if (first.hint[0])
		err_hint(err, "%s", first.hint);
	return -E_UNSUPPORTED;
}

int cloche_sandbox_startup(cloche_sandbox *sb, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT;
	_cleanup_fd_ int base = -1;
	int r;

	err = err ? err : &own;
	base = rundir_open(err);
	if (base < 0)
		return base;
	sandboxes_sweep(base, NULL, NULL);
	r = tasks_check_provider(sb, err);
	if (r == 0)
		sandbox_group_open(sb->group);
	return r;
}

int cloche_sandbox_shutdown(cloche_sandbox *sb, cloche_err *err)
{
	sandbox_group_close(sb->group);
	return 0;
}

static void tasks_stop(void *task)
{
	(void)cloche_task_stop(task);
}

/* Gives a copy of the configuration what is this task's. */
static int tasks_configure(cloche_sandbox *sb, const char *image, const char *network_log,
	uint64_t timeout_ms, struct cloche_err *err)
{
	_cleanup_(freep) char *root = NULL;
	int r = 0;

	if (image && asprintf(&root, "image:%s", image) < 0) {
		root = NULL;
		return err_nomem(err);
	}
	if (root)
		r = cloche_sandbox_set_root(sb, root, err);
	if (r == 0 && network_log)
		r = cloche_sandbox_set_network_log(sb, network_log, err);
	if (timeout_ms)
		cloche_sandbox_set_timeout(sb, timeout_ms);
	return r;
}

int cloche_sandbox_create_task(const cloche_sandbox *sb, const char *context_id, const char *image,
	const char *context_dir, const char *network_log, uint64_t timeout_ms, cloche_task **ret,
	cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = NULL;
	_cleanup_(cloche_task_freep) cloche_task *task = NULL;
	int r = sandbox_group_check(sb->group, err);

	if (r < 0)
		return r;
	copy = sandbox_copy(sb);
	r = copy ? tasks_configure(copy, image, network_log, timeout_ms, err) : err_nomem(err);
	if (r == 0)
		r = cloche_task_new(copy, NULL, context_dir, context_id, &task, err);
	if (r == 0)
		r = sandbox_group_join(sb->group, &task->member, tasks_stop, task, err);
	if (r == 0)
		*ret = TAKE_PTR(task);
	return r;
}
