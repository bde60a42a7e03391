/* SPDX-License-Identifier: Apache-2.0 */
#include "api/instance/made.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "job/job.h"
#include "sandbox/allowlist.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

static int open_dir(const cloche_instance *instance)
{
	return openat(
		instance->base, instance->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int made_write(const cloche_instance *instance, const cloche_sandbox *sb, char *const *secrets,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SANDBOX_STORE_MAX);
	_cleanup_fd_ int dir = open_dir(instance);
	int r = sandbox_store(sb, secrets, &text, err);

	if (r < 0)
		return r;
	if (dir < 0)
		return err_set(err, E_NOT_FOUND, "sandbox %s has gone", instance->id);
	return fs_write_atomic(dir, RUNDIR_MADE, buf_str(&text), 0600, false, err);
}

int made_read(const cloche_instance *instance, cloche_sandbox **ret, char ***ret_secrets,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SANDBOX_STORE_MAX);
	_cleanup_fd_ int dir = open_dir(instance);
	int r;

	if (dir < 0)
		return err_set(err, E_NOT_FOUND, "sandbox %s has gone", instance->id);
	if (faccessat(dir, RUNDIR_MADE, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		err_set(err, E_UNSUPPORTED,
			"only a sandbox of \"cloche create\" can be copied, and %s is none",
			instance->id);
		return -E_UNSUPPORTED;
	}
	r = fd_read_file(dir, RUNDIR_MADE, &text, err);
	if (r < 0)
		return err_wrap(err, r, "read how sandbox %s was made", instance->id);
	return sandbox_load(buf_str(&text), ret, ret_secrets, err);
}

int made_set_allowlist(const cloche_instance *instance, const cloche_allowlist *list, bool keep,
	struct cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = NULL;
	_cleanup_(strv_freep) char **secrets = NULL;
	_cleanup_fd_ int lock = open_dir(instance);
	int r = lock < 0 ? -errno : job_lock(lock, LOCK_EX);

	if (r < 0)
		return err_sys(err, -r, "lock sandbox %s", instance->id);
	r = made_read(instance, &sb, &secrets, err);
	if (r == 0)
		r = keep ? cloche_sandbox_add_allowlist(sb, list, err)
			 : cloche_sandbox_set_allowlist(sb, list, err);
	return r < 0 ? r : made_write(instance, sb, secrets, err);
}
