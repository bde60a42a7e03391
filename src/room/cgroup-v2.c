/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * In version 2 a group that has processes cannot enable controllers for its children, and moving a
 * process requires write access to cgroup.procs of the common ancestor of the old and the new
 * group. So the room's group is best made beside ours, below an ancestor that was delegated to us.
 * If only our own group was delegated, its processes first move into a leaf below it, and the
 * room's group is made beside that leaf. Later rooms then find the first case. The leaf stays as
 * long as its processes do: taking the controllers back would lift the limits of other rooms.
 *
 * A limit of our own group (or of one between it and the parent) applies to us, but would not apply
 * to a room beside it. So the search never goes above a group that has a limit.
 *
 * A service manager that owns the hierarchy may turn controllers off again in groups that it did
 * not delegate, and our limits with them. So in that case only groups with its mark are used: the
 * extended attribute "user.delegate" (or "trusted.delegate"). The group of a user's own manager has
 * the mark too, but belongs to that manager. */
#include "room/cgroup-v2.h"
#include "room/cgroup-file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LEAF CGROUP_PREFIX "outside"
enum { MOVE_TRIES = 16 };

/* Return the controllers of `among` that the list in dir/file has. */
static unsigned listed(const char *dir, const char *file, unsigned among)
{
	unsigned c, have = 0;

	for (c = 0; c < CGROUP_N; c++)
		if (among & 1u << c && cgroup_file_has_word(dir, file, cgroup_controller_name(c)))
			have |= 1u << c;
	return have;
}

static bool may_write(const char *dir, const char *file)
{
	char path[4096];

	return snprintf(path, sizeof(path), "%s/%s", dir, file) < (int)sizeof(path) &&
	       access(path, W_OK) == 0;
}

/* Only the root of the hierarchy has no type, and may have processes beside children. */
static bool is_root(const char *dir)
{
	return !cgroup_has_file(dir, "cgroup.type");
}

static bool is_domain(const char *dir)
{
	return is_root(dir) || cgroup_file_has_word(dir, "cgroup.type", "domain");
}

static void ignore_process(pid_t pid, void *user)
{
}

static bool has_processes(const char *dir)
{
	return cgroup_each_process(dir, ignore_process, NULL) != 0;
}

/* Return how a room's group can be made below `dir`; own: it is the group that we are in. */
static enum cgroup_way judge(const char *dir, bool own, unsigned wanted, unsigned *ret_have)
{
	unsigned down = listed(dir, "cgroup.subtree_control", wanted);
	unsigned here = listed(dir, "cgroup.controllers", wanted);

	if (!may_write(dir, "") || !may_write(dir, "cgroup.procs") || !is_domain(dir))
		return CGROUP_WAY_NONE;
	*ret_have = down;
	if ((here & ~down) == 0 || !may_write(dir, "cgroup.subtree_control"))
		return down ? CGROUP_WAY_READY : CGROUP_WAY_NONE;
	if (is_root(dir) || !has_processes(dir)) {
		*ret_have = here;
		return CGROUP_WAY_ENABLE;
	}
	if (own) {
		*ret_have = here;
		return CGROUP_WAY_LEAF;
	}
	return down ? CGROUP_WAY_READY : CGROUP_WAY_NONE;
}

/* Return whether the group has a limit. */
static bool has_limit(const char *dir)
{
	static const char *const files[] = {"memory.max", "memory.high", "pids.max", "cpu.max"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (cgroup_has_file(dir, files[i]) && !cgroup_file_has_word(dir, files[i], "max"))
			return true;
	return false;
}

static bool is_marked(const char *dir)
{
	static const char *const names[] = {"user.delegate", "trusted.delegate"};
	char value[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (getxattr(dir, names[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return false;
}

/* Return whether this is user@1000.service: it has the mark, but everything below it is run by that
 * user's manager. */
static bool is_managers_own(const char *dir)
{
	const char *name = strrchr(dir, '/');

	return name && strncmp(name, "/user@", 6) == 0;
}

/* Cut off the last component; return false at `top`. */
static bool go_up(char *dir, const char *top)
{
	char *slash = strrchr(dir, '/');

	if (strcmp(dir, top) == 0 || !slash || slash == dir)
		return false;
	*slash = '\0';
	return true;
}

/* Return the highest group that may be used: the one with the manager's mark. Heap; NULL: none. */
static char *find_delegation(const struct cgroup_place *place)
{
	char *dir = strdup(place->v2);

	if (!dir)
		return NULL;
	do
		if (is_marked(dir)) {
			if (is_managers_own(dir))
				break;
			return dir;
		}
	while (go_up(dir, place->v2_mount));
	free(dir);
	return NULL;
}

static int bits(unsigned set)
{
	return __builtin_popcount(set);
}

/* Choose dir if it is better than the best so far. */
static int consider(const char *dir, bool own, unsigned wanted, struct cgroup_choice *best)
{
	struct cgroup_choice c = CGROUP_CHOICE_INIT;

	c.way = judge(dir, own, wanted, &c.have);
	if (c.way == CGROUP_WAY_NONE || bits(c.have) < bits(best->have) ||
		(bits(c.have) == bits(best->have) && c.way >= best->way))
		return 0;
	c.parent = strdup(dir);
	if (!c.parent)
		return -ENOMEM;
	cgroup_choice_done(best);
	*best = c;
	return 0;
}

int cgroup_v2_choose(
	const struct cgroup_place *place, unsigned wanted, bool managed, struct cgroup_choice *ret)
{
	_cleanup_(freep) char *dir = NULL, *top = NULL;
	struct cgroup_choice best = CGROUP_CHOICE_INIT;
	bool own = true;
	int r = 0;

	*ret = best;
	if (!place->v2)
		return 0;
	top = managed ? find_delegation(place) : strdup(place->v2_mount);
	if (managed && !top)
		return 0;
	dir = strdup(place->v2);
	if (!dir || !top)
		return -ENOMEM;
	do {
		r = consider(dir, own, wanted, &best);
		own = false;
	} while (r == 0 && !has_limit(dir) && go_up(dir, top));
	if (r < 0)
		cgroup_choice_done(&best);
	*ret = best;
	return r;
}

int cgroup_v2_choose_here(const char *dir, unsigned wanted, struct cgroup_choice *ret)
{
	*ret = CGROUP_CHOICE_INIT;
	return consider(dir, true, wanted, ret);
}

void cgroup_choice_done(struct cgroup_choice *c)
{
	free(c->parent);
	*c = CGROUP_CHOICE_INIT;
}

static void move_one(pid_t pid, void *user)
{
	/* A process that has ended does not matter; one that cannot be moved shows up as EBUSY. */
	(void)!cgroup_write_number(user, "cgroup.procs", (uint64_t)pid);
}

int cgroup_v2_turn_on(const char *dir, unsigned controllers)
{
	char text[64] = "";
	size_t n = 0;
	unsigned c;

	for (c = 0; c < CGROUP_N; c++)
		if (controllers & 1u << c)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, "+%s ", cgroup_controller_name(c));
	return n ? cgroup_write(dir, "cgroup.subtree_control", text) : 0;
}

/* A process may fork meanwhile, so repeat until none is left. */
static int move_and_turn_on(const char *dir, unsigned controllers)
{
	_cleanup_(freep) char *leaf = NULL;
	int i, r = -EBUSY;

	if (asprintf(&leaf, "%s/" LEAF, dir) < 0) {
		leaf = NULL;
		return -ENOMEM;
	}
	if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
		return -errno;
	for (i = 0; i < MOVE_TRIES && r == -EBUSY; i++) {
		if (cgroup_each_process(dir, move_one, leaf) < 0)
			return -EIO;
		r = cgroup_v2_turn_on(dir, controllers);
	}
	if (r < 0)
		(void)rmdir(leaf);
	return r;
}

int cgroup_v2_prepare(struct cgroup_choice *choice, unsigned wanted, struct cloche_err *err)
{
	const char *dir = choice->parent;
	unsigned on = listed(dir, "cgroup.controllers", wanted);
	int r = 0;

	if (choice->way == CGROUP_WAY_LEAF)
		r = move_and_turn_on(dir, on);
	else if (choice->way == CGROUP_WAY_ENABLE)
		r = cgroup_v2_turn_on(dir, on);
	if (r < 0)
		return err_sys(err, -r, "hand the controllers of %s down", dir);
	if (choice->way != CGROUP_WAY_READY)
		(void)!cgroup_v2_turn_on(dir, listed(dir, "cgroup.controllers", 1u << CGROUP_IO));
	choice->have = listed(dir, "cgroup.subtree_control", wanted);
	return 0;
}

unsigned cgroup_v2_offers(const struct cgroup_place *place)
{
	return place->v2 ? listed(place->v2_mount, "cgroup.controllers", ~0u) : 0;
}

static bool is_read_only(const char *dir)
{
	struct statvfs fs;

	return statvfs(dir, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

void cgroup_v2_explain(const struct cgroup_place *place, const struct cgroup_choice *choice,
	enum cgroup_controller c, bool managed, char *ret, size_t size)
{
	const char *name = cgroup_controller_name(c);

	if (choice->way != CGROUP_WAY_NONE)
		snprintf(ret, size, "the controller %s was not handed down to %s", name,
			choice->parent);
	else if (!(cgroup_v2_offers(place) & 1u << c))
		snprintf(ret, size, "the cgroup hierarchy %s does not have the controller %s",
			place->v2_mount, name);
	else if (is_read_only(place->v2_mount))
		snprintf(ret, size, "%s is mounted read-only, as in a container", place->v2_mount);
	else if (managed)
		snprintf(ret, size, "systemd has delegated no control group to us (we are in %s)",
			place->v2);
	else if (may_write(place->v2, ""))
		snprintf(ret, size, "the controller %s was not handed down to %s", name, place->v2);
	else
		snprintf(ret, size,
			"no cgroup with the controller %s that we may write to: neither %s nor one "
			"above it",
			name, place->v2);
}
