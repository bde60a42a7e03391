/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker is started before the room is made, because the last step of
 * making the room needs its certificate. The gateway is started when the room first uses its
 * network (until then its listeners are watched here but never read), or when the room has lived
 * for a moment, so that a first connection seldom has to wait for it. The two are joined by a
 * socket of their own. The supervisor never sees the data on it, nor the secrets that the client
 * sends to the broker: it only hands descriptors over. If one of them ends while the room lives,
 * the room ends too: a room never runs with half a network. (It could reach nothing anyway, but it
 * would wait for ever.)
 *
 * At the end the gateway is stopped first. The broker then reads and logs the gateway's last
 * messages, and ends when its own channel closes. Each has HELPERS_GRACE before it is killed. A
 * gateway that is not ready yet has served no connection and is killed at once. A broker that
 * renews a login (login.c) ends by itself when it has written that down, and has longer. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "ipc/helper.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	FD_CONFIG = 5, /* broker: the client's configuration */
	FD_CA = 6,     /* broker: pipe for the certificates */
	MAX_OUT = 16 * 1024,
	EXPLAIN_MS = 300,
};
#define HELPERS_GRACE (2 * USEC_PER_SEC)
#define LOGIN_GRACE (10 * USEC_PER_SEC)
#define COUNTS_PATIENCE (500 * USEC_PER_MSEC)
/* Longer than a trivial command takes, and shorter than the start of a program with a TLS
 * library. */
#define GATEWAY_AFTER (2 * USEC_PER_MSEC)

static int read_frame(struct helper *h);

/* Return whether the helper ended with status 0. Its channel is closed, so it is about to end if it
 * has not yet; wait a moment for that. */
static bool ended_in_order(const struct helper *h)
{
	struct pollfd p = {.fd = h->child.pidfd, .events = POLLIN};
	siginfo_t how = {0};

	if (h->child.pid <= 0)
		return h->status == 0;
	return poll(&p, 1, EXPLAIN_MS) > 0 &&
	       waitid(P_PIDFD, (id_t)p.fd, &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       how.si_pid > 0 && how.si_code == CLD_EXITED && how.si_status == 0;
}

/* If one helper ends, the other ends too, in order, and may be noticed first. Return the one that
 * ended first. */
static struct helper *culprit(struct helper *h)
{
	struct helper *gateway = &h->sup->net.helpers[HELPER_GATEWAY];
	struct helper *other = h == gateway ? &h->sup->net.helpers[HELPER_BROKER] : gateway;

	while (other->conn.open && read_frame(other) == 1)
		;
	return h->err.code == 0 && other->sup && (other->err.code || ended_in_order(h)) ? other : h;
}

static void failed(struct helper *noticed)
{
	struct helper *h = culprit(noticed);
	struct cloche_err err = h->err;

	if (err.code == 0)
		err_set(&err, E_NETWORK, "the network's %s ended unexpectedly", h->name);
	sandbox_fail(h->sup, &err);
}

static void got_counts(struct supervisor *s)
{
	loop_timer_clear(&s->net.counts_late);
	peers_answer_stats(s);
}

static void on_counts_late(struct loop_timer *t)
{
	peers_answer_stats(container_of(t, struct supervisor, net.counts_late));
}

int helpers_pass_policy(struct supervisor *s, int client, struct cloche_err *err)
{
	struct helper *h = &s->net.helpers[HELPER_BROKER];
	int r;

	if (!s->start.gateway) {
		err_set(err, E_UNSUPPORTED, "the sandbox has no network, so no policy either");
		err_hint(err, "one that is made with --allow or --allowlist has");
		return -E_UNSUPPORTED;
	}
	r = h->conn.open ? helper_send_policy(&h->conn.chan, &client) : -EPIPE;
	if (r == 0)
		r = conn_flush(&h->conn);
	return r < 0 ? err_set(err, E_NETWORK, "the network's broker takes no policy now") : 0;
}

bool helpers_ask_counts(struct supervisor *s)
{
	struct helper *h = &s->net.helpers[HELPER_BROKER];

	if (!h->conn.open || !h->ready || helper_send_count(&h->conn.chan) < 0 ||
		conn_flush(&h->conn) < 0)
		return false;
	return s->net.counts_late.loop ||
	       loop_timer_in(s->loop, &s->net.counts_late, COUNTS_PATIENCE, on_counts_late) == 0;
}

static void to_address(const struct net_client *m, const uint8_t address[16], uint16_t port,
	struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (void *)ret;
	struct sockaddr_in6 *v6 = (void *)ret;

	*ret = (struct sockaddr_storage){.ss_family = m->family == 6 ? AF_INET6 : AF_INET};
	if (m->family == 6) {
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, address, sizeof(v6->sin6_addr));
	} else {
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, address, sizeof(v4->sin_addr));
	}
}

static bool helpers_find_owner(
	struct supervisor *s, const struct net_client *m, struct room_owner *ret)
{
	struct sockaddr_storage client, server;

	if (!s->room)
		return false;
	to_address(m, m->address, m->port, &client);
	to_address(m, m->server, m->server_port, &server);
	return room_find_owner(s->room, (void *)&client, (void *)&server, ret);
}

/* Send what was queued. Returns as read_frame. */
static int helpers_answered(struct helper *h, int r)
{
	if (r == 0)
		r = conn_flush(&h->conn);
	return r < 0 ? r : 1;
}

/* Returns as read_frame. */
static int tell_owner(struct helper *h, struct str payload)
{
	struct supervisor *s = h->sup;
	struct room_owner owner;
	struct helper_who m;
	struct helper_owner answer = {0};

	if (!helper_get_who(payload, &m) || m.client.family == 0)
		return -EPROTO;
	answer.number = m.number;
	if (helpers_find_owner(s, &m.client, &owner)) {
		answer.owner = (struct net_owner){.pid = owner.pid,
			.name = str_from(owner.name),
			.program = str_from(owner.program)};
	}
	return helpers_answered(h, helper_send_owner(&h->conn.chan, &answer));
}

/* Return whether the file has changed since `seen`, and update `seen`. */
static bool has_changed(int fd, struct stat *seen)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_dev == seen->st_dev && st.st_ino == seen->st_ino && st.st_size == seen->st_size &&
		st.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
		st.st_mtim.tv_nsec == seen->st_mtim.tv_nsec)
		return false;
	*seen = st;
	return true;
}

static const char *const names_paths[] = {"/etc/resolv.conf", "/etc/hosts"};

/* If a file is missing, perhaps for a moment, nothing is sent. */
static int send_names(struct helper *h)
{
	_cleanup_fd_ int resolv = -1, hosts = -1;
	int *const fds[] = {&resolv, &hosts};
	bool changed = false;

	for (int i = 0; i < 2; i++) {
		*fds[i] = open(names_paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (*fds[i] < 0)
			return 0;
		changed = has_changed(*fds[i], &h->sup->net.names[i]) || changed;
	}
	return changed ? helper_send_names(&h->conn.chan, (int[]){resolv, hosts}) : 0;
}

/* Return 1, or negative if the frame is malformed. */
static int took_policy(struct helper *h, struct str payload)
{
	struct supervisor *s = h->sup;
	struct helper_replaced m;

	if (!helper_get_replaced(payload, &m))
		return -EPROTO;
	free(s->net.policy_sources);
	s->net.policy_sources = str_dup(m.sources);
	s->net.policy_rules = m.rules;
	s->net.policy_real = clock_real_usec();
	record_update(s);
	return 1;
}

/* What the broker alone may send. Return as read_frame(). */
static int helpers_serve_broker(struct helper *h, const struct chan_frame *f)
{
	struct supervisor *s = h->sup;

	switch (f->type) {
	case HELPER_COUNTED:
		if (!helper_get_counted(f->payload, &s->net.counts))
			return -EPROTO;
		got_counts(s);
		return 1;
	case HELPER_REPLACED:
		return took_policy(h, f->payload);
	case HELPER_WHO:
		return tell_owner(h, f->payload);
	case HELPER_LOGIN_OPEN:
		return helpers_answered(h, logins_open(s, &h->conn.chan, f->payload));
	case HELPER_LOGIN_END:
		return helpers_answered(h, logins_end(s, &h->conn.chan, f->payload));
	case HELPER_NAMES_CHANGED:
		return send_names(h) < 0 ? -EPIPE : 1;
	default:
		return -EPROTO;
	}
}

/* Return 1 if there may be more frames, 0 if there are none now, or negative at the end. */
static int read_frame(struct helper *h)
{
	bool broker = h == &h->sup->net.helpers[HELPER_BROKER];
	struct chan_frame f;
	int r = chan_recv(&h->conn.chan, &f);

	if (r != 1)
		return r;
	if (f.fds_n != (f.type == HELPER_SSH ? 2 : 0))
		r = -EPROTO;
	else if (f.type == HELPER_SSH)
		ssh_start(h->sup, !broker, f.fds[0], f.fds[1]);
	else if (f.type == HELPER_FAILED)
		helper_get_failed(f.payload, &h->err);
	else if (f.type == HELPER_READY)
		h->ready = true;
	else
		r = broker ? helpers_serve_broker(h, &f) : -EPROTO;
	chan_frame_done(&f);
	return r;
}

static void let_broker_go(struct supervisor *s)
{
	if (!logins_are_open(s))
		conn_close(&s->net.helpers[HELPER_BROKER].conn);
}

static void helpers_on_chan(struct loop_io *io, uint32_t events)
{
	struct helper *h = container_of(io, struct helper, conn.io);
	int r;

	do
		r = read_frame(h);
	while (r == 1 && h->err.code == 0);
	if (r >= 0 && h->err.code == 0 && conn_flush(&h->conn) == 0)
		return;
	conn_close(&h->conn);
	if (h->sup->state == SUP_UP || h->sup->state == SUP_ENDING)
		failed(h);
}

static void helpers_on_death(struct loop_io *io, uint32_t events)
{
	struct helper *h = container_of(io, struct helper, child.death);
	struct supervisor *s = h->sup;

	/* Read what it sent before it died. */
	while (h->conn.open && read_frame(h) == 1)
		;
	conn_close(&h->conn);
	h->status = child_reap(&h->child);
	if (h == &s->net.helpers[HELPER_GATEWAY])
		let_broker_go(s);
	else
		logins_close(s);
	if (s->state == SUP_UP || s->state == SUP_ENDING)
		failed(h);
	sandbox_check_end(s);
}

/* Takes channel_fd. */
static int start_one(struct supervisor *s, int which, const struct program_fd *fds, size_t fds_n,
	int channel_fd, struct cloche_err *err)
{
	static const char *const names[HELPERS_N] = {"broker", "gateway"};
	struct helper *h = &s->net.helpers[which];
	_cleanup_fd_ int channel = channel_fd;
	char program[32];
	int r;

	snprintf(program, sizeof(program), "cloche-%s", names[which]);
	r = child_start(&h->child, s->loop, program, fds, fds_n, helpers_on_death, err);
	if (r < 0)
		return r;
	h->name = names[which];
	h->sup = s;
	r = conn_open(
		&h->conn, s->loop, TAKE_FD(channel), HELPER_MAX_PAYLOAD, MAX_OUT, helpers_on_chan);
	return r < 0 ? err_sys(err, -r, "watch %s", program) : 0;
}

int helpers_start(struct supervisor *s, int config_fd, int *ret_ca_fd, struct cloche_err *err)
{
	_cleanup_fd_ int ca_read = -1, ca_write = -1, net = -1, theirs = -1;
	/* Fail before the room's first process exists if the gateway's program is missing. */
	_cleanup_(freep) char *gateway = program_find("cloche-gateway", err);
	int pair[2], ours, r;

	if (!gateway)
		return -E_NOT_FOUND;
	r = fd_socketpair(SOCK_STREAM, pair);
	if (r == 0) {
		s->net.gateway_end = pair[0];
		net = pair[1];
		r = fd_pipe(pair);
	}
	if (r == 0) {
		ca_read = pair[0];
		ca_write = pair[1];
		r = fd_socketpair(SOCK_STREAM, pair);
	}
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	ours = pair[0];
	theirs = pair[1];
	const struct program_fd fds[] = {{theirs, HELPER_FD_SUPERVISOR}, {net, HELPER_FD_PEER},
		{config_fd, FD_CONFIG}, {ca_write, FD_CA}};

	for (int i = 0; i < 2; i++)
		if (stat(names_paths[i], &s->net.names[i]) < 0)
			s->net.names[i] = (struct stat){0};
	r = start_one(s, HELPER_BROKER, fds, ARRAY_SIZE(fds), ours, err);
	if (r < 0)
		return r;
	*ret_ca_fd = TAKE_FD(ca_read);
	return 0;
}

static void close_listeners(struct supervisor *s)
{
	for (unsigned i = 0; i < ROOM_LISTENERS; i++)
		s->net.listeners[i] = fd_close(s->net.listeners[i]);
}

static int send_listeners(struct supervisor *s, struct cloche_err *err)
{
	struct helper *h = &s->net.helpers[HELPER_GATEWAY];
	struct helper_listeners m = {0};
	int r;

	_Static_assert((int)HELPER_SOCKETS == (int)ROOM_LISTENERS, "each has a place");
	for (unsigned i = 0; i < ROOM_LISTENERS; i++)
		if (s->net.listeners[i] >= 0)
			m.present |= (uint8_t)(1U << i);
	r = helper_send_listeners(&h->conn.chan, &m, s->net.listeners);
	if (r == 0)
		r = conn_flush(&h->conn);
	if (r < 0)
		return err_sys(err, -r, "hand the listeners to the gateway");
	close_listeners(s);
	return 0;
}

static int start_gateway(struct supervisor *s, struct cloche_err *err)
{
	_cleanup_fd_ int net = TAKE_FD(s->net.gateway_end), theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return err_sys(err, -r, "make a socket");
	theirs = pair[1];
	const struct program_fd fds[] = {{theirs, HELPER_FD_SUPERVISOR}, {net, HELPER_FD_PEER}};

	r = start_one(s, HELPER_GATEWAY, fds, ARRAY_SIZE(fds), pair[0], err);
	return r < 0 ? r : send_listeners(s, err);
}

static void stop_watching(struct supervisor *s)
{
	for (unsigned i = 0; i < ARRAY_SIZE(s->net.knocks); i++)
		loop_io_remove(&s->net.knocks[i].io);
	loop_timer_clear(&s->net.gateway_due);
}

static void gateway_needed(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	stop_watching(s);
	if (start_gateway(s, &err) < 0)
		sandbox_fail(s, &err);
}

static void on_gateway_due(struct loop_timer *t)
{
	gateway_needed(container_of(t, struct supervisor, net.gateway_due));
}

static void on_knock(struct loop_io *io, uint32_t events)
{
	gateway_needed(container_of(io, struct knock, io)->sup);
}

int helpers_watch(struct supervisor *s, struct cloche_err *err)
{
	int r = room_listeners(s->room, s->net.listeners, err);

	if (r < 0)
		return r;
	r = loop_timer_in(s->loop, &s->net.gateway_due, GATEWAY_AFTER, on_gateway_due);
	for (unsigned i = 0; i < ROOM_LISTENERS && r == 0; i++) {
		s->net.knocks[i].sup = s;
		if (s->net.listeners[i] >= 0)
			r = loop_io_add(s->loop, &s->net.knocks[i].io, s->net.listeners[i], EPOLLIN,
				on_knock);
	}
	return r < 0 ? err_sys(err, -r, "watch the room's network") : 0;
}

static void allow_grace(struct supervisor *s, uint64_t usec);

/* A late gateway is no reason to cut the broker short, which still has to log. */
static void on_helpers_late(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, net.patience);
	bool gateway = s->net.helpers[HELPER_GATEWAY].child.pid > 0;

	if (!gateway && logins_are_open(s) && !s->net.logins_late) {
		s->net.logins_late = true;
		allow_grace(s, LOGIN_GRACE);
		return;
	}
	child_kill(&s->net.helpers[gateway ? HELPER_GATEWAY : HELPER_BROKER].child);
	if (gateway)
		allow_grace(s, HELPERS_GRACE);
}

static void allow_grace(struct supervisor *s, uint64_t usec)
{
	if (loop_timer_in(s->loop, &s->net.patience, usec, on_helpers_late) == 0)
		return;
	for (int i = 0; i < HELPERS_N; i++)
		child_kill(&s->net.helpers[i].child);
}

void helpers_stop(struct supervisor *s)
{
	struct helper *gateway = &s->net.helpers[HELPER_GATEWAY];

	stop_watching(s);
	close_listeners(s);
	ssh_stop(s);
	loop_timer_clear(&s->net.counts_late);
	s->net.gateway_end = fd_close(s->net.gateway_end);
	while (gateway->conn.open && read_frame(gateway) == 1)
		;
	if (!gateway->ready)
		child_kill(&gateway->child);
	conn_close(&gateway->conn);
	if (gateway->child.pid <= 0)
		let_broker_go(s);
	if (helpers_gone(s))
		return;
	allow_grace(s, HELPERS_GRACE);
}

bool helpers_gone(const struct supervisor *s)
{
	return !s->net.ssh_ends && s->net.helpers[HELPER_BROKER].child.pid <= 0 &&
	       s->net.helpers[HELPER_GATEWAY].child.pid <= 0;
}

void helpers_explain(struct supervisor *s, struct cloche_err *err)
{
	for (int i = 0; i < HELPERS_N; i++) {
		struct helper *h = &s->net.helpers[i];
		struct pollfd p = {.fd = h->conn.open ? h->conn.chan.fd : -1, .events = POLLIN};

		if (h->conn.open && poll(&p, 1, EXPLAIN_MS) > 0)
			while (read_frame(h) == 1)
				;
		if (h->err.code != 0) {
			*err = h->err;
			return;
		}
	}
}
