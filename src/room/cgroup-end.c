/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a room's group: signals to its processes, its removal, and the same from a record
 * after a crash (INV-NOTHING-OUTLIVES). */
#include "base/clock.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "job/job.h"
#include "room/cgroup-file.h"
#include "room/cgroup-scope.h"
#include "room/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SCOPE_SUFFIX ".scope"
enum { REMOVE_PATIENCE_USEC = 1000000 };

/* Call fn for every group below dir, the lowest first. */
static void each_below(const char *dir, int depth, void (*fn)(const char *dir, int arg), int arg)
{
	DIR *list = depth > 0 ? opendir(dir) : NULL;
	struct dirent *e;

	while (list && (e = readdir(list))) {
		_cleanup_(freep) char *below = NULL;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		below = fs_join(dir, e->d_name);
		if (!below)
			continue;
		each_below(below, depth - 1, fn, arg);
		fn(below, arg);
	}
	if (list)
		closedir(list);
}

static void signal_one(pid_t pid, void *user)
{
	(void)kill(pid, *(const int *)user);
}

static void signal_group(const char *dir, int sig)
{
	(void)!cgroup_each_process(dir, signal_one, &sig);
}

static void signal_dir(const char *dir, int sig)
{
	if (sig == SIGKILL && cgroup_write(dir, "cgroup.kill", "1") == 0)
		return;
	each_below(dir, CGROUP_DEPTH_MAX, signal_group, sig);
	signal_group(dir, sig);
}

void cgroup_kill(const struct cgroup *g, int sig)
{
	unsigned c;

	for (c = 0; c < CGROUP_N; c++)
		if (g->path[c]) {
			/* The same processes are in every hierarchy. */
			signal_dir(g->path[c], sig);
			return;
		}
}

static void remove_group(const char *dir, int unused)
{
	(void)rmdir(dir);
}

/* Remove dir and what is below it: the inner group, and those that the room made there. */
static int remove_dir(const char *dir, uint64_t patience_usec)
{
	uint64_t end = clock_mono_usec() + patience_usec;
	_cleanup_(freep) char *inner = fs_join(dir, CGROUP_INNER);

	if (inner)
		(void)rmdir(inner);
	while (rmdir(dir) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_mono_usec() >= end)
			return -errno;
		/* Its processes are dying. Groups of version 1 do not tell when the last one has
		 * gone. */
		job_hold_cancel();
		(void)!job_wait(NULL, 0, 1);
		job_release_cancel();
		each_below(dir, CGROUP_DEPTH_MAX, remove_group, 0);
	}
	return 0;
}

void cgroup_remove(struct cgroup *g)
{
	unsigned c;

	g->dirfd = fd_close(g->dirfd);
	for (c = 0; c < CGROUP_N; c++) {
		if (g->path[c])
			(void)remove_dir(g->path[c], REMOVE_PATIENCE_USEC);
		free(g->path[c]);
	}
	free(g->scope);
	*g = CGROUP_INIT;
}

int cgroup_record(const struct cgroup *g, struct buf *out)
{
	unsigned c;
	int r = g->scope ? buf_printf(out, "scope %s\n", g->scope) : 0;

	for (c = 0; c < CGROUP_N && r == 0; c++)
		if (g->path[c])
			r = buf_printf(out, "cgroup %s\n", g->path[c]);
	return r;
}

static int reap_scope(struct str unit, struct cloche_err *err)
{
	_cleanup_(freep) char *name = NULL;
	size_t i;
	bool ours = str_starts(unit, STR(CGROUP_PREFIX)) && str_ends(unit, STR(SCOPE_SUFFIX));

	for (i = 0; i < unit.n; i++)
		ours &= isalnum((unsigned char)unit.p[i]) || strchr("-_.", unit.p[i]);
	if (!ours)
		return err_set(err, E_CORRUPT, "not the name of a scope of ours");
	name = str_dup(unit);
	return name ? cgroup_scope_stop(name, err) : err_nomem(err);
}

bool cgroup_is_there(struct str line)
{
	_cleanup_(freep) char *dir = str_dup(str_from_index(line, strlen("cgroup ")));

	return !dir || access(dir, F_OK) == 0 || errno != ENOENT;
}

int cgroup_reap(struct str line, struct cloche_err *err)
{
	_cleanup_(freep) char *dir = NULL;
	uint64_t end = clock_mono_usec() + REMOVE_PATIENCE_USEC;
	const char *slash;
	struct statfs fs;
	int r;

	if (str_starts(line, STR("scope ")))
		return reap_scope(str_from_index(line, strlen("scope ")), err);
	if (!str_starts(line, STR("cgroup /")) || memchr(line.p, '\0', line.n))
		return err_set(err, E_CORRUPT, "not the record of a control group");
	dir = str_dup(str_from_index(line, strlen("cgroup ")));
	if (!dir)
		return err_nomem(err);
	slash = strrchr(dir, '/');
	if (strstr(dir, "/../") || strncmp(slash + 1, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) != 0)
		return err_set(err, E_CORRUPT, "%s is no group of ours", dir);
	if (statfs(dir, &fs) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "look at %s", dir);
	if (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC)
		return err_set(err, E_CORRUPT, "%s is no control group", dir);
	/* Something may be forking while it is killed. */
	do {
		signal_dir(dir, SIGKILL);
		r = remove_dir(dir, 20 * USEC_PER_MSEC);
	} while (r == -EBUSY && clock_mono_usec() < end);
	return r < 0 ? err_sys(err, -r, "remove %s", dir) : 0;
}
