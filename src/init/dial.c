/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-ROUTE): no process of such a room ever has a socket of the internet
 * families. socket() gives it one end of a pair of unix sockets, and the other end is held here.
 * connect() sends that end to the gateway, with the address that was asked for. So the socket
 * itself never changes, and whoever watches it goes on watching it. What else may be done with it
 * concerns the two ends alone.
 *
 * An address is read from the caller's memory once. A descriptor counts as the socket that is
 * behind it at that moment; whatever it is a moment later, the room can reach with it what it can
 * reach anyway. The only calls that are let through to the kernel (bind(), getsockname() and
 * getpeername() for other sockets) are those that need no judgement.
 *
 * A socket for datagrams can only ask for names: it is a pair of another kind, which also keeps
 * messages apart and looks at no address in them, and a relay carries queries to the gateway.
 *
 * The machine's own services are not reached, nor servers of the room: nobody can listen. */
#include "init/dial.h"
#include "base/fd.h"
#include "jail/asked.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	TYPE_MASK = 15,
	DNS_PORT = 53,
	FIRST_PORT = 32768,
	BEHIND_MAX = 64 * 1024, /* bytes that the gateway has not read */
	STATUS_BYTES = 512,
};
/* Instead of an answer. */
enum { DIAL_LET = 1, DIAL_GIVEN = 2 };

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* --- the sockets --- */

static struct dial_held *held_find(struct dial *d, const struct stat *st)
{
	for (size_t i = 0; S_ISSOCK(st->st_mode) && i < d->held_n; i++)
		if (d->held[i].inode == st->st_ino)
			return &d->held[i];
	return NULL;
}

static void held_remove(struct dial *d, struct dial_held *h)
{
	fd_close(h->fd);
	*h = d->held[--d->held_n];
}

static const struct dial_done *done_find(const struct dial *d, const struct stat *st)
{
	for (size_t i = 0; S_ISSOCK(st->st_mode) && i < MIN(d->done_n, (size_t)DIAL_DONE_MAX); i++)
		if (d->done[i].inode == st->st_ino)
			return &d->done[i];
	return NULL;
}

static void done_add(struct dial *d, const struct dial_held *h, const struct net_client *client)
{
	d->done[d->done_n++ % DIAL_DONE_MAX] =
		(struct dial_done){.inode = h->inode, .v6 = h->v6, .client = *client};
}

size_t dial_poll(const struct dial *d, struct pollfd *polls)
{
	size_t n = 0;

	for (size_t i = 0; i < d->held_n; i++)
		polls[n++] = (struct pollfd){
			.fd = d->held[i].fd, .events = d->held[i].datagrams ? POLLIN : 0};
	for (size_t i = 0; i < d->relays_n; i++) {
		polls[n++] = (struct pollfd){.fd = d->relays[i].room, .events = POLLIN};
		polls[n++] = (struct pollfd){.fd = d->relays[i].gateway, .events = POLLIN};
	}
	return n;
}

/* Drops what was sent to nowhere, so that nobody waits for a place for more. */
static void held_drain(const struct dial_held *h)
{
	char byte;

	while (recv(h->fd, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
		;
}

void dial_look(struct dial *d, const struct pollfd *polls)
{
	const struct pollfd *relays = polls + d->held_n;

	/* From the end, as the last one takes the place of the one that goes. */
	for (size_t i = d->relays_n; i-- > 0;) {
		struct relay *r = &d->relays[i];

		if ((!relays[2 * i].revents || relay_to_gateway(r)) &&
			(!relays[2 * i + 1].revents || relay_to_room(r)))
			continue;
		relay_close(r);
		*r = d->relays[--d->relays_n];
	}
	for (size_t i = d->held_n; i-- > 0;) {
		if (polls[i].revents & POLLIN && d->held[i].datagrams)
			held_drain(&d->held[i]);
		if (polls[i].revents & (POLLHUP | POLLERR))
			held_remove(d, &d->held[i]);
	}
}

void dial_done(struct dial *d)
{
	while (d->held_n)
		held_remove(d, &d->held[d->held_n - 1]);
	while (d->relays_n)
		relay_close(&d->relays[--d->relays_n]);
	d->listener = fd_close(d->listener);
}

static int dial_socket(struct dial *d, const struct asked *a)
{
	const int family = (int)a->args[0], type = (int)a->args[1], protocol = (int)a->args[2];
	const bool datagrams = (type & TYPE_MASK) == SOCK_DGRAM;
	_cleanup_fd_ int theirs = -1, ours = -1;
	struct stat st;
	int pair[2], r;

	if ((!datagrams && (type & TYPE_MASK) != SOCK_STREAM) ||
		(protocol != 0 && protocol != (datagrams ? IPPROTO_UDP : IPPROTO_TCP)))
		return -EACCES;
	if (d->held_n == DIAL_HELD_MAX)
		return -ENFILE;
	r = fd_socketpair(datagrams ? SOCK_SEQPACKET : SOCK_STREAM, pair);
	if (r < 0)
		return -ENFILE;
	theirs = pair[0];
	ours = pair[1];
	if (fstat(theirs, &st) < 0)
		return -ENFILE;
	r = type & SOCK_NONBLOCK ? fd_set_nonblock(theirs, true) : 0;
	if (r == 0)
		r = asked_give(a, theirs, type & SOCK_CLOEXEC);
	if (r < 0)
		return r;
	d->held[d->held_n++] = (struct dial_held){.inode = st.st_ino,
		.fd = TAKE_FD(ours),
		.v6 = family == AF_INET6,
		.datagrams = datagrams};
	return DIAL_GIVEN;
}

/* --- addresses --- */

/* Reads the address that the call's second and third argument are. */
static int address_read(const struct asked *a, union address *ret)
{
	const socklen_t n = (socklen_t)a->args[2];

	*ret = (union address){0};
	if (n < sizeof(ret->sa.sa_family) || n > sizeof(struct sockaddr_storage))
		return -EINVAL;
	return asked_read(a, a->args[1], ret, MIN(n, (socklen_t)sizeof(*ret))) < 0 ? -EFAULT : 0;
}

static bool address_is_whole(const struct asked *a, const union address *address)
{
	const socklen_t n = (socklen_t)a->args[2];

	/* The kernel also takes an IPv6 address without its last field. */
	return address->sa.sa_family == AF_INET ? n >= sizeof(address->v4)
						: n >= offsetof(struct sockaddr_in6, sin6_scope_id);
}

/* Sets the server of a connection that this socket may make. Returns 0 or -errno. */
static int address_to_server(
	const struct dial_held *h, const union address *to, struct net_client *ret)
{
	*ret = (struct net_client){.family = h->v6 ? 6 : 4};
	if (to->sa.sa_family == AF_INET && !h->v6) {
		memcpy(ret->server, &to->v4.sin_addr, sizeof(to->v4.sin_addr));
		ret->server_port = ntohs(to->v4.sin_port);
	} else if (to->sa.sa_family == AF_INET6 && h->v6) {
		memcpy(ret->server, &to->v6.sin6_addr, sizeof(to->v6.sin6_addr));
		ret->server_port = ntohs(to->v6.sin6_port);
		if (IN6_IS_ADDR_V4MAPPED(&to->v6.sin6_addr)) {
			ret->family = 4;
			memmove(ret->server, ret->server + 12, 4);
			memset(ret->server + 4, 0, sizeof(ret->server) - 4);
		}
	} else
		return -EAFNOSUPPORT;
	return ret->server_port ? 0 : -ECONNREFUSED;
}

/* Whether it is the machine itself. */
static bool server_is_local(const struct net_client *c)
{
	static const uint8_t none[16], loopback6[16] = {[15] = 1};

	if (c->family == 4)
		return c->server[0] == 127 || c->server[0] == 0;
	return memcmp(c->server, none, sizeof(none)) == 0 ||
	       memcmp(c->server, loopback6, sizeof(loopback6)) == 0;
}

/* --- who dials --- */

struct dial_owner {
	char name[16], program[256];
};

/* Finds the process of a thread; 0: it is gone. */
static uint32_t owner_find_pid(pid_t thread)
{
	char path[64], text[STATUS_BYTES];
	unsigned long pid = 0;
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	/* The name comes first; a newline in it is written as two characters. */
	at = strstr(text, "\nTgid:");
	if (at)
		pid = strtoul(at + strlen("\nTgid:"), NULL, 10);
	return (uint32_t)pid;
}

/* The texts of *ret lie in *words. */
static void owner_find(pid_t thread, struct dial_owner *words, struct net_owner *ret)
{
	const uint32_t pid = owner_find_pid(thread);
	char path[64];
	ssize_t n;

	*ret = (struct net_owner){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, words->name, sizeof(words->name));
	if (n > 0 && words->name[n - 1] == '\n')
		n--;
	ret->name = str_make(words->name, (size_t)MAX(n, 0));
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, words->program, sizeof(words->program));
	ret->program = str_make(words->program, (size_t)MAX(n, 0));
}

/* --- connecting --- */

/* The gateway takes no more while it has too many connections; what waits for it is bounded. */
static bool gateway_is_behind(const struct dial *d)
{
	int unread = 0;

	return chan_pending(d->gateway) > 0 || ioctl(d->gateway->fd, SIOCOUTQ, &unread) < 0 ||
	       unread > BEHIND_MAX;
}

/* fd: the gateway's end, borrowed. */
static int dial_send(struct dial *d, const struct asked *a, const struct net_client *client, int fd)
{
	struct capture_connection m = {.client = *client};
	struct dial_owner words;
	int r;

	if (gateway_is_behind(d))
		return -ECONNREFUSED;
	owner_find(a->thread, &words, &m.owner);
	if (!asked_is_valid(a))
		return -ESRCH;
	r = capture_send_connection(d->gateway, &m, fd);
	if (r == 0)
		r = chan_flush(d->gateway);
	return r < 0 ? -ECONNREFUSED : 0;
}

/* Queries for names go on as over a connection. */
static int dial_names(
	struct dial *d, const struct asked *a, struct dial_held *h, const struct net_client *client)
{
	int pair[2], r;

	if (client->server_port != DNS_PORT)
		return -ENETUNREACH;
	if (d->relays_n == DIAL_RELAYS_MAX || fd_socketpair(SOCK_STREAM, pair) < 0)
		return -ECONNREFUSED;
	r = dial_send(d, a, client, pair[0]);
	fd_close(pair[0]);
	if (r < 0) {
		fd_close(pair[1]);
		return r;
	}
	d->relays[d->relays_n++] = (struct relay){.room = TAKE_FD(h->fd), .gateway = pair[1]};
	return 0;
}

static int dial_connect(struct dial *d, const struct asked *a)
{
	struct net_client client;
	struct dial_held *h;
	union address to;
	struct stat st;
	int r = asked_stat(a, (int)a->args[0], &st);

	if (r < 0)
		return r;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	r = address_read(a, &to);
	if (r < 0)
		return r;
	/* Somebody outside may listen at any path. */
	if (to.sa.sa_family == AF_UNIX)
		return -ECONNREFUSED;
	h = held_find(d, &st);
	if (!h)
		return done_find(d, &st) ? -EISCONN : -EAFNOSUPPORT;
	r = address_to_server(h, &to, &client);
	if (r == 0 && !address_is_whole(a, &to))
		r = -EINVAL;
	if (r < 0)
		return r;
	if (!d->captured)
		return -ENETUNREACH;
	if (server_is_local(&client) && client.server_port != DNS_PORT)
		return -ECONNREFUSED;
	d->port |= FIRST_PORT;
	client.port = d->port++;
	r = h->datagrams ? dial_names(d, a, h, &client) : dial_send(d, a, &client, h->fd);
	if (r == 0) {
		done_add(d, h, &client);
		held_remove(d, h);
	}
	return r;
}

/* What such a socket answers if it shall come from some address: any will do, and no port is given
 * to it, as nobody could listen. */
static int dial_bind(struct dial *d, const struct asked *a)
{
	union address at;
	struct stat st;
	const struct dial_held *h;
	int r = asked_stat(a, (int)a->args[0], &st);

	h = r < 0 ? NULL : held_find(d, &st);
	if (!h)
		return DIAL_LET;
	/* It would wait for datagrams that come from anywhere (as the resolver of musl does). */
	if (h->datagrams)
		return -EACCES;
	r = address_read(a, &at);
	if (r < 0)
		return r;
	if (at.sa.sa_family != AF_INET && at.sa.sa_family != AF_INET6)
		return -EINVAL;
	return address_is_whole(a, &at) && at.v4.sin_port == 0 ? 0 : -EACCES;
}

/* --- names --- */

static socklen_t name_make(bool v6, const struct net_client *c, bool peer, union address *ret)
{
	const uint8_t *address = peer ? c->server : c->address;
	const uint16_t port = htons(peer ? c->server_port : c->port);
	uint8_t *to = (uint8_t *)&ret->v6.sin6_addr;

	*ret = (union address){0};
	if (!v6) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = port;
		memcpy(&ret->v4.sin_addr, address, sizeof(ret->v4.sin_addr));
		return sizeof(ret->v4);
	}
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = port;
	if (c->family == 4) {
		to[10] = to[11] = 0xff;
		memcpy(to + 12, address, 4);
	} else
		memcpy(to, address, sizeof(ret->v6.sin6_addr));
	return sizeof(ret->v6);
}

/* Writes an address where the second and third argument point to, as far as there is place. */
static int name_write(const struct asked *a, const union address *name, socklen_t n)
{
	int place;

	if (asked_read(a, a->args[2], &place, sizeof(place)) < 0)
		return -EFAULT;
	if (place < 0)
		return -EINVAL;
	if (place && asked_write(a, a->args[1], name, MIN((size_t)place, (size_t)n)) < 0)
		return -EFAULT;
	return asked_write(a, a->args[2], &n, sizeof(n)) < 0 ? -EFAULT : 0;
}

static int dial_tell_name(struct dial *d, const struct asked *a, bool peer)
{
	static const struct net_client none;
	const struct dial_done *done;
	const struct dial_held *held;
	union address name;
	struct stat st;
	socklen_t n;

	if (asked_stat(a, (int)a->args[0], &st) < 0)
		return DIAL_LET;
	held = held_find(d, &st);
	done = held ? NULL : done_find(d, &st);
	if (held && peer)
		return -ENOTCONN;
	if (!held && !done)
		return DIAL_LET;
	n = name_make(held ? held->v6 : done->v6, held ? &none : &done->client, peer, &name);
	return name_write(a, &name, n);
}

static int dial_decide(struct dial *d, const struct asked *a)
{
	int r;

	switch (a->call) {
	case SYS_socket:
		return dial_socket(d, a);
	case SYS_connect:
		return dial_connect(d, a);
	case SYS_bind:
		return dial_bind(d, a);
	case SYS_getsockname:
		return dial_tell_name(d, a, false);
	case SYS_getpeername:
		return dial_tell_name(d, a, true);
	}
	return keep_answers(&d->keep, a, &r) ? r : -EPERM;
}

void dial_answer(struct dial *d)
{
	struct asked a;
	int r;

	/* The process may have been killed meanwhile. */
	if (asked_take(d->listener, &a) < 0)
		return;
	r = dial_decide(d, &a);
	if (r == DIAL_LET)
		asked_let(&a);
	else if (r != DIAL_GIVEN)
		asked_answer(&a, r);
}
