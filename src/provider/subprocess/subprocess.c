/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: there is no room. Instead of process 1, a process of the host runs
 * (init/plain.c), with the user's files and network as far as Landlock does not restrict them.
 * Everything that it starts descends from it, which is how these processes are found and ended.
 * This is for machines where nothing else works, and for trusted commands; every result says so.
 * What provider landlock adds is in landlock.c. */
#include "provider/subprocess/subprocess.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "jail/landlock.h"
#include "jail/narrow.h"
#include "jail/sys.h"
#include "provider/limit.h"
#include "room/judge.h"
#include "room/proctree.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KILL_ROUNDS = 200 };
enum { LANDLOCK_NET = 4 /* the ABI that can deny TCP */ };

#define HOME_DIR "home"

static int subprocess_probe(
	const struct provider *p, struct provider_about *ret, struct cloche_err *err)
{
	return 0;
}

/* Its home is in the directory of the sandbox, so the record must not be empty: that directory is
 * made only if there is something to record. */
int subprocess_plan(const struct provider *p, const struct room_spec *spec, struct buf *out,
	struct cloche_err *err)
{
	int r = room_spec_check(spec, err);

	if (r < 0)
		return r;
	return buf_printf(out, "%s\n", spec->id) < 0 ? err_nomem(err) : 0;
}

int subprocess_record(const struct room *r, struct buf *out, struct cloche_err *err)
{
	const struct subprocess *s = (const struct subprocess *)r;

	return buf_printf(out, "%s\n", s->id) < 0 ? err_nomem(err) : 0;
}

/* Its init ends everything if its supervisor dies, and the directory belongs to the sandbox. */
int subprocess_reap(const struct provider *p, struct str record, struct cloche_err *err)
{
	return 0;
}

/* --- what it is asked for --- */

static int refuse(
	const struct provider *p, const char *what, const char *advice, struct cloche_err *err)
{
	err_set(err, E_UNSUPPORTED, "provider %s makes no room: %s", p->name, what);
	err_hint(err, "%s, or use another provider", advice);
	return -E_UNSUPPORTED;
}

static int check_network(
	const struct provider *p, const struct room_spec *spec, struct cloche_err *err)
{
	if (subprocess_is_guarded(p))
		return spec->net == ROOM_NET_HOST
			       ? refuse(p, "the machine's network is kept away from all in it",
					 "leave --net host out", err)
			       : 0;
	if (spec->net == ROOM_NET_GATEWAY || (spec->masked && spec->net != ROOM_NET_HOST))
		return refuse(p,
			"what is allowed and secrets cannot be held to without a network of its "
			"own",
			"say --net host to run it with the machine's network and without secrets",
			err);
	return 0;
}

static int check(const struct provider *p, const struct room_spec *spec, struct cloche_err *err)
{
	int r = check_network(p, spec, err);

	if (r < 0)
		return r;
	if (spec->root != ROOM_ROOT_HOST)
		return refuse(p, "it has no root of its own", "leave --root out", err);
	if (!spec->own_user && (spec->uid != geteuid() || spec->gid != getegid()))
		return refuse(p, "its commands are you", "leave --user out", err);
	if (spec->nested)
		return refuse(p, "nothing can be nested in it", "leave --nested out", err);
	if (spec->keep_dir)
		return refuse(p, "changes are the machine's", "leave --keep-changes out", err);
	return 0;
}

static const struct limit_way limits[] = {
	{LIMIT_memory_bytes, LIMIT_BY_RESOURCE, RLIMIT_AS,
		"the memory limit is that of each process"},
	{LIMIT_cpus_milli, LIMIT_REFUSED, .text = "provider subprocess has no control group"},
	{LIMIT_pids, LIMIT_REFUSED, .text = "provider subprocess has no control group"},
	{LIMIT_nofile, LIMIT_BY_RESOURCE, RLIMIT_NOFILE},
	{LIMIT_file_bytes, LIMIT_BY_RESOURCE, RLIMIT_FSIZE},
	{LIMIT_tmpfs_bytes, LIMIT_REFUSED, .text = "provider subprocess has no tmpfs"},
};
LIMITS_COMPLETE(limits);

static int check_limits(struct room *room, const struct room_limits *l, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; i < LIMITS_N && r == 0; i++) {
		const struct limit_way *way = &room->provider->limits[i];

		if (!limit_value(l, way->limit) || !way->text)
			continue;
		r = way->means == LIMIT_REFUSED ? limit_lacks(room, l, way->limit, way->text, err)
						: room_add_unenforced(room, way->text, err);
	}
	return r;
}

/* What was found by its name alone. Files that somebody wants hidden are refused (add_mounts). */
static int note_hidden(struct room *room, const struct room_spec *spec, struct cloche_err *err)
{
	char text[256];
	size_t n = 0;

	for (size_t i = 0; i < spec->mounts_n; i++)
		n += spec->mounts[i].hidden;
	snprintf(text, sizeof(text),
		"files are not hidden: provider %s shows all, also %zu that other rooms do not get "
		"(.env, ...)",
		room->provider->name, n);
	return n ? room_add_unenforced(room, text, err) : 0;
}

static int note_walls(struct room *room, const struct room_spec *spec, struct cloche_err *err)
{
	int abi = landlock_abi(), r;

	if (subprocess_is_guarded(room->provider))
		return room_add_unenforced(room, landlock_walls, err);
	r = room_add_unenforced(room,
		abi > 0 ? "not isolated: provider subprocess runs it on this machine, kept to its "
			  "files by Landlock alone, which guards neither unix sockets nor modes, "
			  "owners and times of files"
			: "not isolated: provider subprocess runs it on this machine, with all "
			  "that you "
			  "may do",
		err);

	if (r == 0 && spec->net == ROOM_NET_NONE)
		r = room_add_unenforced(room,
			abi >= LANDLOCK_NET ? "the network is kept away for TCP alone"
					    : "the network is not kept away: this kernel's "
					      "Landlock cannot do it",
			err);
	return r;
}

/* --- its arguments --- */

void plain_add(struct plain_args *a, const char *text)
{
	a->failed |= strv_add(&a->v, str_from(text)) < 0;
}

static void add_limits(
	struct plain_args *a, const struct limit_way *ways, const struct room_limits *l)
{
	char word[NARROW_WORD];

	for (size_t i = 0; i < LIMITS_N; i++) {
		uint64_t value = limit_value(l, ways[i].limit);

		if (ways[i].means != LIMIT_BY_RESOURCE || !value)
			continue;
		narrow_put_word(ways[i].number, value, word);
		plain_add(a, word);
	}
}

/* A source goes as a descriptor, as its path may lead elsewhere by then (INV-NAMED-ONCE). */
static void add_source(struct plain_args *a, const struct room_mount *m)
{
	int to = ROOM_CONTROL_FD + (int)a->fds_n;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
	a->fds[a->fds_n++] = (struct program_fd){m->fd, to};
	plain_add(a, m->ro ? "ro" : "rw");
	plain_add(a, path);
}

/* If Landlock allows writing to a directory, it allows that in everything below it. */
static int check_nested(const struct provider *p, const struct room_spec *spec,
	const struct judged_source *sources, size_t i, struct cloche_err *err)
{
	const struct room_mount *m = &spec->mounts[i];
	char text[2 * PATH_MAX + 64];

	for (size_t k = 0; m->ro && k < spec->mounts_n; k++) {
		const struct room_mount *above = &spec->mounts[k];

		if (!sources[k].path || above->ro || !fs_is_within(m->target, above->target))
			continue;
		snprintf(text, sizeof(text), "%s cannot be read-only in %s, which is not",
			m->target, above->target);
		return refuse(p, text, "mount less for writing", err);
	}
	return 0;
}

/* Whether the target leads to the source on this machine, too. */
static bool is_in_place(const char *target, const struct judged_source *source)
{
	_cleanup_(freep) char *there = realpath(target, NULL);

	return there && strcmp(there, source->path) == 0;
}

static void add_place(struct plain_args *a, const char *target, const struct judged_source *source)
{
	plain_add(a, "at");
	plain_add(a, target);
	plain_add(a, source->path);
}

/* A target other than the source's own path works only for a working directory: that of the
 * workspace. */
static int add_mounts(struct plain_args *a, const struct provider *p, const struct room_spec *spec,
	const struct judged_source *sources, struct cloche_err *err)
{
	char text[2 * PATH_MAX + 64];
	int r;

	for (size_t i = 0; i < spec->mounts_n; i++) {
		const struct room_mount *m = &spec->mounts[i];

		/* Landlock cannot guard a part of what it opens. What nobody has named is looked
		 * at by the supervisor at the end. */
		if (m->hidden && !m->found)
			return refuse(p, "it cannot hide a file", "leave --hide out", err);
		r = m->guard && !m->found ? check_nested(p, spec, sources, i, err) : 0;
		if (r < 0)
			return r;
		if (!sources[i].path)
			continue;
		r = check_nested(p, spec, sources, i, err);
		if (r < 0)
			return r;
		add_source(a, m);
		if (m->also && !is_in_place(m->also, &sources[i]))
			add_place(a, m->also, &sources[i]);
		if (is_in_place(m->target, &sources[i]))
			continue;
		if (strncmp(m->target, "/workspace", strlen("/workspace")) != 0) {
			snprintf(text, sizeof(text), "it cannot show %s at %s", m->source,
				m->target);
			return refuse(p, text, "mount it where it is", err);
		}
		add_place(a, m->target, &sources[i]);
	}
	return 0;
}

static bool has_workspace(const struct room_spec *spec)
{
	for (size_t i = 0; i < spec->mounts_n; i++)
		if (strcmp(spec->mounts[i].target, "/workspace") == 0)
			return true;
	return false;
}

int plain_make_dir(struct plain_args *a, const char *id, const char *name, struct cloche_err *err)
{
	_cleanup_fd_ int base = rundir_open(err);
	char path[ROOM_ID_MAX + 16], real[PATH_MAX];
	int dir, r;

	if (base < 0)
		return base;
	snprintf(path, sizeof(path), "%s/%s", id, name);
	if (mkdirat(base, path, 0700) < 0)
		return err_sys(err, errno, "make a directory %s", name);
	dir = openat(base, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = dir < 0 ? -errno : fd_path(dir, real);
	if (r < 0) {
		fd_close(dir);
		return err_sys(err, -r, "find a directory %s", name);
	}
	plain_add(a, name);
	plain_add(a, real);
	return dir;
}

static int make_home(const char *id, struct plain_args *a, struct cloche_err *err)
{
	int dir = plain_make_dir(a, id, HOME_DIR, err);

	fd_close(dir);
	return MIN(dir, 0);
}

static void remove_dirs(const char *id)
{
	_cleanup_fd_ int base = rundir_open(NULL), dir = -1;

	dir = base < 0 ? -1 : openat(base, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	(void)fs_remove_tree(dir, HOME_DIR);
	(void)fs_remove_tree(dir, PLAIN_TRUST_DIR);
}

static int start(struct subprocess *s, const struct room_spec *spec, struct plain_args *a,
	struct cloche_err *err)
{
	char *no_environment[] = {NULL};
	int control[2], r = fd_socketpair(SOCK_STREAM, control);
	struct program_spawn spawn = {.path = spec->init_path,
		.argv = (const char *const *)a->v,
		.env = no_environment,
		.fds = a->fds,
		.fds_n = a->fds_n,
		.stdio = {-1, -1, 2},
		.own_group = true};

	if (r < 0)
		return err_sys(err, -r, "make the control socket");
	s->base.control_fd = control[0];
	a->fds[0] = (struct program_fd){control[1], ROOM_CONTROL_FD};
	r = program_start(&spawn, &s->base.pid, &s->base.watch_fd, err);
	close(control[1]);
	return r;
}

static int make(struct subprocess *s, const struct room_spec *spec, struct cloche_err *err)
{
	struct judged_source *sources = NULL;
	struct plain_args a = {.fds_n = 1, .own = -1};
	int r = judge_sources(spec, &sources, err);

	plain_add(&a, "cloche-init");
	plain_add(&a, "plain");
	if (r == 0)
		r = make_home(spec->id, &a, err);
	if (r == 0) {
		plain_add(&a, "ro");
		plain_add(&a, spec->init_path);
		if (spec->net == ROOM_NET_HOST)
			plain_add(&a, "tcp");
		if (!has_workspace(spec))
			plain_add(&a, "at-home");
		add_limits(&a, s->base.provider->limits, &spec->limits);
		if (subprocess_is_guarded(s->base.provider))
			r = landlock_furnish(s, spec, &a, err);
	}
	if (r == 0)
		r = add_mounts(&a, s->base.provider, spec, sources, err);
	if (r == 0)
		r = a.failed ? err_nomem(err) : start(s, spec, &a, err);
	strv_free(a.v);
	fd_close(a.own);
	judged_free(sources, spec->mounts_n);
	return r;
}

/* --- its life --- */

/* Kill all descendants of root until none is found twice: an orphan moves to root when its parent
 * ends, and a list of root's children that is read at that moment may lack it. */
static void kill_below(pid_t root)
{
	const struct timespec moment = {.tv_nsec = USEC_PER_MSEC * 1000};

	for (int i = 0, clean = 0; i < KILL_ROUNDS && clean < 2; i++) {
		clean = proctree_signal_below(root, SIGKILL) ? 0 : clean + 1;
		if (clean == 0)
			(void)nanosleep(&moment, NULL);
	}
}

int subprocess_usage(struct room *room, struct room_usage *ret, struct cloche_err *err)
{
	struct subprocess *s = subprocess(room);
	struct room_usage now;

	if (!room->reaped && room->pid > 0 && proctree_read(room->pid, &now))
		proctree_add_sample(&s->usage, &now);
	*ret = s->usage;
	return 0;
}

int subprocess_kill(struct room *room, int sig, struct cloche_err *err)
{
	struct room_usage usage;

	if (room->reaped || room->pid <= 0)
		return 0;
	(void)subprocess_usage(room, &usage, NULL);
	if (sig != SIGKILL) {
		(void)proctree_signal_below(room->pid, sig);
		return 0;
	}
	kill_below(room->pid);
	/* Last, because it adopts the orphans. */
	(void)sys_pidfd_send_signal(room->watch_fd, sig);
	return 0;
}

int subprocess_wait(struct room *room, struct room_exit *ret, struct cloche_err *err)
{
	int r = room_reap(room, NULL, err);

	if (r == 0)
		*ret = room->exit;
	return r;
}

int subprocess_kill_tree(struct room *room, pid_t pid, struct cloche_err *err)
{
	if (room->reaped || pid <= 1 || pid == room->pid || !proctree_kill(room->pid, false, pid))
		return err_set(err, E_NOT_FOUND, "there is no process %d", (int)pid);
	return 0;
}

struct room *subprocess_destroy(struct room *room)
{
	struct subprocess *s;
	struct room_exit ending;

	if (!room)
		return NULL;
	s = subprocess(room);
	if (room->pid > 0) {
		(void)subprocess_kill(room, SIGKILL, NULL);
		(void)subprocess_wait(room, &ending, NULL);
	}
	if (s->id)
		remove_dirs(s->id);
	room_done(room);
	fd_close(s->gateway_fd);
	free(s->id);
	free(s);
	return NULL;
}

int subprocess_create(const struct provider *p, const struct room_spec *spec, struct room **ret,
	struct cloche_err *err)
{
	struct subprocess *s;
	int r = room_spec_check(spec, err);

	if (r == 0)
		r = check(p, spec, err);
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err);
	room_init(&s->base, p);
	s->gateway_fd = -1;
	s->base.uid = geteuid();
	s->base.gid = getegid();
	s->id = strdup(spec->id);
	r = s->id ? note_walls(&s->base, spec, err) : err_nomem(err);
	if (r == 0)
		r = note_hidden(&s->base, spec, err);
	if (r == 0)
		r = check_limits(&s->base, &spec->limits, err);
	if (r == 0)
		r = make(s, spec, err);
	if (r < 0) {
		room_free(&s->base);
		return r;
	}
	if (spec->born)
		spec->born(spec->born_user, s->base.pid);
	*ret = &s->base;
	return 0;
}

const struct provider subprocess_provider = {
	.name = PROVIDER_UNSANDBOXED,
	.limits = limits,
	.probe = subprocess_probe,
	.plan = subprocess_plan,
	.create = subprocess_create,
	.kill = subprocess_kill,
	.wait = subprocess_wait,
	.record = subprocess_record,
	.reap = subprocess_reap,
	.destroy = subprocess_destroy,
	.has_one_user = true,
	.kill_tree = subprocess_kill_tree,
	.usage = subprocess_usage,
};
