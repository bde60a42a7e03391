/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: requests of clients about the room as a whole. The broker has the figures of
 * the network and is asked for them. Further frames of the asking client wait for its answer, so
 * that answers keep their order.
 *
 * A port is forwarded by a program of its own (cloche-forward), which gets the client's listening
 * socket and a socket to a process of the room that connects on demand. The supervisor ends both.
 *
 * A client sends a new policy to the broker directly; only the socket passes through here. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "ipc/forward.h"
#include "ipc/roomctl.h"
#include "supervisor/supervisor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <utlist.h>

enum { MAX_FORWARDS = 64 };

void request_refuse(struct peer *p, uint16_t request, const struct cloche_err *err)
{
	const struct ctl_refused m = {.request = request, .err = *err};

	peer_sent(p, ctl_send_refused(&p->chan, &m));
}

bool request_refuse_stop(struct peer *p)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	const struct task *t, *tmp;
	bool in_use = false;

	HASH_ITER (hh, p->sup->tasks.known, t, tmp)
		in_use = in_use || t->shown || t->watchers;
	if (!in_use)
		return false;
	err_set(&err, E_BUSY, "something runs in sandbox %s", p->sup->spec.id);
	request_refuse(p, CTL_STOP, &err);
	return true;
}

/* --- figures --- */

bool request_stats(struct peer *p, struct chan_frame *f)
{
	if (helpers_ask_counts(p->sup))
		p->asked = true;
	else
		request_answer_stats(p);
	return f->payload.n == 0;
}

void request_answer_stats(struct peer *p)
{
	struct supervisor *s = p->sup;
	struct room_usage u = {0};
	struct ctl_stats_now m = {.now_usec = clock_mono_usec(),
		.memory_limit = s->spec.limits.memory_bytes,
		.pids_limit = s->spec.limits.pids,
		.execs_running = tasks_running(s),
		.execs_total = tasks_total(s),
		.net_allowed = s->net.counts.allowed,
		.net_blocked = s->net.counts.blocked,
		.net_sent = s->net.counts.sent,
		.net_received = s->net.counts.received};

	m.uptime_usec = s->started_at ? m.now_usec - s->started_at : 0;
	if (s->room && s->room->provider->usage(s->room, &u, NULL) == 0) {
		m.cpu_usec = u.cpu_usec;
		m.memory_bytes = u.memory_bytes;
		m.memory_peak_bytes = u.memory_peak_bytes;
		m.pids = u.pids;
		m.pids_peak = u.pids_peak;
		m.io_read_bytes = u.io_read_bytes;
		m.io_write_bytes = u.io_write_bytes;
	}
	peer_sent(p, ctl_send_stats_now(&p->chan, &m));
}

/* --- layers --- */

bool request_layers(struct peer *p, struct chan_frame *f)
{
	const struct room *room = p->sup->room;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int fds[2];

	if (!room)
		err_set(&err, E_UNSUPPORTED, "this sandbox has no room (any more)");
	if (room && room_layers(room, &fds[0], &fds[1], &err) == 0)
		peer_sent(p, ctl_send_layers_are(&p->chan, fds));
	else
		request_refuse(p, CTL_LAYERS, &err);
	return f->payload.n == 0;
}

/* --- policy --- */

static bool is_unix_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

bool request_policy(struct peer *p, struct chan_frame *f)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (f->payload.n > 0 || f->fds_n != 1 || !is_unix_stream(f->fds[0]))
		return false;
	if (helpers_pass_policy(p->sup, f->fds[0], &err) < 0)
		request_refuse(p, CTL_POLICY, &err);
	else
		peer_sent(p, ctl_send_policy_passed(&p->chan));
	return true;
}

/* --- ports --- */

static void forward_free(struct forward *f)
{
	free(f->host_address);
	free(f);
}

static void on_forward_death(struct loop_io *io, uint32_t events)
{
	struct forward *f = container_of(io, struct forward, child.death);
	struct supervisor *s = f->sup;

	child_reap(&f->child);
	DL_DELETE(s->forwards, f);
	forward_free(f);
	if (s->state == SUP_UP)
		record_update(s);
}

/* Return whether fd is a TCP socket that listens on loopback only; *ret_port is its port. */
static bool is_loopback_listener(int fd, uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};
	socklen_t n = sizeof(a), int_n = sizeof(int);
	int protocol = 0, listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &int_n) < 0 ||
		protocol != IPPROTO_TCP ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_n) < 0 || !listens ||
		getsockname(fd, &a.any, &n) < 0)
		return false;
	*ret_port = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
	if (a.any.sa_family == AF_INET)
		return ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
}

/* Start the program in the room, with one end of a socket as its descriptor 0. */
static int start_inside(struct supervisor *s, uint16_t port, int *ret_ours, struct cloche_err *err)
{
	char init[] = ROOMCTL_INIT_PATH, mode[] = "connect", text[8];
	char *argv[] = {init, mode, text, NULL};
	struct exec_spec spec;
	_cleanup_fd_ int theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return err_sys(err, -r, "make a socket");
	*ret_ours = pair[0];
	theirs = pair[1];
	snprintf(text, sizeof(text), "%u", port);
	exec_spec_init(&spec);
	spec.argv = argv;
	if (!task_internal(s, &spec, theirs))
		return err_set(err, E_BUSY, "the sandbox takes no more processes");
	return 0;
}

static int start_program(struct forward *f, int listener, int inside, struct cloche_err *err)
{
	const struct program_fd fds[] = {
		{listener, FORWARD_FD_LISTENER}, {inside, FORWARD_FD_ROOM}};

	return child_start(&f->child, f->sup->loop, "cloche-forward", fds, ARRAY_SIZE(fds),
		on_forward_death, err);
}

static int start_forward(
	struct supervisor *s, const struct ctl_forward *m, int listener, struct cloche_err *err)
{
	_cleanup_fd_ int inside = -1;
	struct forward *f;
	int n, r;

	DL_COUNT(s->forwards, f, n);
	if (n >= MAX_FORWARDS)
		return err_set(err, E_LIMIT, "the sandbox has %d forwarded ports already", n);
	r = start_inside(s, m->guest_port, &inside, err);
	if (r < 0)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err);
	*f = (struct forward){.sup = s, .guest_port = m->guest_port, .host_port = m->host_port};
	f->host_address = str_dup(m->host_address);
	r = f->host_address ? start_program(f, listener, inside, err) : err_nomem(err);
	if (r < 0) {
		forward_free(f);
		return r;
	}
	DL_APPEND(s->forwards, f);
	record_update(s);
	return 0;
}

bool request_forward(struct peer *p, struct chan_frame *frame)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct ctl_forward m;
	uint16_t port;
	int r;

	if (!ctl_get_forward(frame->payload, &m) || frame->fds_n != 1)
		return false;
	if (!is_loopback_listener(frame->fds[0], &port))
		r = err_set(&err, E_DENIED,
			"only TCP sockets that listen on the host's loopback are forwarded");
	else if (port != m.host_port)
		r = err_set(&err, E_USAGE, "the socket listens on port %u, not on %u", port,
			m.host_port);
	else
		r = start_forward(p->sup, &m, frame->fds[0], &err);
	if (r < 0)
		request_refuse(p, CTL_FORWARD, &err);
	else
		peer_sent(p, ctl_send_forwarded(&p->chan));
	return true;
}

void forwards_stop(struct supervisor *s)
{
	struct forward *f, *tmp;

	DL_FOREACH_SAFE (s->forwards, f, tmp) {
		child_kill(&f->child);
		child_reap(&f->child);
		DL_DELETE(s->forwards, f);
		forward_free(f);
	}
}
