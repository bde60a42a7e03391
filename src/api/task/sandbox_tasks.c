/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a sandbox's handle can own tasks. Such a task is an ordinary one that has
 * joined the group of the handle (sandbox/group.h), which knows those that are executing. */
#include "api/task/task.h"
#include "base/fd.h"
#include "ipc/rundir.h"
#include "manager/sandboxes.h"
#include "provider/provider.h"

#include <stdio.h>

int cloche_sandbox_startup(cloche_sandbox *sb, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT;
	_cleanup_fd_ int base = -1;

	err = err ? err : &own;
	base = rundir_open(err);
	if (base < 0)
		return base;
	sandboxes_sweep(base, NULL, NULL);
	if (!provider_choose(sb->provider, err))
		return -err->code;
	return sandbox_group_open(sb->group, err);
}

int cloche_sandbox_shutdown(cloche_sandbox *sb, cloche_err *err)
{
	return sandbox_group_close(sb->group, err);
}

static void tasks_stop(void *task)
{
	(void)cloche_task_stop(task);
}

/* Apply this task's settings to its copy of the configuration. */
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
		r = sandbox_set_root(sb, root, err);
	if (r == 0 && network_log)
		r = sandbox_set_network_log(sb, network_log, err);
	if (timeout_ms)
		sb->timeout_ms = timeout_ms;
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
	r = copy ? tasks_configure(copy, image, network_log, timeout_ms, err)
		 : err_sys(err, errno, "copy a sandbox's configuration");
	if (r == 0)
		r = cloche_task_new(copy, NULL, context_dir, context_id, &task, err);
	if (r == 0)
		r = sandbox_group_join(sb->group, &task->member, tasks_stop, task, err);
	if (r == 0)
		*ret = TAKE_PTR(task);
	return r;
}
