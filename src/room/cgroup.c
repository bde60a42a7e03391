/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-LIMITS-OR-REFUSAL)
 *
 * Only the controllers whose limit is wanted are used. The first of these ways that can provide all
 * of them is taken: a version 2 group that was delegated to us (cgroup-v2.c); a scope of systemd
 * (cgroup-scope.c); a directory in each version 1 hierarchy. If none can provide all, the first
 * that can provide some is taken. A controller that cannot be had leaves a reason, and the caller
 * decides. The group of a room is named after it, so that what a crash leaves can be recognised and
 * removed.
 *
 * The room sees its group, read-only, at /sys/fs/cgroup (procfs.c), so that programs which size
 * themselves by their limits find them. For that the group in which the processes are has them in
 * version 2 too, and version 1 has a group in each hierarchy that the Java machine asks for.
 *
 * When memory runs out, the kernel kills a process of the room, not the whole room
 * (memory.oom.group stays off): a sandbox that is kept has to survive one greedy command, and both
 * versions behave alike. */
#include "room/cgroup.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "room/cgroup-file.h"
#include "room/cgroup-scope.h"
#include "room/cgroup-v2.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PERIOD_USEC = 100000, DESCENDANTS_MAX = 1000, SOCKETS_PART = 4, CPUSET_MAX = 65536 };

static void set_reason(
	struct cgroup *g, unsigned c, const char *what, const char *where, int errnum)
{
	snprintf(g->reason[c], sizeof(g->reason[c]), "%.250s%s%.100s%s%.40s", what,
		where ? " " : "", where ? where : "", errnum ? ": " : "",
		errnum ? err_errno_text(errnum) : "");
}

static unsigned wanted(const struct cgroup_limits *l)
{
	unsigned found = 0;

	for (unsigned c = 0; c < CGROUP_N; c++)
		found |= l->of[c] ? 1u << c : 0;
	return found;
}

/* Return whether the machine has no swap. */
static bool swap_is_off(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(65536);
	struct str s;

	if (fd_read_file(AT_FDCWD, "/proc/swaps", &text, NULL) < 0)
		return true;
	s = buf_str(&text);
	/* One line of headings, then one for each swap area. */
	return str_chr(s, '\n') + 1 >= s.n;
}

/* The file is missing if the kernel does not count swap. */
static int set_swap(const char *dir, const char *file, uint64_t bytes)
{
	int r = cgroup_write_number(dir, file, bytes);

	return r < 0 && swap_is_off() ? 0 : r;
}

int cgroup_bound_sockets(const struct cgroup *g, uint64_t memory_bytes)
{
	/* Version 1 counts the memory of internet sockets (UDP too) separately, and only if it has
	 * a limit. Version 2 counts it with everything else. */
	return g->version == 2
		       ? 0
		       : cgroup_write_number(cgroup_dir(g, CGROUP_MEMORY),
				 "memory.kmem.tcp.limit_in_bytes", memory_bytes / SOCKETS_PART);
}

static int set_memory(const struct cgroup *g, const char *dir, uint64_t bytes)
{
	int r;

	if (g->version == 2) {
		r = cgroup_write_number(dir, "memory.max", bytes);
		return r < 0 ? r : set_swap(dir, "memory.swap.max", 0);
	}
	r = cgroup_write_number(dir, "memory.limit_in_bytes", bytes);
	if (r == 0)
		r = set_swap(dir, "memory.memsw.limit_in_bytes", bytes);
	return r < 0 ? r : cgroup_bound_sockets(g, bytes);
}

static int set_cpu(const struct cgroup *g, const char *dir, uint64_t millis)
{
	uint64_t quota = millis * PERIOD_USEC / 1000;
	char text[64];
	int r;

	if (g->version == 2) {
		snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, PERIOD_USEC);
		return cgroup_write(dir, "cpu.max", text);
	}
	r = cgroup_write_number(dir, "cpu.cfs_period_us", PERIOD_USEC);
	return r < 0 ? r : cgroup_write_number(dir, "cpu.cfs_quota_us", quota);
}

static int set_pids(const struct cgroup *g, const char *dir, uint64_t pids)
{
	return cgroup_write_number(dir, "pids.max", pids);
}

/* Set the limits that can be had, in `inside` or (NULL) in the group itself. A failure there is a
 * reason; inside, the limits are only shown. */
static void set_limits(struct cgroup *g, const char *inside, const struct cgroup_limits *l)
{
	static int (*const set[CGROUP_N])(
		const struct cgroup *g, const char *dir, uint64_t value) = {
		[CGROUP_MEMORY] = set_memory, [CGROUP_CPU] = set_cpu, [CGROUP_PIDS] = set_pids};

	for (unsigned c = 0; c < CGROUP_N; c++) {
		const char *dir = inside ? inside : cgroup_dir(g, c);
		int r = l->of[c] && dir && !g->reason[c][0] ? set[c](g, dir, l->of[c]) : 0;

		if (r < 0 && !inside)
			set_reason(g, c, "cannot set the limit in", dir, -r);
	}
}

static void show_limits(struct cgroup *g, unsigned controllers, const struct cgroup_limits *l)
{
	_cleanup_(freep) char *inner = fs_join(g->path[0], CGROUP_INNER);

	if (inner && cgroup_v2_turn_on(g->path[0], controllers) == 0)
		set_limits(g, inner, l);
}

/* Make parent/cloche-NAME. Return its heap path, or NULL with errno. A leftover of the same name is
 * reused if it is empty. */
static char *cgroup_make_dir(const char *parent, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/" CGROUP_PREFIX "%s", parent, name) < 0)
		return NULL;
	/* The room may look at it, whatever our umask is. */
	if ((mkdir(path, 0755) == 0 ||
		    (errno == EEXIST && rmdir(path) == 0 && mkdir(path, 0755) == 0)) &&
		chmod(path, 0755) == 0)
		return path;
	free(path);
	return NULL;
}

/* The processes live in a group below the one with the limits. A process that may mount this
 * hierarchy inside (--nested) sees the tree from its own group down. If that were the group with
 * the limits, it could lift them, since for an ordinary user its files belong to root inside. */
static bool make_v2(const char *parent, const char *name, struct cgroup *g)
{
	_cleanup_(freep) char *inner = NULL, *dir = cgroup_make_dir(parent, name);

	if (!dir)
		return false;
	inner = fs_join(dir, CGROUP_INNER);
	if (!inner || mkdir(inner, 0755) < 0 || chmod(inner, 0755) < 0 ||
		(g->dirfd = open(inner, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		if (inner)
			rmdir(inner);
		rmdir(dir);
		return false;
	}
	(void)!cgroup_write_number(dir, "cgroup.max.descendants", DESCENDANTS_MAX);
	(void)!cgroup_write_number(dir, "cgroup.max.depth", CGROUP_DEPTH_MAX);
	g->path[0] = TAKE_PTR(dir);
	g->version = 2;
	return true;
}

/* Return the controllers whose hierarchies have a group of a room with these limits. The Java
 * machine believes no limit unless it finds all of memory, cpu, cpuacct and cpuset. */
static unsigned v1_used(unsigned controllers)
{
	const unsigned sizes = 1u << CGROUP_MEMORY | 1u << CGROUP_CPU;

	return controllers | 1u << CGROUP_CPUACCT |
	       (controllers & sizes ? sizes | 1u << CGROUP_CPUSET : 0);
}

/* A new group of this controller has no processors, and takes no process before it has. */
static int copy_cpuset(const char *parent, const char *dir)
{
	static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(CPUSET_MAX);
		_cleanup_(freep) char *from = fs_join(parent, files[i]);

		r = from ? fd_read_file(AT_FDCWD, from, &text, NULL) : -ENOMEM;
		if (r == 0)
			r = buf_add(&text, "", 1);
		if (r == 0)
			r = cgroup_write(dir, files[i], (const char *)buf_str(&text).p);
	}
	return r;
}

/* Do without a group that is there only to be seen. */
static void drop_unwanted(const struct cgroup_place *place, unsigned controllers, struct cgroup *g)
{
	const char *cpuset = g->path[CGROUP_CPUSET];

	if (cpuset && copy_cpuset(place->v1[CGROUP_CPUSET], cpuset) < 0) {
		(void)rmdir(cpuset);
		free(TAKE_PTR(g->path[CGROUP_CPUSET]));
	}
	for (unsigned c = 0; c < CGROUP_N; c++)
		if (!(controllers & 1u << c))
			g->reason[c][0] = '\0';
}

static void make_v1(
	const struct cgroup_place *place, const char *name, unsigned controllers, struct cgroup *g)
{
	unsigned c, other;

	for (c = 0; c < CGROUP_N; c++) {
		if (!(v1_used(controllers) & 1u << c))
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
		g->path[c] =
			other < c ? strdup(g->path[other]) : cgroup_make_dir(place->v1[c], name);
		if (g->path[c])
			g->version = 1;
		else
			set_reason(g, c, "cannot make a group in", place->v1[c], errno);
	}
	drop_unwanted(place, controllers, g);
}

/* Return the controllers (bits) that version 1 has. */
static unsigned v1_offers(const struct cgroup_place *p)
{
	unsigned set = 0;

	for (unsigned c = 0; c < CGROUP_N; c++)
		set |= p->v1[c] ? 1u << c : 0;
	return set;
}

enum kind { KIND_NONE, KIND_V2, KIND_SCOPE, KIND_V1 };

/* How a room's group would be made here. */
struct decision {
	enum kind kind;
	bool managed;
	struct cgroup_place place;
	struct cgroup_choice choice; /* the best of version 2 without asking systemd */
};

static void decision_done(struct decision *d)
{
	cgroup_choice_done(&d->choice);
	cgroup_place_done(&d->place);
}

static enum kind choose_kind(const struct decision *d, unsigned controllers)
{
	unsigned offered = d->managed ? cgroup_v2_offers(&d->place) & controllers : 0;
	unsigned v1 = v1_offers(&d->place);

	if (d->choice.have == controllers)
		return KIND_V2;
	if (offered == controllers)
		return KIND_SCOPE;
	if ((controllers & ~v1) == 0)
		return KIND_V1;
	if (d->choice.have)
		return KIND_V2;
	if (offered)
		return KIND_SCOPE;
	return v1 & (1u << CGROUP_MEMORY | 1u << CGROUP_PIDS | 1u << CGROUP_CPU) ? KIND_V1
										 : KIND_NONE;
}

static int decide(unsigned controllers, struct decision *ret, struct cloche_err *err)
{
	struct decision d = {.managed = cgroup_scope_is_managed(), .choice = CGROUP_CHOICE_INIT};
	int r = cgroup_find(&d.place, err);

	if (r < 0)
		return r;
	if (cgroup_v2_choose(&d.place, controllers, d.managed, &d.choice) < 0) {
		decision_done(&d);
		return err_nomem(err);
	}
	d.kind = choose_kind(&d, controllers);
	*ret = d;
	return 0;
}

/* Set the reason for every wanted controller that `choice` does not have. */
static void explain_lacking(struct cgroup *g, const struct decision *d,
	const struct cgroup_choice *choice, unsigned controllers)
{
	unsigned c;

	for (c = 0; c < CGROUP_N; c++) {
		if (!(controllers & ~choice->have & 1u << c))
			continue;
		if (d->place.v2)
			cgroup_v2_explain(&d->place, choice, c, d->managed, g->reason[c],
				sizeof(g->reason[c]));
		else
			set_reason(g, c, "no cgroup hierarchy is mounted here", NULL, 0);
	}
}

/* Make the group below the chosen parent. A failure is a reason, not an error. */
static void make_below(struct cgroup *g, const struct decision *d, struct cgroup_choice *choice,
	const char *name, unsigned controllers)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	unsigned c;
	int r = 0;

	if (choice->way != CGROUP_WAY_NONE)
		r = cgroup_v2_prepare(choice, controllers, &err);
	if (r == 0 && choice->have && !make_v2(choice->parent, name, g))
		r = err_sys(&err, errno, "make a control group in %s", choice->parent);
	if (r == 0) {
		explain_lacking(g, d, choice, controllers);
		return;
	}
	for (c = 0; c < CGROUP_N; c++)
		if (controllers & 1u << c)
			set_reason(g, c, err.message, NULL, 0);
}

static void make_in_scope(
	struct cgroup *g, struct decision *d, const char *name, unsigned controllers)
{
	struct cgroup_choice inside = CGROUP_CHOICE_INIT;
	struct cloche_err err = CLOCHE_ERR_INIT;
	unsigned c;

	g->scope = cgroup_scope_name(name);
	if (g->scope && cgroup_scope_enter(g->scope, controllers, &inside, &err) == 0) {
		make_below(g, d, &inside, name, controllers);
		cgroup_choice_done(&inside);
		return;
	}
	free(TAKE_PTR(g->scope));
	make_below(g, d, &d->choice, name, controllers);
	for (c = 0; c < CGROUP_N; c++)
		if (g->reason[c][0] && err.code) {
			size_t n = strlen(g->reason[c]);

			snprintf(g->reason[c] + n, sizeof(g->reason[c]) - n, "; %s", err.message);
		}
}

int cgroup_make(const char *parent, const char *name, const struct cgroup_limits *limits,
	struct cgroup *ret, struct cloche_err *err)
{
	struct cgroup g = CGROUP_INIT;
	unsigned controllers = wanted(limits);
	struct decision d;
	int r = 0;

	*ret = g;
	if (!controllers)
		return 0;
	if (parent) {
		if (!make_v2(parent, name, &g))
			return err_sys(err, errno, "make a control group in %s", parent);
	} else {
		r = decide(controllers, &d, err);
		if (r < 0)
			return r;
		if (d.kind == KIND_V1)
			make_v1(&d.place, name, controllers, &g);
		else if (d.kind == KIND_SCOPE)
			make_in_scope(&g, &d, name, controllers);
		else
			make_below(&g, &d, &d.choice, name, controllers);
		decision_done(&d);
	}
	set_limits(&g, NULL, limits);
	if (g.version == 2)
		show_limits(&g, controllers, limits);
	*ret = g;
	return 0;
}

static int plan_dir(const char *parent, const char *name, struct buf *out)
{
	return parent ? buf_printf(out, "cgroup %s/" CGROUP_PREFIX "%s\n", parent, name) : 0;
}

int cgroup_plan(const char *parent, const char *name, const struct cgroup_limits *limits,
	struct buf *out, struct cloche_err *err)
{
	unsigned controllers = wanted(limits), c;
	_cleanup_(freep) char *unit = NULL;
	struct decision d;
	int r;

	if (!controllers)
		return 0;
	if (parent)
		return plan_dir(parent, name, out) < 0 ? err_nomem(err) : 0;
	r = decide(controllers, &d, err);
	if (r < 0)
		return r;
	if (d.kind == KIND_SCOPE) {
		unit = cgroup_scope_name(name);
		r = unit ? buf_printf(out, "scope %s\n", unit) : -ENOMEM;
	}
	/* Also used if a scope is refused. */
	if (r == 0 && d.kind != KIND_V1)
		r = plan_dir(d.choice.parent, name, out);
	for (c = 0; c < CGROUP_N && r == 0 && d.kind == KIND_V1; c++)
		if (v1_used(controllers) & 1u << c)
			r = plan_dir(d.place.v1[c], name, out);
	decision_done(&d);
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
		r = cgroup_write_number(g->path[c], "cgroup.procs", (uint64_t)pid);
		if (r < 0)
			return err_sys(err, -r, "move the room into %s", g->path[c]);
	}
	return 0;
}

/* --- usage --- */

static const char *memory_peak_file(const struct cgroup *g)
{
	return g->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes";
}

/* Return the kernel's own peak, or the highest sample. */
static uint64_t peak(const char *dir, const char *file, uint64_t now, uint64_t *seen)
{
	uint64_t kept = cgroup_read_number(dir, file, NULL);

	*seen = MAX(*seen, now);
	return kept ? kept : *seen;
}

void cgroup_read_usage(struct cgroup *g, struct room_usage *ret)
{
	const char *memory = cgroup_dir(g, CGROUP_MEMORY), *pids = cgroup_dir(g, CGROUP_PIDS);
	bool v2 = g->version == 2;

	*ret = (struct room_usage){0};
	if (g->version == 0)
		return;
	if (v2) {
		ret->cpu_usec = cgroup_read_number(g->path[0], "cpu.stat", "usage_usec");
		ret->io_read_bytes = cgroup_sum_numbers(g->path[0], "io.stat", "rbytes");
		ret->io_write_bytes = cgroup_sum_numbers(g->path[0], "io.stat", "wbytes");
	} else {
		ret->cpu_usec =
			cgroup_read_number(g->path[CGROUP_CPUACCT], "cpuacct.usage", NULL) / 1000;
	}
	ret->memory_bytes =
		cgroup_read_number(memory, v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
	ret->memory_peak_bytes =
		peak(memory, memory_peak_file(g), ret->memory_bytes, &g->memory_peak);
	ret->oom_kills =
		cgroup_read_number(memory, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
	ret->pids = cgroup_read_number(pids, "pids.current", NULL);
	ret->pids_peak = peak(pids, "pids.peak", ret->pids, &g->pids_peak);
	ret->pids_refused = cgroup_read_number(pids, "pids.events", "max") > 0;
	if (v2 && !ret->pids_refused) {
		/* Older kernels count it only there. */
		_cleanup_(freep) char *inner = fs_join(g->path[0], CGROUP_INNER);

		ret->pids_refused = cgroup_read_number(inner, "pids.events", "max") > 0;
	}
}

bool cgroup_keeps_peaks(const struct cgroup *g)
{
	const char *memory = cgroup_dir(g, CGROUP_MEMORY), *pids = cgroup_dir(g, CGROUP_PIDS);

	return memory && cgroup_has_file(memory, memory_peak_file(g)) && pids &&
	       cgroup_has_file(pids, "pids.peak");
}
