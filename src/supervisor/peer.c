/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: every connection has the same table of permitted frames (ipc/control.h); any
 * other frame ends the connection. The number of clients is limited, and so is the number of
 * connections that have not said anything: if there are too many, the oldest is dropped. Above the
 * limit of clients, a few more may connect, but only to stop the sandbox. A connection that ends
 * while one of its own frames is handled is only marked; it is freed with its handles at the end of
 * the loop's iteration. */
#include "base/clock.h"
#include "base/fd.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

enum {
	MAX_PEERS = 256,       /* that are up */
	MAX_SPARE = 16,        /* more clients, which may only stop */
	MAX_SILENT = 256,      /* connections before ATTACH */
	MAX_OUT = 1024 * 1024, /* more than this queued: the client does not read */
	FRAMES_PER_TURN = 64,
	LAST_WORDS_MS = 200,
};
#define LISTEN_AGAIN (100 * USEC_PER_MSEC)
#define SILENCE                                                                                    \
	(10 * USEC_PER_SEC) /* how long a guest may take to ATTACH, and a spare one to STOP */

static void on_again(struct loop_job *job);

enum { NEW_OWNER = 1, NEW_GUEST = 2, UP = 4 };

static void forget_early(struct peer *p);

static void bury(struct loop_job *job)
{
	struct peer *p = container_of(job, struct peer, bury);

	tasks_orphan(p->sup, p);
	forget_early(p);
	chan_done(&p->chan);
	free(p);
}

static void drop(struct peer *p)
{
	struct supervisor *s = p->sup;
	bool owner = p->owner;

	if (p->dead)
		return;
	p->dead = true;
	loop_timer_clear(&p->patience);
	loop_io_remove(&p->io);
	DL_DELETE(s->peers.all, p);
	loop_defer(s->loop, &p->bury, bury);
	peer_resume(p);
	sync_peer_gone(s, p);
	if (!owner)
		return;
	if (s->state == SUP_NEW)
		loop_stop(s->loop, 0);
	/* In a detached sandbox: nothing will ever run in it. */
	else if (!s->start.detached || s->start.unfinished ||
		 (s->start.one_shot && s->tasks.first_number == 0))
		sandbox_kill(s, CTL_REASON_CLIENT_GONE);
}

/* Whether its next frames have to wait. */
static bool peer_waits(const struct peer *p)
{
	return p->asked || p->syncs || p->held;
}

/* Write the queued frames. Drop the client if it does not read or is gone. */
static void peer_flush(struct peer *p)
{
	if (p->dead)
		return;
	if (chan_flush(&p->chan) < 0) {
		drop(p);
		return;
	}
	loop_io_set(&p->io, (peer_waits(p) ? 0 : (uint32_t)EPOLLIN) |
				    (chan_pending(&p->chan) ? (uint32_t)EPOLLOUT : 0));
}

void peer_sent(struct peer *p, int r)
{
	if (r < 0)
		drop(p);
	else
		peer_flush(p);
}

static bool on_start(struct peer *p, struct chan_frame *f)
{
	struct ctl_start m;
	bool ok = ctl_get_start(f->payload, &m) && f->fds_n == ctl_start_fds(&m);

	if (ok) {
		p->up = true;
		sandbox_start(p->sup, &m, f->fds);
	}
	ctl_start_done(&m);
	return ok;
}

static int send_started(struct peer *p)
{
	struct supervisor *s = p->sup;
	struct ctl_started m = {.id = str_from(s->spec.id),
		.provider = str_from(s->room->provider->name),
		.isolation = str_from(room_isolation(s->room)),
		.pid = (uint32_t)s->room->pid};

	return ctl_send_started(&p->chan, &m);
}

/* Tell the client why its connection ends. Return false, for callers that end it. */
static bool peer_refuse(struct peer *p)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	err_set(&err, E_BUSY, "too many clients: %d use the sandbox", MAX_PEERS);
	err_hint(&err, "wait until some of them have ended; \"cloche stop\" still works");
	if (ctl_send_error(&p->chan, &err) == 0)
		(void)!chan_flush(&p->chan);
	return false;
}

static unsigned count(const struct supervisor *s, bool up)
{
	const struct peer *p;
	unsigned n = 0;

	DL_FOREACH (s->peers.all, p)
		n += p->up == up;
	return n;
}

/* In a time that says nothing about the word. */
static bool knows_word(const struct supervisor *s, struct str word)
{
	unsigned char wrong = word.n != RUNDIR_WORD_BYTES;

	for (size_t i = 0; i < word.n && i < RUNDIR_WORD_BYTES; i++)
		wrong |= (unsigned char)(word.p[i] ^ s->dir.word[i]);
	return wrong == 0;
}

static bool on_attach(struct peer *p, struct chan_frame *f)
{
	unsigned others = count(p->sup, true);
	struct ctl_attach m;

	if (!ctl_get_attach(f->payload, &m) || m.version != CTL_VERSION || !p->sup->room ||
		!knows_word(p->sup, m.word))
		return false;
	if (others >= MAX_PEERS + MAX_SPARE)
		return peer_refuse(p);
	p->spare = others >= MAX_PEERS;
	if (!p->spare)
		loop_timer_clear(&p->patience);
	p->up = true;
	return send_started(p) == 0;
}

static bool execute(struct peer *p, struct ctl_exec *m, struct chan_frame *f)
{
	bool ok = task_exec(p, m, f);

	/* Hold this client only: another one must be able to stop a room whose init does not
	 * read. */
	p->held = sandbox_init_is_full(p->sup);
	return ok;
}

/* Takes m's content. Before the first look the client may stop the sandbox meanwhile. */
static bool keep_early(struct peer *p, struct ctl_exec *m, struct chan_frame *f)
{
	if (p->has_early) {
		watcher_refuse(p, m->exec, E_BUSY, 0, "what is there is still put on record");
		return true;
	}
	p->has_early = true;
	p->early_look = p->sup->recording.looks_asked;
	p->early = *m;
	*m = (struct ctl_exec){0};
	p->early_frame = (struct chan_frame){.type = f->type, .fds_n = f->fds_n};
	for (unsigned i = 0; i < f->fds_n; i++)
		p->early_frame.fds[i] = TAKE_FD(f->fds[i]);
	return true;
}

static void forget_early(struct peer *p)
{
	if (!p->has_early)
		return;
	p->has_early = false;
	ctl_exec_done(&p->early);
	chan_frame_done(&p->early_frame);
}

static bool on_exec(struct peer *p, struct chan_frame *f)
{
	struct ctl_exec m;
	bool ok = ctl_get_exec(f->payload, &m) && f->fds_n == ctl_exec_fds(&m) &&
		  m.exec > p->last_exec;

	if (ok) {
		p->last_exec = m.exec;
		if (recording_is_awaited(p->sup))
			ok = keep_early(p, &m, f);
		else if (recording_look_again(p->sup, &m))
			/* That takes a moment: the client's other frames wait. */
			ok = p->held = keep_early(p, &m, f);
		else
			ok = execute(p, &m, f);
	}
	ctl_exec_done(&m);
	return ok;
}

static bool on_join(struct peer *p, struct chan_frame *f)
{
	struct ctl_join m;

	if (!ctl_get_join(f->payload, &m) || m.exec <= p->last_exec || f->fds_n == 1)
		return false;
	p->last_exec = m.exec;
	task_join(p, &m, f);
	return true;
}

static bool peer_on_signal(struct peer *p, struct chan_frame *f)
{
	struct ctl_signal m;

	if (!ctl_get_signal(f->payload, &m))
		return false;
	if (m.scope == CTL_SCOPE_ROOM && m.signo == SIGSTOP)
		peer_pause(p);
	else if (m.scope == CTL_SCOPE_ROOM && m.signo == SIGCONT && p->paused)
		peer_resume(p);
	else
		task_signal(p, &m);
	return true;
}

static bool on_complete(struct peer *p, struct chan_frame *f)
{
	if (!p->owner || f->payload.n > 0)
		return false;
	p->sup->start.unfinished = false;
	peer_sent(p, ctl_send_completed(&p->chan));
	return true;
}

static bool on_resize(struct peer *p, struct chan_frame *f)
{
	struct ctl_resize m;

	if (!ctl_get_resize(f->payload, &m))
		return false;
	task_resize(p, &m);
	return true;
}

static bool on_stop(struct peer *p, struct chan_frame *f)
{
	struct ctl_stop m;

	if (!ctl_get_stop(f->payload, &m))
		return false;
	loop_timer_clear(&p->patience);
	if (!m.if_idle || !request_refuse_stop(p))
		sandbox_end(p->sup, CTL_REASON_STOPPED, m.grace_usec);
	return true;
}

static const struct {
	uint16_t type;
	uint8_t states;
	uint8_t max_fds;
	bool (*handle)(struct peer *p, struct chan_frame *f);
} permitted[] = {
	{CTL_START, NEW_OWNER, 3, on_start},
	{CTL_ATTACH, NEW_GUEST, 0, on_attach},
	{CTL_EXEC, UP, 3, on_exec},
	{CTL_SIGNAL, UP, 0, peer_on_signal},
	{CTL_RESIZE, UP, 0, on_resize},
	{CTL_STOP, UP, 0, on_stop},
	{CTL_JOIN, UP, 2, on_join},
	{CTL_STATS, UP, 0, request_stats},
	{CTL_FORWARD, UP, 1, forward_on_request},
	{CTL_LAYERS, UP, 0, request_layers},
	{CTL_POLICY, UP, 1, request_policy},
	{CTL_COMPLETE, UP, 0, on_complete},
	{CTL_SYNC, UP, 1, request_sync},
};

static bool dispatch(struct peer *p, struct chan_frame *f)
{
	unsigned state = p->up ? UP : p->owner ? NEW_OWNER : NEW_GUEST;

	for (size_t i = 0; i < ARRAY_SIZE(permitted); i++) {
		if (permitted[i].type != f->type)
			continue;
		if (!(permitted[i].states & state) || f->fds_n > permitted[i].max_fds)
			return false;
		if (p->spare && f->type != CTL_STOP)
			return peer_refuse(p);
		/* The client could not know that the sandbox has ended. */
		return p->sup->state >= SUP_KILLED || permitted[i].handle(p, f);
	}
	return false;
}

/* Handle frames until there are none, or until one has to be answered before the next. */
static void take_frames(struct peer *p)
{
	struct chan_frame f;
	int r = 1;

	for (int i = 0; i < FRAMES_PER_TURN && !peer_waits(p); i++) {
		r = chan_recv(&p->chan, &f);
		if (r != 1)
			break;
		if (!dispatch(p, &f))
			r = -EPROTO;
		chan_frame_done(&f);
		if (p->dead)
			return;
		if (r < 0)
			break;
	}
	if (r < 0) {
		drop(p);
		return;
	}
	/* Frames that are left in the buffer do not make the socket readable. */
	if (r == 1 && !peer_waits(p))
		loop_defer(p->sup->loop, &p->again, on_again);
	peer_flush(p);
}

static void on_again(struct loop_job *job)
{
	struct peer *p = container_of(job, struct peer, again);

	if (!p->dead)
		take_frames(p);
}

/* The client is gone. Its earlier frames still count, but the loop must not spin on its socket. */
static void gone_while_held(struct peer *p)
{
	peer_resume(p);
	if (p->owner && (!p->sup->start.detached || p->sup->start.unfinished))
		drop(p);
	else
		loop_io_remove(&p->io);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct peer *p = container_of(io, struct peer, io);

	/* No client waits for that answer any more, and the loop must not spin on the socket. */
	if ((p->asked || p->syncs) && events & (EPOLLHUP | EPOLLERR))
		drop(p);
	else if (p->held && events & (EPOLLHUP | EPOLLERR))
		gone_while_held(p);
	else
		take_frames(p);
}

static void peer_go_on(struct peer *p)
{
	p->held = false;
	if (!p->io.loop && loop_io_add(p->sup->loop, &p->io, p->chan.fd, EPOLLIN, on_io) < 0)
		drop(p);
	else
		loop_defer(p->sup->loop, &p->again, on_again);
}

void peers_begin(struct supervisor *s)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next) {
		if (!p->has_early || p->early_look > s->recording.looks_done)
			continue;
		if (!execute(p, &p->early, &p->early_frame))
			drop(p);
		else if (!p->held && !p->dead)
			peer_go_on(p);
		forget_early(p);
	}
}

void peers_go_on(struct supervisor *s)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next)
		if (p->held && !p->has_early)
			peer_go_on(p);
}

void peer_answered(struct peer *p)
{
	if (!p->dead)
		loop_defer(p->sup->loop, &p->again, on_again);
}

void peers_answer_stats(struct supervisor *s)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next) {
		if (!p->asked)
			continue;
		p->asked = false;
		request_answer_stats(p);
		peer_answered(p);
	}
}

int peer_add(struct supervisor *s, int fd, bool owner)
{
	struct peer *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		fd_close(fd);
		return -ENOMEM;
	}
	p->sup = s;
	p->owner = owner;
	r = chan_init(&p->chan, fd, CTL_MAX_PAYLOAD, MAX_OUT);
	if (r == 0)
		r = loop_io_add(s->loop, &p->io, fd, EPOLLIN, on_io);
	if (r < 0) {
		chan_done(&p->chan);
		free(p);
		return r;
	}
	DL_APPEND(s->peers.all, p);
	return 0;
}

/* Only our own user and root may connect; the directory's mode says the same. */
static bool may_connect(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 &&
	       (cred.uid == geteuid() || cred.uid == 0);
}

static void on_listen_again(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, peers.listen_again);

	if (s->dir.listen >= 0 &&
		loop_io_add(s->loop, &s->peers.listener, s->dir.listen, EPOLLIN, peer_accept) < 0)
		(void)!loop_timer_in(s->loop, t, LISTEN_AGAIN, on_listen_again);
}

static void on_silence(struct loop_timer *t)
{
	struct peer *p = container_of(t, struct peer, patience);

	if (p->spare)
		(void)!peer_refuse(p);
	drop(p);
}

/* Set the time limit for the last peer of the list, which was just added. */
static void expect_attach(struct supervisor *s)
{
	struct peer *last = s->peers.all->prev, *p;

	if (loop_timer_in(s->loop, &last->patience, SILENCE, on_silence) < 0)
		drop(last);
	if (count(s, false) <= MAX_SILENT)
		return;
	DL_FOREACH (s->peers.all, p)
		if (!p->up && !p->owner) {
			(void)!peer_refuse(p);
			drop(p);
			return;
		}
}

void peer_accept(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, peers.listener);
	_cleanup_fd_ int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* Without free descriptors the connection stays in the queue and would wake us at once. */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		loop_io_remove(io);
		(void)!loop_timer_in(
			s->loop, &s->peers.listen_again, LISTEN_AGAIN, on_listen_again);
	}
	/* A client that cannot be served sees its connection end. */
	if (fd >= 0 && may_connect(fd) && peer_add(s, TAKE_FD(fd), false) == 0)
		expect_attach(s);
}

void peers_warning(struct supervisor *s, struct str text)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next)
		if (p->up)
			peer_sent(p, ctl_send_warning(&p->chan, &(struct ctl_warning){text}));
}

void peers_error(struct supervisor *s, const struct cloche_err *err)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next)
		if (p->up)
			peer_sent(p, ctl_send_error(&p->chan, err));
}

void peers_started(struct supervisor *s)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next)
		if (p->up)
			peer_sent(p, send_started(p));
}

void peers_brings(struct supervisor *s)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next)
		if (p->up)
			peer_sent(p, ctl_send_brings(&p->chan));
}

void peers_ended(struct supervisor *s, const struct ctl_ended *m)
{
	struct peer *p, *next;

	DL_FOREACH_SAFE (s->peers.all, p, next) {
		int r = p->up ? ctl_send_ended(&p->chan, m) : -1;

		if (r == 0)
			r = chan_flush_wait(&p->chan, LAST_WORDS_MS);
		drop(p); /* whether it got the frame or not */
	}
}

/* Return the client that waits for the end, or NULL. */
static const struct peer *peer_find_owner(const struct supervisor *s)
{
	const struct peer *p = s->peers.all;

	while (p && !p->owner)
		p = p->next;
	return p;
}

pid_t peer_pid(const struct peer *p)
{
	struct ucred cred = {0};
	socklen_t n = sizeof(cred);

	if (p->dead || getsockopt(p->chan.fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return 0;
	return cred.pid;
}

pid_t peers_owner(const struct supervisor *s)
{
	const struct peer *p = peer_find_owner(s);

	return p ? peer_pid(p) : 0;
}

bool peers_owner_is_gone(const struct supervisor *s)
{
	const struct peer *p = peer_find_owner(s);
	struct pollfd f = {.fd = p ? p->chan.fd : -1, .events = POLLRDHUP};

	return !p || (poll(&f, 1, 0) > 0 && f.revents & (POLLRDHUP | POLLHUP | POLLERR));
}
