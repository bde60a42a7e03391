/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (docs/design/provider-protocol.md)
 *
 * The program makes a room (namespaces and a root) with our cloche-init as its process 1, and
 * mounts a socket of ours into it. Init connects there, and the peer of that connection is the
 * room's process 1. From then on the room is like every other one, and the program is needed only
 * once more, to remove what it made. Init exits if it cannot connect, so a room does not stay if
 * its supervisor died.
 *
 * Before the program is asked, the room's id and the settings that lead to the same engine are
 * recorded, so that what it made can be removed later. */
#include "far/room.h"
#include "base/fd.h"
#include "base/strv.h"
#include "ipc/roomctl.h"
#include "ipc/rundir.h"
#include "jail/sys.h"
#include "provider/program/operations.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The engine may have to import an image first. */
enum { PROBE_SEC = 30, CREATE_SEC = 600, REAP_SEC = 20, CONNECT_SEC = 20 };
enum { REQUEST_MAX = 1 << 20 };

/* A name in the sandbox's directory, which the manager has made. */
#define ROOM_DIR "room"

/* Make a request that names only a room, or none. env: added to the program's environment. */
static int ask_about(const struct provider *p, const char *verb, const struct describe_which *which,
	char *const *env, int patience_sec, struct words_answer *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf request = BUF_INIT(REQUEST_MAX);

	if (describe_id(which, &request) < 0)
		return err_nomem(err);
	return process_run(p,
		&(struct process_ask){.verb = verb,
			.request = buf_str(&request),
			.env = env,
			.patience_sec = patience_sec},
		ret, err);
}

static int program_probe(
	const struct provider *p, struct provider_about *ret, struct cloche_err *err)
{
	struct words_answer answer;
	int r = ask_about(p, "probe", &(struct describe_which){0}, NULL, PROBE_SEC, &answer, err);

	if (r == 0)
		program_tell_about(&answer, ret);
	return r;
}

/* In a record, before the settings, none of which is called so. */
#define RECORD_PLACE "place="

/* Add "ID", the place if there is one, and a line for each setting. */
static int add_record(const char *id, const char *place, char *const *env, struct buf *out)
{
	int r = buf_printf(out, "%s\n", id);

	if (r == 0 && place)
		r = buf_printf(out, RECORD_PLACE "%s\n", place);

	for (size_t i = 0; r == 0 && env && env[i]; i++)
		if (!strchr(env[i], '\n'))
			r = buf_printf(out, "%s\n", env[i]);
	return r;
}

static int program_plan(const struct provider *p, const struct room_spec *spec, struct buf *out,
	struct cloche_err *err)
{
	_cleanup_(strv_freep) char **env = process_settings(environ);
	int r = room_spec_check(spec, err);

	if (r < 0)
		return r;
	return !env || add_record(spec->id, spec->place, env, out) < 0 ? err_nomem(err) : 0;
}

static int program_record(const struct room *room, struct buf *out, struct cloche_err *err)
{
	const struct program_room *r = program_room_const(room);

	return add_record(r->id, NULL, r->env, out) < 0 ? err_nomem(err) : 0;
}

static int program_reap(const struct provider *p, struct str record, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **env = calloc(1, sizeof(char *));
	_cleanup_(freep) char *id = str_dup(str_next_line(&record)), *place = NULL;
	_cleanup_(freep) char *script = NULL;
	struct words_answer answer;

	if (!env || !id)
		return err_nomem(err);
	if (str_starts(record, STR(RECORD_PLACE))) {
		place = str_dup(str_from_index(str_next_line(&record), strlen(RECORD_PLACE)));
		if (!place)
			return err_nomem(err);
	}
	while (record.n)
		if (strv_add(&env, str_next_line(&record)) < 0)
			return err_nomem(err);
	if (!rundir_is_id(str_from(id)))
		return 0;
	script = place ? far_script("reap", id, err) : NULL;
	if (place && !script)
		return -err->code;
	return ask_about(p, "reap",
		&(struct describe_which){.id = id, .place = place, .script = script}, env, REAP_SEC,
		&answer, err);
}

/* --- its socket --- */

/* Make the room's own directory, and the socket in it. */
static int listen_for(const char *id, char dir[PATH_MAX], int *ret, struct cloche_err *err)
{
	_cleanup_fd_ int base = rundir_open(err), room = -1;
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char name[RUNDIR_ID_BYTES + sizeof("/" ROOM_DIR)];
	int r;

	if (base < 0)
		return base;
	snprintf(name, sizeof(name), "%s/" ROOM_DIR, id);
	if (mkdirat(base, name, 0711) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the room's directory");
	room = openat(base, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = room < 0 ? -errno : fd_path(room, dir);
	if (r < 0)
		return err_sys(err, -r, "find the room's directory");
	/* Use the descriptor, so that the length of the path does not matter. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" ROOMCTL_CONTROL_NAME,
		room);
	(void)unlinkat(room, ROOMCTL_CONTROL_NAME, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 4) < 0)
		return err_sys(err, errno, "make the room's socket");
	/* Root of the room may be another user of the host. The directories above let no other user
	 * through, so only this mount leads to the socket. */
	if (fchmodat(room, ROOMCTL_CONTROL_NAME, 0666, 0) < 0)
		return err_sys(err, errno, "make the room's socket");
	*ret = TAKE_FD(fd);
	return 0;
}

/* Return whether the process is process 1 of a pid namespace. */
static bool is_init(pid_t pid)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(64 * 1024);
	const char *at, *end;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (pid <= 0 || fd_read_file(AT_FDCWD, path, &text, NULL) < 0 || !buf_cstr(&text))
		return false;
	at = strstr(buf_data(&text), "\nNSpid:");
	end = at ? strchr(at + 1, '\n') : NULL;
	return end && end - at > 3 && end[-1] == '1' && end[-2] == '\t' && end[-3] != ':';
}

static int accept_init(struct program_room *r, int listener, struct cloche_err *err)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	struct ucred cred;
	socklen_t n = sizeof(cred);
	_cleanup_fd_ int fd = -1;

	if (poll(&p, 1, CONNECT_SEC * 1000) <= 0)
		return err_set(err, E_PROTOCOL, "the room of provider %s did not answer in %d s",
			r->ns.base.provider->name, CONNECT_SEC);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return err_sys(err, errno, "hear from the room");
	r->ns.base.watch_fd = sys_pidfd_open(cred.pid);
	/* The pid still belongs to the peer as long as it has not hung up. */
	p = (struct pollfd){.fd = fd, .events = POLLRDHUP};
	if (r->ns.base.watch_fd < 0 || !is_init(cred.pid) || poll(&p, 1, 0) != 0)
		return err_set(err, E_PROTOCOL,
			"provider %s made no room: what answers is not its process 1",
			r->ns.base.provider->name);
	r->ns.base.pid = cred.pid;
	r->ns.base.control_fd = TAKE_FD(fd);
	return 0;
}

/* --- its life --- */

static struct room *program_destroy(struct room *room)
{
	struct program_room *r = room ? program_room(room) : NULL;
	struct room_exit ending;

	if (!r)
		return NULL;
	if (room->pid > 0) {
		(void)program_kill(room, SIGKILL, NULL);
		(void)program_wait(room, &ending, NULL);
	}
	netcapture_close(&r->ns.net);
	program_leave_cgroup(&r->ns.cgroup);
	buf_done(&r->uids);
	buf_done(&r->gids);
	room_done(room);
	strv_free(r->env);
	free(r->id);
	free(r);
	return NULL;
}

/* Furnish the room of the process that connected. */
static int take_room(struct program_room *r, const struct room_spec *spec,
	const struct judged_source *sources, int listener, struct cloche_err *err)
{
	int e = accept_init(r, listener, err);

	if (e == 0)
		e = program_read_ids(r, err);
	if (e < 0)
		return e;
	if (spec->born)
		spec->born(spec->born_user, r->ns.base.pid);
	return inside_furnish(r, spec, sources, err);
}

static bool has_said_cannot(const struct words_answer *answer, struct str limit)
{
	for (unsigned i = 0; i < answer->cannot_n; i++)
		if (str_starts(str_from(answer->cannot[i]), limit))
			return true;
	return false;
}

/* Complete the memory limit (INV-LIMITS-OR-REFUSAL): with version 1 of control groups no engine
 * bounds what sockets hold. Nothing runs in the room yet. */
static int bound_sockets(struct program_room *r, const struct room_spec *spec,
	const struct words_answer *answer, struct cloche_err *err)
{
	const struct room_limits *l = &spec->limits;
	char why[128];
	int e;

	if (!l->memory_bytes || has_said_cannot(answer, STR("memory")))
		return 0;
	e = r->ns.cgroup.version ? cgroup_bound_sockets(&r->ns.cgroup, l->memory_bytes) : -ENOENT;
	if (e == 0)
		return 0;
	snprintf(why, sizeof(why), "what sockets hold cannot be limited in its group: %s",
		err_errno_text(-e));
	return limit_lacks(&r->ns.base, l, LIMIT_memory_bytes, why, err);
}

static int make(struct program_room *r, const struct room_spec *spec,
	const struct judged_source *sources, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf request = BUF_INIT(REQUEST_MAX);
	_cleanup_fd_ int listener = -1;
	struct words_answer answer;
	struct process run;
	char dir[PATH_MAX];
	bool began;
	int ended, e = listen_for(spec->id, dir, &listener, err);

	if (e == 0)
		e = describe_room(spec, sources, dir, &request, err);
	if (e < 0)
		return e;
	e = process_begin(&run, r->ns.base.provider,
		&(struct process_ask){.verb = "create",
			.request = buf_str(&request),
			.patience_sec = CREATE_SEC,
			.spec = spec},
		err);
	if (e < 0)
		return e;
	/* Engines have more to do when process 1 runs already. */
	began = process_wait(&run, listener);
	if (began)
		e = take_room(r, spec, sources, listener, err);
	/* What the program says explains more, so this may replace the error. */
	ended = process_end(&run, &answer, err);
	if (ended < 0 && answer.place[0] && spec->elsewhere)
		spec->elsewhere(spec->born_user, answer.place);
	if (ended < 0)
		return ended;
	for (unsigned i = 0; i < answer.cannot_n && e == 0; i++)
		e = room_add_unenforced(&r->ns.base, answer.cannot[i], err);
	if (!began && e == 0)
		e = take_room(r, spec, sources, listener, err);
	if (e < 0)
		return e;
	program_find_cgroup(r->ns.base.pid, &r->ns.cgroup);
	return bound_sockets(r, spec, &answer, err);
}

/* Describe the room for a program that carries bytes to its place, where `cloche-far VERB` runs. */
static int describe_with(
	const struct room_spec *spec, const char *verb, struct buf *out, struct cloche_err *err)
{
	_cleanup_(freep) char *script = far_script(verb, spec->id, err);

	return script ? describe_far(spec, script, out, err) : -err->code;
}

/* The sources of mounts were judged. */
static int create_elsewhere(const struct provider *p, const struct room_spec *spec,
	struct room **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf start = BUF_INIT(REQUEST_MAX),
					again = BUF_INIT(REQUEST_MAX);
	int e = describe_with(spec, "start", &start, err);

	if (e == 0)
		e = describe_with(spec, "attach", &again, err);
	return e < 0 ? e
		     : far_room_create(p, spec,
			       &(struct far_requests){buf_str(&start), buf_str(&again)}, ret, err);
}

static int create_here(const struct provider *p, const struct room_spec *spec,
	const struct judged_source *sources, struct room **ret, struct cloche_err *err)
{
	struct program_room *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return err_nomem(err);
	nsroom_init(&r->ns, p);
	r->id = strdup(spec->id);
	r->env = process_settings(environ);
	e = r->id && r->env ? 0 : err_nomem(err);
	if (e == 0)
		e = make(r, spec, sources, err);
	if (e == 0)
		*ret = &r->ns.base;
	else
		(void)program_destroy(&r->ns.base);
	return e;
}

static int program_create(const struct provider *p, const struct room_spec *spec, struct room **ret,
	struct cloche_err *err)
{
	struct judged_source *sources = NULL;
	int e = room_spec_check(spec, err);

	if (e == 0)
		e = judge_sources(spec, &sources, err);
	if (e == 0)
		e = spec->place ? create_elsewhere(p, spec, ret, err)
				: create_here(p, spec, sources, ret, err);
	judged_free(sources, spec->mounts_n);
	return e;
}

const struct provider program_provider = {
	.limits = program_limits,
	.probe = program_probe,
	.ask_place = program_ask_place,
	.hear_place = program_hear_place,
	.doctor_place = program_doctor_place,
	.plan = program_plan,
	.create = program_create,
	.kill = program_kill,
	.wait = program_wait,
	.record = program_record,
	.reap = program_reap,
	.destroy = program_destroy,
	.kill_tree = nsroom_kill_tree,
	.usage = program_usage,
	.listeners = nsroom_listeners,
	.owner = nsroom_owner,
	.lend = program_lend,
};
