/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: where no namespaces can be made (docker's default container, a restricted
 * pod), the room is the container that it stands in, with the walls of provider landlock. Limits
 * that this container has already are in force; what cloche keeps for the room lies in the room's
 * directory, which no such room can read. */
#include "base/fd.h"
#include "farside/hold.h"
#include "fs/fs.h"
#include "init/program.h"
#include "provider/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBER_BYTES = 64 };

int inplace_choose(struct hold *h, struct cloche_err *err)
{
	struct cloche_err first = CLOCHE_ERR_INIT, second = CLOCHE_ERR_INIT;
	struct provider_about about = {0};
	char dir[PATH_MAX];

	if (native_provider.probe(&native_provider, &about, &first) == 0)
		return 0;
	if (landlock_provider.probe(&landlock_provider, &about, &second) < 0) {
		err_set(err, E_UNSUPPORTED,
			"no room can be made there: namespaces are refused (%.200s), and the "
			"container cannot be the room itself (%.200s)",
			first.message, second.message);
		err_hint(err, "%s", second.hint);
		return -E_UNSUPPORTED;
	}
	if (fd_path(h->dir, dir) < 0)
		return err_sys(err, errno, "find the room's directory");
	if (plain_shows(dir)) {
		err_set(err, E_UNSUPPORTED, "%s lies where every room of that container may read",
			dir);
		err_hint(err, "set HOME to another directory there");
		return -E_UNSUPPORTED;
	}
	h->in_place = true;
	return 0;
}

/* --- limits of the container --- */

/* Read a number of a control group's file, the i-th word of it. Return false if there is none, as
 * with "max". */
static bool inplace_read(const char *name, int i, uint64_t *ret)
{
	char path[PATH_MAX], text[NUMBER_BYTES], *at = text, *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", name);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	for (; i > 0 && at; i--)
		at = (at = strchr(at, ' ')) ? at + 1 : NULL;
	if (!at || *at < '0' || *at > '9')
		return false;
	errno = 0;
	*ret = strtoull(at, &end, 10);
	return errno == 0;
}

static bool inplace_read_cpus(uint64_t *ret)
{
	uint64_t quota, period;
	bool ok = (inplace_read("cpu.max", 0, &quota) && inplace_read("cpu.max", 1, &period)) ||
		  (inplace_read("cpu/cpu.cfs_quota_us", 0, &quota) &&
			  inplace_read("cpu/cpu.cfs_period_us", 0, &period));

	if (!ok || period == 0 || quota > UINT64_MAX / 1000)
		return false;
	*ret = (quota * 1000 + period - 1) / period;
	return true;
}

/* A limit that the container has is in force without our doing. */
static void inplace_forget_limits(struct room_limits *l)
{
	uint64_t has;

	if ((inplace_read("memory.max", 0, &has) ||
		    inplace_read("memory/memory.limit_in_bytes", 0, &has)) &&
		has <= l->memory_bytes)
		l->memory_bytes = 0;
	if (inplace_read_cpus(&has) && has <= l->cpus_milli)
		l->cpus_milli = 0;
	if ((inplace_read("pids.max", 0, &has) || inplace_read("pids/pids.max", 0, &has)) &&
		has <= l->pids)
		l->pids = 0;
}

/* --- the room --- */

/* Have what a provider keeps for a room lie in the room's directory, apart from the mounts. */
static int inplace_keep_here(struct hold *h, struct cloche_err *err)
{
	_cleanup_fd_ int run = -1;
	char path[PATH_MAX];

	if (mkdirat(h->dir, "run", 0700) < 0)
		return err_sys(err, errno, "make a directory for the room");
	run = openat(h->dir, "run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run < 0 || mkdirat(run, h->spec.id, 0700) < 0 || fd_path(run, path) < 0 ||
		setenv("CLOCHE_RUNTIME_DIR", path, 1) < 0)
		return err_sys(err, errno, "make a directory for the room");
	return 0;
}

int inplace_room(struct hold *h, struct cloche_err *err)
{
	int r = inplace_keep_here(h, err);

	inplace_forget_limits(&h->spec.limits);
	return r < 0 ? r : landlock_provider.create(&landlock_provider, &h->spec, &h->room, err);
}
