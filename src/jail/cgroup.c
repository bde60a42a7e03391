/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-LIMITS-OR-REFUSAL)
 *
 * Only the controllers whose limit is wanted are used. Version 2 is tried first and only where one
 * group can carry all of them; else each controller gets a directory of its own in its version 1
 * hierarchy. A controller that cannot be had leaves its reason behind and the caller decides. The
 * group of a room is named after it, so that what a crash leaves can be recognised and removed. */
#include "jail/cgroup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/fs.h"
#include "base/parse.h"
#include "jail/cgroup-find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "cloche-"
enum { PERIOD_USEC = 100000, REMOVE_PATIENCE_USEC = 1000000, PROCS_MAX = 1 << 20 };

static int write_value(const char *dir, const char *file, const char *value)
{
	_cleanup_(freep) char *path = fs_join(dir, file);
	_cleanup_fd_ int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

	if (!path)
		return -ENOMEM;
	return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

static int write_number(const char *dir, const char *file, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return write_value(dir, file, text);
}

/* The number after `key` and a space in dir/file (key NULL: the file is the number); 0 where it is
 * not there. */
static uint64_t read_number(const char *dir, const char *file, const char *key)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(65536);
	_cleanup_(freep) char *path = dir ? fs_join(dir, file) : NULL;
	struct str rest;
	uint64_t v = 0;

	if (!path || fs_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return 0;
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_prefix(rest, str_chr(rest, '\n'));

		rest = str_from_index(rest, line.n + 1);
		if (key) {
			if (!str_starts(line, str_from(key)) || str_chr(line, ' ') != strlen(key))
				continue;
			line = str_from_index(line, strlen(key) + 1);
		}
		if (parse_u64(line, UINT64_MAX, &v) == 0)
			return v;
	}
	return 0;
}

static void set_reason(
	struct cgroup *g, unsigned c, const char *what, const char *where, int errnum)
{
	snprintf(g->reason[c], sizeof(g->reason[c]), "%s%s%s%s%s", what, where ? " " : "",
		where ? where : "", errnum ? ": " : "", errnum ? strerrordesc_np(errnum) : "");
}

static unsigned wanted(const struct cgroup_limits *l)
{
	return (l->memory_bytes ? 1u << CGROUP_MEMORY : 0) | (l->pids ? 1u << CGROUP_PIDS : 0) |
	       (l->cpus_milli ? 1u << CGROUP_CPU : 0);
}

static void set_memory(struct cgroup *g, const char *dir, uint64_t bytes)
{
	int r;

	if (g->version == 2) {
		r = write_number(dir, "memory.max", bytes);
		if (r == 0) {
			r = write_number(dir, "memory.swap.max", 0);
			/* A kernel without swap accounting has no such file. */
			r = r == -ENOENT ? 0 : r;
		}
		if (r == 0)
			(void)write_value(dir, "memory.oom.group", "1");
	} else {
		r = write_number(dir, "memory.limit_in_bytes", bytes);
		if (r == 0 && write_number(dir, "memory.memsw.limit_in_bytes", bytes) < 0)
			r = write_number(dir, "memory.swappiness", 0);
	}
	if (r < 0)
		set_reason(g, CGROUP_MEMORY, "cannot set the limit in", dir, -r);
}

static void set_cpu(struct cgroup *g, const char *dir, uint64_t millis)
{
	uint64_t quota = millis * PERIOD_USEC / 1000;
	char text[64];
	int r;

	if (g->version == 2) {
		snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, PERIOD_USEC);
		r = write_value(dir, "cpu.max", text);
	} else {
		r = write_number(dir, "cpu.cfs_period_us", PERIOD_USEC);
		if (r == 0)
			r = write_number(dir, "cpu.cfs_quota_us", quota);
	}
	if (r < 0)
		set_reason(g, CGROUP_CPU, "cannot set the limit in", dir, -r);
}

static const char *dir_of(const struct cgroup *g, enum cgroup_controller c)
{
	return g->version == 2 ? g->path[0] : g->path[c];
}

static void set_limits(struct cgroup *g, const struct cgroup_limits *l)
{
	const char *dir;
	int r;

	if (l->memory_bytes && (dir = dir_of(g, CGROUP_MEMORY)))
		set_memory(g, dir, l->memory_bytes);
	if (l->cpus_milli && (dir = dir_of(g, CGROUP_CPU)))
		set_cpu(g, dir, l->cpus_milli);
	if (l->pids && (dir = dir_of(g, CGROUP_PIDS))) {
		r = write_number(dir, "pids.max", l->pids);
		if (r < 0)
			set_reason(g, CGROUP_PIDS, "cannot set the limit in", dir, -r);
	}
}

/* Makes parent/cloche-NAME; heap path, or NULL with errno. A leftover of the same name is taken
 * over if it is empty. */
static char *make_dir(const char *parent, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/" PREFIX "%s", parent, name) < 0)
		return NULL;
	if (mkdir(path, 0755) == 0 ||
		(errno == EEXIST && rmdir(path) == 0 && mkdir(path, 0755) == 0))
		return path;
	free(path);
	return NULL;
}

static bool make_v2(const char *parent, const char *name, struct cgroup *g)
{
	g->path[0] = make_dir(parent, name);
	if (!g->path[0])
		return false;
	g->dirfd = open(g->path[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (g->dirfd < 0) {
		rmdir(g->path[0]);
		free(TAKE_PTR(g->path[0]));
		return false;
	}
	g->version = 2;
	return true;
}

static void make_v1(
	const struct cgroup_place *place, const char *name, unsigned controllers, struct cgroup *g)
{
	unsigned c, other;

	for (c = 0; c < CGROUP_N; c++) {
		if (!(controllers & 1u << c))
			continue;
		if (!place->v1[c]) {
			set_reason(g, c, "no cgroup hierarchy here has the controller",
				cgroup_controller_name(c), 0);
			continue;
		}
		/* Two controllers may share a hierarchy: "cpu,cpuacct". */
		for (other = 0; other < c; other++)
			if (g->path[other] && strcmp(place->v1[other], place->v1[c]) == 0)
				break;
		g->path[c] = other < c ? strdup(g->path[other]) : make_dir(place->v1[c], name);
		if (g->path[c])
			g->version = 1;
		else
			set_reason(g, c, "cannot make a group in", place->v1[c], errno);
	}
}

static bool v1_has_all(const struct cgroup_place *p, unsigned controllers)
{
	unsigned c;

	for (c = 0; c < CGROUP_N; c++)
		if (controllers & 1u << c && !p->v1[c])
			return false;
	return true;
}

/* In words, where version 2 is all there is and nobody delegated it. */
static void no_delegation(struct cgroup *g, const char *own, unsigned controllers)
{
	unsigned c;

	for (c = 0; c < CGROUP_N; c++)
		if (controllers & 1u << c)
			set_reason(g, c,
				"no group above us that we may write to has the controller", own,
				0);
}

int cgroup_make(const char *parent, const char *name, const struct cgroup_limits *limits,
	struct cgroup *ret, struct cloche_err *err)
{
	struct cgroup g = CGROUP_INIT;
	struct cgroup_place place = {0};
	unsigned controllers = wanted(limits);
	char *found = NULL;
	int r = 0;

	*ret = g;
	if (!controllers)
		return 0;
	if (parent) {
		if (!make_v2(parent, name, &g))
			return err_sys(err, errno, "make a control group in %s", parent);
	} else {
		r = cgroup_find(&place, err);
		if (r < 0)
			return r;
		found = place.v2 ? cgroup_find_v2_parent(place.v2, controllers) : NULL;
		if (!found || !make_v2(found, name, &g)) {
			if (v1_has_all(&place, controllers) || !place.v2)
				make_v1(&place, name, controllers | 1u << CGROUP_CPUACCT, &g);
			else
				no_delegation(&g, place.v2, controllers);
		}
		free(found);
		cgroup_place_done(&place);
	}
	set_limits(&g, limits);
	*ret = g;
	return 0;
}

static int plan_dir(const char *parent, const char *name, struct buf *out)
{
	return parent ? buf_printf(out, "cgroup %s/" PREFIX "%s\n", parent, name) : 0;
}

int cgroup_plan(const char *parent, const char *name, const struct cgroup_limits *limits,
	struct buf *out, struct cloche_err *err)
{
	unsigned controllers = wanted(limits), c;
	struct cgroup_place place = {0};
	char *found;
	int r;

	if (!controllers)
		return 0;
	if (parent)
		return plan_dir(parent, name, out) < 0 ? err_nomem(err) : 0;
	r = cgroup_find(&place, err);
	if (r < 0)
		return r;
	found = place.v2 ? cgroup_find_v2_parent(place.v2, controllers) : NULL;
	r = plan_dir(found, name, out);
	for (c = 0; c < CGROUP_N && r == 0; c++)
		if ((controllers | 1u << CGROUP_CPUACCT) & 1u << c)
			r = plan_dir(place.v1[c], name, out);
	free(found);
	cgroup_place_done(&place);
	return r < 0 ? err_nomem(err) : 0;
}

const char *cgroup_lacks(const struct cgroup *g, enum cgroup_controller c)
{
	return g->reason[c][0] ? g->reason[c] : NULL;
}

int cgroup_add(const struct cgroup *g, pid_t pid, struct cloche_err *err)
{
	unsigned c;
	int r;

	for (c = 0; c < CGROUP_N; c++) {
		if (!g->path[c])
			continue;
		r = write_number(g->path[c], "cgroup.procs", (uint64_t)pid);
		if (r < 0)
			return err_sys(err, -r, "move the room into %s", g->path[c]);
	}
	return 0;
}

void cgroup_read_usage(const struct cgroup *g, struct cgroup_usage *ret)
{
	const char *memory = dir_of(g, CGROUP_MEMORY), *pids = dir_of(g, CGROUP_PIDS);
	bool v2 = g->version == 2;

	*ret = (struct cgroup_usage){0};
	if (g->version == 0)
		return;
	if (v2)
		ret->cpu_usec = read_number(g->path[0], "cpu.stat", "usage_usec");
	else
		ret->cpu_usec = read_number(g->path[CGROUP_CPUACCT], "cpuacct.usage", NULL) / 1000;
	ret->memory_bytes =
		read_number(memory, v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
	ret->memory_peak_bytes =
		read_number(memory, v2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL);
	ret->oom_kills =
		read_number(memory, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
	ret->pids = read_number(pids, "pids.current", NULL);
	ret->pids_peak = read_number(pids, "pids.peak", NULL);
	ret->pids_refused = read_number(pids, "pids.events", "max") > 0;
}

static void signal_dir(const char *dir, int sig)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(PROCS_MAX);
	_cleanup_(freep) char *path = fs_join(dir, "cgroup.procs");
	struct str rest;

	if (!path || fs_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return;
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_prefix(rest, str_chr(rest, '\n'));
		uint64_t pid;

		rest = str_from_index(rest, line.n + 1);
		/* 0 is a process of another pid namespace: never "our own group" of kill(). */
		if (parse_u64(line, INT32_MAX, &pid) == 0 && pid > 1)
			(void)kill((pid_t)pid, sig);
	}
}

void cgroup_kill(const struct cgroup *g, int sig)
{
	unsigned c;

	if (g->version == 2 && sig == SIGKILL && write_value(g->path[0], "cgroup.kill", "1") == 0)
		return;
	for (c = 0; c < CGROUP_N; c++)
		if (g->path[c]) {
			/* The same processes are in every hierarchy. */
			signal_dir(g->path[c], sig);
			return;
		}
}

static int remove_dir(const char *dir, uint64_t patience_usec)
{
	const struct timespec pause = {.tv_nsec = 500000};
	uint64_t end = clock_mono_usec() + patience_usec;

	while (rmdir(dir) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_mono_usec() >= end)
			return -errno;
		nanosleep(&pause, NULL);
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
	*g = CGROUP_INIT;
}

int cgroup_record(const struct cgroup *g, struct buf *out)
{
	unsigned c;
	int r = 0;

	for (c = 0; c < CGROUP_N && r == 0; c++)
		if (g->path[c])
			r = buf_printf(out, "cgroup %s\n", g->path[c]);
	return r;
}

int cgroup_reap(struct str line, struct cloche_err *err)
{
	_cleanup_(freep) char *dir = NULL;
	uint64_t end = clock_mono_usec() + REMOVE_PATIENCE_USEC;
	const char *slash;
	struct statfs fs;
	int r;

	if (!str_starts(line, STR("cgroup /")) || memchr(line.p, '\0', line.n))
		return err_set(err, E_CORRUPT, "not the record of a control group");
	dir = str_dup(str_from_index(line, strlen("cgroup ")));
	if (!dir)
		return err_nomem(err);
	slash = strrchr(dir, '/');
	if (strstr(dir, "/../") || strncmp(slash + 1, PREFIX, strlen(PREFIX)) != 0)
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
