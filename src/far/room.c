/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the room is elsewhere, and a relay on this machine stands for it: over one
 * socket it is the room's init, over another it takes what else a provider does to a room, and says
 * how the room has ended. The supervisor needs no more of the other machine. The relay says nothing
 * that has to be believed: it lies about its own room at worst. */
#include "far/room.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "far/copies.h"
#include "far/protocol.h"
#include "job/job.h"
#include "provider/names.h"
#include "room/parts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CREATE_SEC = 600,
	LOOK_MS = 200, /* how often to ask whether the caller has given up */
	LEAVE_MS = 3000,
	OUT_MAX = FARCTL_MAX_PAYLOAD * 2,
};
#define FAR_PATIENCE_USEC (120 * USEC_PER_SEC)

struct far_room {
	struct room base;    /* first; pid is that of `cloche-far near` */
	struct provider ops; /* far_provider, with the name and path of the room's own provider */
	struct chan ctl;
	bool ctl_open;
	int pidfd;
	struct far_copies copies;
	bool is_pulled;
	int capture; /* the gateway's end, until it is handed over; or -1 */
	struct far_usage usage;
	bool is_over;
	struct cloche_err why; /* why the room is lost; code 0: it is not */
};

static struct far_room *far_room(struct room *r)
{
	return (struct far_room *)r;
}

/* --- what the relay says --- */

static int far_take_made(struct far_room *r, struct str payload, struct cloche_err *err)
{
	struct far_made m;
	int e = 0;

	if (!far_get_made(payload, &m))
		return err_set(err, E_PROTOCOL, "the relay's answer is malformed");
	r->base.uid = m.uid;
	r->base.gid = m.gid;
	r->base.isolation = m.in_place ? provider_isolation(PROVIDER_LANDLOCK) : NULL;
	for (size_t i = 0; m.unenforced && m.unenforced[i] && e == 0; i++)
		e = room_add_unenforced(&r->base, m.unenforced[i], err);
	strv_free(m.unenforced);
	return e;
}

static void far_take_over(struct far_room *r, struct str payload)
{
	struct far_over m;

	if (!far_get_over(payload, &m))
		return;
	r->is_over = true;
	r->base.exit = (struct room_exit){
		.exited = m.exited, .status = (int)m.status, .oom_killed = m.oom_killed};
}

/* Take what may come at any time. Return false for anything else. */
static bool far_take_any(struct far_room *r, const struct chan_frame *f)
{
	struct farctl_says says;
	struct far_usage usage;

	switch (f->type) {
	case FARCTL_SAYS:
		if (farctl_get_says(f->payload, &says))
			fprintf(stderr, "cloche: %.*s\n", STR_FMT(says.text));
		return true;
	case FAR_USAGE:
		if (far_get_usage(f->payload, &usage))
			r->usage = usage;
		return true;
	case FAR_OVER:
		far_take_over(r, f->payload);
		return true;
	case FAR_FAILED:
		(void)!far_get_failed(f->payload, &r->why);
		return true;
	default:
		return false;
	}
}

static void far_close_ctl(struct far_room *r)
{
	if (r->ctl_open)
		chan_done(&r->ctl);
	r->ctl_open = false;
}

/* Take what has come, without waiting. */
static void far_drain(struct far_room *r)
{
	while (r->ctl_open) {
		struct chan_frame f;
		int e = chan_recv(&r->ctl, &f);

		if (e < 0)
			far_close_ctl(r);
		if (e <= 0)
			return;
		(void)far_take_any(r, &f);
		chan_frame_done(&f);
	}
}

/* Wait for that frame, and take it with fn if there is one. */
static int far_await(struct far_room *r, const struct room_spec *spec, enum far_message type,
	int (*fn)(struct far_room *r, struct str payload, struct cloche_err *err),
	struct cloche_err *err)
{
	uint64_t until = clock_mono_usec() + CREATE_SEC * USEC_PER_SEC;

	while (r->why.code == 0) {
		struct chan_frame f;
		int e = chan_recv_wait(&r->ctl, &f, LOOK_MS);

		if (e == -ETIMEDOUT && spec->given_up && spec->given_up(spec->born_user))
			return err_set(err, E_CANCELLED, "nobody waits for the room any more");
		if (e == -ETIMEDOUT && clock_mono_usec() < until)
			continue;
		if (e < 0)
			return err_set(err, E_PROTOCOL, "the room's relay has ended: %s",
				err_errno_text(-e));
		if (f.type == type) {
			e = fn ? fn(r, f.payload, err) : 0;
			chan_frame_done(&f);
			return e;
		}
		if (!far_take_any(r, &f))
			(void)err_set(&r->why, E_PROTOCOL, "the relay's answer is malformed");
		chan_frame_done(&f);
	}
	if (err)
		*err = r->why;
	return -r->why.code;
}

/* --- making it --- */

/* Start `cloche-far near`, which starts the relay and the provider's program. */
static int far_start(struct far_room *r, const struct provider *p, struct cloche_err *err)
{
	const char *const argv[] = {"cloche-far", "near", p->name, p->path, NULL};
	_cleanup_fd_ int init = -1, ctl = -1, ours = -1, end = -1;
	int pair[2], e = fd_socketpair(SOCK_STREAM, pair);

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	r->base.control_fd = pair[0];
	init = pair[1];
	e = fd_socketpair(SOCK_STREAM, pair);
	if (e < 0)
		return err_sys(err, -e, "make a socket");
	ours = pair[0];
	ctl = pair[1];
	e = fd_pipe(pair);
	if (e < 0)
		return err_sys(err, -e, "make a pipe");
	r->base.watch_fd = pair[0];
	end = pair[1];
	e = chan_init(&r->ctl, TAKE_FD(ours), FARCTL_MAX_PAYLOAD, OUT_MAX);
	if (e < 0)
		return err_sys(err, -e, "speak with the relay");
	r->ctl_open = true;
	return program_start(&(struct program_spawn){.argv = argv,
				     .fds = (const struct program_fd[]){{init, FARCTL_FD_INIT},
					     {ctl, FARCTL_FD}, {end, FARCTL_FD_END}},
				     .fds_n = 3,
				     .stdio = {-1, -1, 2},
				     .service = provider_asks_service(p->name)},
		&r->base.pid, &r->pidfd, err);
}

static int far_open_capture(struct far_room *r, int *ret_theirs, struct cloche_err *err)
{
	int pair[2], e = fd_socketpair(SOCK_STREAM, pair);

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	r->capture = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

static int far_begin(struct far_room *r, const struct room_spec *spec,
	const struct far_requests *requests, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FAR_MAX_SPEC), pem = BUF_INIT(FAR_MAX_PEM),
					kept = BUF_INIT(FAR_MAX_KEPT);
	struct wire_out w = wire_out(&text);
	_cleanup_fd_ int capture = -1;
	struct farctl_begin m = {.start = requests->start, .again = requests->again};
	int e = spec->ca_fd < 0 ? 0 : trust_read(spec->ca_fd, &pem, err);

	if (e == 0 && spec->net == ROOM_NET_GATEWAY)
		e = far_open_capture(r, &capture, err);
	if (e < 0)
		return e;
	if (far_copies_names(&r->copies, &kept) < 0)
		return err_nomem(err);
	room_spec_put(&w, spec);
	m.room = (struct far_room_spec){.spec = buf_str(&text),
		.pem = buf_str(&pem),
		.kept = buf_str(&kept),
		.patience_usec = spec->far_usec ? spec->far_usec : FAR_PATIENCE_USEC};
	e = w.error ? w.error : farctl_send_begin(&r->ctl, &m, capture);
	return e < 0 ? err_sys(err, -e, "describe the room") : 0;
}

/* Have a file worker for a mount at the other end of this socket (taken). */
static int far_connect_files(void *user, uint32_t mount, int fd)
{
	struct far_room *r = user;
	_cleanup_fd_ int own = fd;
	int e = r->ctl_open
			? farctl_send_files(&r->ctl, &(struct farctl_files){.mount = mount}, own)
			: -EPIPE;

	return e < 0 ? e : chan_flush_wait(&r->ctl, LEAVE_MS);
}

static int far_make(struct far_room *r, const struct room_spec *spec,
	const struct far_requests *requests, struct cloche_err *err)
{
	int e = far_copies_init(&r->copies, spec, err);

	if (e == 0)
		e = far_start(r, r->base.provider, err);
	if (e < 0)
		return e;
	r->base.provider = &r->ops;
	e = far_begin(r, spec, requests, err);
	if (e == 0)
		e = far_await(r, spec, FAR_PREPARED, NULL, err);
	if (e == 0)
		e = far_copies_push(&r->copies, spec, far_connect_files, r, err);
	if (e == 0)
		e = farctl_send_make(&r->ctl);
	if (e == 0 && spec->born)
		spec->born(spec->born_user, r->base.pid);
	return e < 0 ? e : far_await(r, spec, FAR_MADE, far_take_made, err);
}

static struct room *far_destroy(struct room *room);

int far_room_create(const struct provider *p, const struct room_spec *spec,
	const struct far_requests *requests, struct room **ret, struct cloche_err *err)
{
	struct far_room *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return err_nomem(err);
	r->base = (struct room){.provider = p, .control_fd = -1, .watch_fd = -1, .config_fd = -1};
	r->capture = r->pidfd = -1;
	r->ops = far_provider;
	r->ops.name = p->name;
	r->ops.path = p->path;
	e = far_make(r, spec, requests, err);
	if (e == 0)
		*ret = &r->base;
	else
		(void)far_destroy(&r->base);
	return e;
}

/* --- its life --- */

static int far_send_ctl(struct far_room *r, int e, struct cloche_err *err)
{
	if (e == 0)
		e = chan_flush(&r->ctl);
	return e < 0 && e != -EPIPE ? err_sys(err, -e, "speak with the room's relay") : 0;
}

static int far_kill(struct room *room, int sig, struct cloche_err *err)
{
	struct far_room *r = far_room(room);

	if (!r->ctl_open || r->is_over)
		return 0;
	return far_send_ctl(
		r, far_send_kill(&r->ctl, &(struct far_kill){.signo = (uint8_t)sig}), err);
}

static int far_kill_tree(struct room *room, pid_t pid, struct cloche_err *err)
{
	struct far_room *r = far_room(room);

	if (!r->ctl_open || r->is_over)
		return -E_NOT_FOUND;
	return far_send_ctl(
		r, far_send_kill_tree(&r->ctl, &(struct far_kill_tree){.pid = (uint32_t)pid}), err);
}

static int far_wait(struct room *room, struct room_exit *ret, struct cloche_err *err)
{
	struct far_room *r = far_room(room);

	far_drain(r);
	if (!r->is_over)
		r->base.exit = (struct room_exit){.status = SIGKILL};
	*ret = r->base.exit;
	if (r->why.code)
		return err_set(err, E_BROKEN, "%s", r->why.message);
	if (!r->is_over)
		return err_set(err, E_BROKEN, "the room's relay has died");
	if (r->is_pulled)
		return 0;
	r->is_pulled = true;
	far_copies_sync_end(&r->copies);
	return far_copies_pull(&r->copies, far_connect_files, r, err);
}

static int far_usage(struct room *room, struct room_usage *ret, struct cloche_err *err)
{
	struct far_room *r = far_room(room);
	const struct far_usage *u = &r->usage;

	far_drain(r);
	*ret = (struct room_usage){.cpu_usec = u->cpu_usec,
		.memory_bytes = u->memory_bytes,
		.memory_peak_bytes = u->memory_peak_bytes,
		.pids = u->pids,
		.pids_peak = u->pids_peak,
		.io_read_bytes = u->io_read_bytes,
		.io_write_bytes = u->io_write_bytes,
		.oom_kills = u->oom_kills,
		.pids_refused = u->pids_refused,
		/* Whoever looks again and again also sees what the relay says. */
		.sampled = true};
	return 0;
}

static int far_listeners(struct room *room, int ret[ROOM_LISTENERS], struct cloche_err *err)
{
	for (int i = 0; i < ROOM_LISTENERS; i++)
		ret[i] = -1;
	ret[ROOM_CAPTURE] = TAKE_FD(far_room(room)->capture);
	return 0;
}

static int far_sync(struct room *room, int out, int *ret_fd, struct cloche_err *err)
{
	struct far_room *r = far_room(room);

	return far_copies_sync(&r->copies, out, ret_fd, far_connect_files, r, err);
}

static void far_sync_stop(struct room *room, bool now)
{
	far_copies_sync_stop(&far_room(room)->copies, now);
}

/* What it owns elsewhere is in the plan of the program's provider. */
static int far_record(const struct room *room, struct buf *out, struct cloche_err *err)
{
	return 0;
}

/* Wait until the process has ended, and reap it. */
static void far_reap_child(struct far_room *r)
{
	struct pollfd p = {.fd = r->pidfd, .events = POLLIN};

	if (job_wait(&p, 1, LEAVE_MS) <= 0)
		kill(r->base.pid, SIGKILL);
	(void)!job_wait_child(r->base.pid, NULL);
}

static struct room *far_destroy(struct room *room)
{
	struct far_room *r = room ? far_room(room) : NULL;

	if (!r)
		return NULL;
	if (r->ctl_open)
		(void)!far_send_ctl(r, chan_send(&r->ctl, FAR_LEAVE, STR_NULL, NULL, 0), NULL);
	if (room->pid > 0)
		far_reap_child(r);
	far_close_ctl(r);
	far_copies_sync_end(&r->copies);
	far_copies_done(&r->copies);
	fd_close(r->pidfd);
	fd_close(r->capture);
	room_done(room);
	free(r);
	return NULL;
}

const struct provider far_provider = {
	.kill = far_kill,
	.wait = far_wait,
	.record = far_record,
	.destroy = far_destroy,
	.kill_tree = far_kill_tree,
	.usage = far_usage,
	.listeners = far_listeners,
	.sync = far_sync,
	.sync_stop = far_sync_stop,
};
