/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A feature is there if using it works. Each probe does in a child process what a room would do,
 * and sends back the error object or a word about what it found. Namespaces, mounts and rules
 * vanish with the child; the only thing that is made outside, a control group, is removed at once.
 *
 * Other threads may hold locks when the child is made. fork() keeps those of the C library usable
 * in it. ns_clone() does not, so the probes in namespaces may take none, as malloc() does. */
#include "room/probe.h"
#include "base/fd.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/netcapture.h"
#include "jail/seccomp.h"
#include "jail/sys.h"
#include "room/cgroup.h"
#include "room/idmap.h"
#include "room/mount.h"
#include "room/ns.h"
#include "room/parts.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum where { HERE, FORKED, IN_NAMESPACES };

static int try_userns(char *detail, struct cloche_err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER) < 0)
		return ns_fail(errno, CLONE_NEWUSER, "make a user namespace", err);
	return idmap_write_self(&(struct idmap){.uid = uid, .gid = gid}, uid, gid, err);
}

/* The network of a room is made separately from its other namespaces (ns.h). */
static int enter_new_network(struct cloche_err *err)
{
	return unshare(CLONE_NEWNET) < 0
		       ? ns_fail(errno, CLONE_NEWNET, "make a network namespace", err)
		       : 0;
}

static int try_namespaces(char *detail, struct cloche_err *err)
{
	int r = enter_new_network(err);

	snprintf(detail, PROVIDER_TEXT_MAX, "user, mount, pid, network, ipc, uts");
	return r < 0 ? r : ns_settle("probe", err);
}

/* Make a tmpfs to work in, attached where no path lookup reaches it. */
static int probe_make_scratch(struct cloche_err *err)
{
	int r = mount_make_private(err), tree;

	if (r < 0)
		return r;
	tree = mount_new("tmpfs", NULL, PARTS_QUIET, err);
	if (tree < 0)
		return tree;
	r = mount_attach(tree, AT_FDCWD, "/", "a tmpfs", err);
	return r < 0 ? r : tree;
}

static int try_proc(char *detail, struct cloche_err *err)
{
	static const char *const dirs[] = {"run", "run/cloche", "run/cloche/empty", "dev", NULL};
	int scratch = probe_make_scratch(err), r;

	if (scratch < 0)
		return scratch;
	r = parts_mkdirs(scratch, dirs, 0755, err);
	if (r == 0)
		r = parts_bind(scratch, "/dev/null", "dev/null", false, MOUNT_ATTR_NOSUID, err);
	return r < 0 ? r : procfs_make(scratch, false, err);
}

/* What lies below is of the host's: overlays may be stacked only so high. */
static int try_overlay(char *detail, struct cloche_err *err)
{
	static const struct mount_option options[] = {{"lowerdir", "/usr"}, {"upperdir", "upper"},
		{"workdir", "work"}, {"userxattr", NULL}, {NULL, NULL}};
	static const char *const dirs[] = {"upper", "work", NULL};
	int scratch = probe_make_scratch(err), r;

	r = scratch < 0 ? scratch : parts_mkdirs(scratch, dirs, 0755, err);
	if (r == 0 && fchdir(scratch) < 0)
		r = err_sys(err, errno, "enter a tmpfs");
	return r < 0 ? r : mount_new("overlay", options, PARTS_QUIET, err);
}

/* The child waits in its own namespaces while the parent maps them. The current directory is what a
 * run from here would mount. */
static int try_idmap(char *detail, struct cloche_err *err)
{
	struct idmap ids = idmap_choose("probe", 0, 0);
	int tree, pidfd = -1, userns = -1, r;
	pid_t pid;

	if (!ids.range) {
		snprintf(detail, PROVIDER_TEXT_MAX, "not needed: a sandbox has one id alone");
		return 0;
	}
	pid = ns_clone(-1, &pidfd, err);
	if (pid < 0)
		return pid;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	r = idmap_write_range(&ids, pid, err);
	if (r == 0)
		r = idmap_open_ns(pid, &userns, err);
	if (r == 0) {
		tree = mount_clone(AT_FDCWD, ".", 0, err);
		r = tree < 0 ? tree : mount_idmap_top(tree, userns);
		if (tree >= 0 && r < 0)
			r = err_sys(err, -r,
				"the file system of this directory cannot show files with their "
				"owners");
	}
	snprintf(detail, PROVIDER_TEXT_MAX, "ids from %u", ids.base);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

static int try_capture(char *detail, struct cloche_err *err)
{
	struct netcapture n = NETCAPTURE_INIT;
	int r = enter_new_network(err);

	if (r == 0)
		r = netcapture_setup(&n, err);
	snprintf(detail, PROVIDER_TEXT_MAX, "%s", n.tcp6 >= 0 ? "IPv4 and IPv6" : "IPv4 only");
	return r;
}

static int try_seccomp(char *detail, struct cloche_err *err)
{
	int r = caps_no_new_privs(err);

	return r < 0 ? r : seccomp_install(SECCOMP_ROOM, err);
}

static int try_landlock(char *detail, struct cloche_err *err)
{
	int abi = landlock_abi();

	snprintf(detail, PROVIDER_TEXT_MAX, "ABI %d", abi);
	return abi > 0 ? 0 : err_set(err, E_UNSUPPORTED, "the kernel has no Landlock");
}

static int try_cgroup(char *detail, struct cloche_err *err)
{
	const struct cgroup_limits limits = {
		.of = {[CGROUP_MEMORY] = 1 << 30, [CGROUP_CPU] = 1000, [CGROUP_PIDS] = 1000}};
	struct cgroup g = CGROUP_INIT;
	char name[32];
	unsigned c;
	int r;

	snprintf(name, sizeof(name), "probe-%d", getpid());
	r = cgroup_make(NULL, name, &limits, &g, err);
	if (r < 0)
		return r;
	for (c = CGROUP_MEMORY; c <= CGROUP_CPU && r == 0; c++)
		if (cgroup_lacks(&g, c))
			r = err_set(err, E_LIMITS_UNAVAILABLE, "%s", cgroup_lacks(&g, c));
	snprintf(detail, PROVIDER_TEXT_MAX, "version %d, %s: %.190s", g.version,
		g.scope          ? "a scope of systemd's"
		: g.version == 2 ? "delegated"
				 : "a group of our own",
		g.path[0] ? g.path[0] : "-");
	cgroup_remove(&g);
	return r;
}

static const struct {
	const char *name;
	enum where where;
	bool required;
	int (*try)(char *detail, struct cloche_err *err);
	const char *remedy; /* if the error has no hint of its own */
} probes[PROBE_END_] = {
	[PROBE_USERNS] = {"user namespace", FORKED, true, try_userns,
		"cloche needs user namespaces"},
	[PROBE_NAMESPACES] = {"namespaces", IN_NAMESPACES, true, try_namespaces,
		"an outer container may forbid them: see its seccomp profile"},
	[PROBE_PROC] = {"mounts and /proc", IN_NAMESPACES, true, try_proc,
		"an outer container may forbid mounts"},
	[PROBE_OVERLAY] = {"overlay", IN_NAMESPACES, false, try_overlay,
		"--root DIR does not work; --root host does. Linux 5.11 or newer has it"},
	[PROBE_IDMAP] = {"idmapped mounts", FORKED, true, try_idmap,
		"root cannot mount it writable: use a directory on ext4, xfs, btrfs or tmpfs (in a "
		"container: a volume), or run cloche as an ordinary user, or with --no-workspace"},
	[PROBE_CAPTURE] = {"network capture", IN_NAMESPACES, false, try_capture,
		"--allow does not work; rooms without network do"},
	[PROBE_SECCOMP] = {"seccomp", FORKED, true, try_seccomp,
		"the kernel needs seccomp filters"},
	[PROBE_LANDLOCK] = {"landlock", HERE, false, try_landlock,
		"rooms do without this second wall; the first ones are enough"},
	[PROBE_CGROUP] = {"limits (control groups)", FORKED, false, try_cgroup,
		"--memory, --cpus and, for root, --pids need one. systemd gives one if its bus "
		"answers (XDG_RUNTIME_DIR, loginctl enable-linger); or root gives you a group: "
		"the directory, its cgroup.procs and cgroup.subtree_control"},
};

struct answer {
	struct cloche_err err;
	char detail[PROVIDER_TEXT_MAX];
};

static int enter(enum where where, struct cloche_err *err)
{
	_cleanup_fd_ int pidfd = -1;

	return where == IN_NAMESPACES ? ns_clone(-1, &pidfd, err) : fork();
}

static void run_child(enum probe_feature f, int out, uid_t uid, gid_t gid)
{
	struct answer a = {0};
	int r = 0;

	if (probes[f].where == IN_NAMESPACES)
		r = idmap_write_self(&(struct idmap){.uid = uid, .gid = gid}, uid, gid, &a.err);
	if (r == 0)
		r = probes[f].try(a.detail, &a.err);
	if (r < 0 && a.err.code == 0)
		a.err.code = E_INTERNAL;
	_exit(fd_write_all(out, &a, sizeof(a)) < 0);
}

static void ask_child(enum probe_feature f, struct answer *ret)
{
	int fds[2], r = fd_pipe(fds);
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid;

	if (r < 0) {
		err_sys(&ret->err, -r, "make a pipe");
		return;
	}
	pid = enter(probes[f].where, &ret->err);
	if (pid == 0)
		run_child(f, fds[1], uid, gid);
	close(fds[1]);
	if (pid > 0) {
		if (read(fds[0], ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
			err_set(&ret->err, E_UNSUPPORTED, "the trial was killed");
		waitpid(pid, NULL, 0);
	} else if (ret->err.code == 0) {
		err_sys(&ret->err, errno, "start a process");
	}
	close(fds[0]);
}

void probe_one(enum probe_feature f, struct provider_check *ret)
{
	struct answer a = {0};

	*ret = (struct provider_check){.name = probes[f].name, .required = probes[f].required};
	if (probes[f].where == HERE)
		(void)!probes[f].try(a.detail, &a.err);
	else
		ask_child(f, &a);
	ret->works = a.err.code == 0;
	snprintf(ret->detail, sizeof(ret->detail), "%.*s", PROVIDER_TEXT_MAX - 1,
		ret->works ? a.detail : a.err.message);
	if (!ret->works)
		snprintf(ret->remedy, sizeof(ret->remedy), "%.*s", PROVIDER_TEXT_MAX - 1,
			a.err.hint[0] ? a.err.hint : probes[f].remedy);
}
