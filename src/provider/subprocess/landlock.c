/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: as with provider subprocess a process of the host runs in place of process
 * 1, but this one is a wall. Landlock keeps its commands to their files and away from other
 * processes. A filter leaves them no socket that could reach the machine's network; a guard answers
 * for their sockets, and sends what they dial to the gateway (init/guard.c, init/dial.c). So
 * policy, secrets and the record are those of any room. This is for places that forbid namespaces:
 * above all the containers of continuous integration. */
#include "jail/landlock.h"
#include "base/fd.h"
#include "jail/seccomp.h"
#include "provider/limit.h"
#include "provider/subprocess/subprocess.h"
#include "room/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GATEWAY_FD = 4 /* as init/guard.h */, NEEDED_ABI = 6 /* scopes; TCP is in 4 */ };

const char landlock_walls[] =
	"isolated by Landlock and filters alone: no namespaces; commands can read what the system "
	"says of all processes, and change times and groups of your files";

static const struct limit_way limits[] = {
	{LIMIT_memory_bytes, LIMIT_BY_RESOURCE, RLIMIT_AS,
		"the memory limit is that of each process"},
	{LIMIT_cpus_milli, LIMIT_REFUSED, .text = "provider landlock has no control group"},
	{LIMIT_pids, LIMIT_REFUSED, .text = "provider landlock has no control group"},
	{LIMIT_nofile, LIMIT_BY_RESOURCE, RLIMIT_NOFILE},
	{LIMIT_file_bytes, LIMIT_BY_RESOURCE, RLIMIT_FSIZE},
	{LIMIT_tmpfs_bytes, LIMIT_REFUSED, .text = "provider landlock has no tmpfs"},
};
LIMITS_COMPLETE(limits);

/* Whether a parent may look into what it has started, as the guard does (Yama's scope 0 or 1). */
static bool landlock_may_look(void)
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	return fd < 0 || read(fd, &scope, 1) != 1 || scope < '2';
}

/* Say what is lacking here, or return 0. */
static int landlock_need(struct cloche_err *err)
{
	int abi = landlock_abi();

	if (abi == 0)
		err_set(err, E_UNSUPPORTED, "there is no Landlock here");
	else if (abi < NEEDED_ABI)
		err_set(err, E_UNSUPPORTED,
			"Landlock of version %d cannot keep signals and abstract sockets inside",
			abi);
	else if (!seccomp_can_ask())
		err_set(err, E_UNSUPPORTED, "no filter can have system calls answered here");
	else if (!landlock_may_look())
		err_set(err, E_UNSUPPORTED,
			"kernel.yama.ptrace_scope keeps processes from looking into their "
			"children");
	else
		return 0;
	err_hint(err, "Linux 6.12 has what is needed, if the container allows it");
	return -E_UNSUPPORTED;
}

static int landlock_probe(
	const struct provider *p, struct provider_about *ret, struct cloche_err *err)
{
	return landlock_need(err);
}

static void landlock_doctor(provider_check_fn fn, void *user)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct provider_check check = {.name = "provider landlock"};

	check.works = landlock_need(&err) == 0;
	if (check.works)
		snprintf(check.detail, sizeof(check.detail),
			"Landlock version %d, filters that ask", landlock_abi());
	else {
		snprintf(check.detail, sizeof(check.detail), "%.255s", err.message);
		snprintf(check.remedy, sizeof(check.remedy),
			"where there are no namespaces and no engine, nothing isolates: %.180s",
			err.hint);
	}
	fn(user, &check);
}

static int landlock_trust(
	const struct room_spec *spec, struct plain_args *a, struct cloche_err *err)
{
	int dir = plain_make_dir(a, spec->id, PLAIN_TRUST_DIR, err), r;

	if (dir < 0)
		return dir;
	r = trust_write_here(dir, spec->ca_fd, err);
	fd_close(dir);
	return r;
}

int landlock_furnish(struct subprocess *s, const struct room_spec *spec, struct plain_args *a,
	struct cloche_err *err)
{
	int pair[2], r = landlock_need(err);

	plain_add(a, "guarded");
	if (r == 0 && spec->ca_fd >= 0)
		r = landlock_trust(spec, a, err);
	if (r < 0 || spec->net != ROOM_NET_GATEWAY)
		return r;
	r = fd_socketpair(SOCK_STREAM, pair);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	s->gateway_fd = pair[0];
	a->own = pair[1];
	a->fds[a->fds_n++] = (struct program_fd){a->own, GATEWAY_FD};
	plain_add(a, "captured");
	return 0;
}

static int landlock_listeners(struct room *room, int ret[ROOM_LISTENERS], struct cloche_err *err)
{
	struct subprocess *s = subprocess(room);

	if (s->gateway_fd < 0)
		return err_set(err, E_INTERNAL, "the room has no network to hand over");
	for (int i = 0; i < ROOM_LISTENERS; i++)
		ret[i] = -1;
	ret[ROOM_CAPTURE] = TAKE_FD(s->gateway_fd);
	return 0;
}

const struct provider landlock_provider = {
	.name = PROVIDER_LANDLOCK,
	.limits = limits,
	.probe = landlock_probe,
	.plan = subprocess_plan,
	.create = subprocess_create,
	.kill = subprocess_kill,
	.wait = subprocess_wait,
	.record = subprocess_record,
	.reap = subprocess_reap,
	.destroy = subprocess_destroy,
	.has_one_user = true,
	.lends_terminals = true,
	.kill_tree = subprocess_kill_tree,
	.usage = subprocess_usage,
	.doctor = landlock_doctor,
	.listeners = landlock_listeners,
};
