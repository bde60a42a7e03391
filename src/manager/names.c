/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a name is a symbolic link to an id, and is made only if it does not exist. A
 * process that makes, replaces or drops one holds a lock on the directory of all sandboxes, so that
 * if two find a dead holder, only one replaces it. */
#include "base/fd.h"
#include "fs/fs.h"
#include "job/job.h"
#include "manager/internal.h"
#include "manager/sandboxes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lock the directory of all sandboxes; closing the descriptor releases the lock. Return -errno on
 * failure. */
static int lock_base(int base)
{
	_cleanup_fd_ int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : job_lock(fd, LOCK_EX);

	return r < 0 ? r : TAKE_FD(fd);
}

static int open_names(int base)
{
	return openat(base, MANAGER_NAMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int read_link(int names, const char *name, char ret_id[RUNDIR_ID_BYTES + 1])
{
	char id[RUNDIR_ID_BYTES + 2];
	ssize_t n = readlinkat(names, name, id, sizeof(id));

	if (n < 0)
		return -errno;
	if (!rundir_is_id(str_make(id, (size_t)n)))
		return -ENOENT;
	memcpy(ret_id, id, RUNDIR_ID_BYTES);
	ret_id[RUNDIR_ID_BYTES] = '\0';
	return 0;
}

static bool is_held(int base, const char *id)
{
	struct sandbox_entry e;
	int r = sandbox_open(base, id, &e, NULL);
	bool held = r == 0 ? e.life != SANDBOX_CRASHED : r != -E_NOT_FOUND;

	sandbox_entry_done(&e);
	return held;
}

int names_take(int base, const char *name, const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int lock = -1, names = -1;
	char holder[RUNDIR_ID_BYTES + 1];
	int r = rundir_check_name(name, err);

	if (r < 0)
		return r;
	lock = lock_base(base);
	if (lock < 0)
		return err_sys(err, -lock, "lock the directory of all sandboxes");
	if (mkdirat(base, MANAGER_NAMES, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the directory of names");
	names = open_names(base);
	if (names < 0)
		return err_sys(err, errno, "open the directory of names");
	if (read_link(names, name, holder) == 0 && is_held(base, holder))
		return err_set(err, E_EXISTS, "the name \"%s\" is that of %s", name, holder);
	if ((unlinkat(names, name, 0) < 0 && errno != ENOENT) || symlinkat(id, names, name) < 0)
		return err_sys(err, errno, "take the name \"%s\"", name);
	return 0;
}

static bool is_gone(int base, const char *id)
{
	return faccessat(base, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

void names_drop(int base, const char *id)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(base, MANAGER_NAMES);
	_cleanup_fd_ int lock = -1;
	char holder[RUNDIR_ID_BYTES + 1];
	const struct dirent *e;

	if (!list)
		return;
	/* Without the lock, a name that somebody takes meanwhile could be dropped. It is held for
	 * short times only, so a cancelled job waits for it, too. */
	job_hold_cancel();
	lock = lock_base(base);
	job_release_cancel();
	while ((e = fs_list_next(list)))
		if (read_link(dirfd(list), e->d_name, holder) == 0 &&
			(id ? strcmp(holder, id) == 0 : is_gone(base, holder)))
			unlinkat(dirfd(list), e->d_name, 0);
	/* This fails, as it should, while there are other names. */
	if (lock >= 0)
		unlinkat(base, MANAGER_NAMES, AT_REMOVEDIR);
}

int names_find(int base, const char *name, char ret_id[RUNDIR_ID_BYTES + 1])
{
	_cleanup_fd_ int names = -1;

	if (rundir_check_name(name, NULL) < 0)
		return -ENOENT;
	names = open_names(base);
	return names < 0 ? -ENOENT : read_link(names, name, ret_id);
}
