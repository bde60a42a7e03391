/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: libssh moves the bytes of its socket whenever ssh_event_dopoll() runs, into
 * and out of buffers of its own. What it reads is bounded by the window that it has granted, and it
 * grants more when we have taken bytes. What it is given to write it keeps, so it is given nothing
 * while earlier bytes wait: a peer that reads nothing makes us read nothing. */
#include "leg.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { WAIT_MS = 10000 };

void leg_init(struct leg *l, ssh_session session, int plain)
{
	*l = (struct leg){.session = session,
		.plain = plain,
		.in = BUF_INIT(LEG_BUFFER),
		.out = BUF_INIT(2 * LEG_BUFFER)};
}

void leg_done(struct leg *l)
{
	if (l->event)
		ssh_event_free(l->event);
	if (l->session) {
		ssh_disconnect(l->session);
		ssh_free(l->session);
	}
	buf_done(&l->in);
	buf_done(&l->out);
}

static int leg_on_plain(socket_t fd, int events, void *data)
{
	struct leg *l = data;

	l->plain_gone = l->plain_gone || (events & (POLLHUP | POLLERR));
	return SSH_OK;
}

void leg_wait(struct leg *l, bool read, bool write)
{
	/* The end of both directions is reported in any case. */
	short want = (short)((read ? POLLIN : 0) | (write ? POLLOUT : 0) |
			     (l->watches_end ? POLLPRI : 0));

	if (!l->event) {
		l->event = ssh_event_new();
		if (!l->event || ssh_event_add_session(l->event, l->session) != SSH_OK) {
			l->broken = true;
			return;
		}
	}
	if (want != l->watched) {
		if (l->watched)
			(void)ssh_event_remove_fd(l->event, l->plain);
		l->watched = want;
		if (want && ssh_event_add_fd(l->event, l->plain, want, leg_on_plain, l) != SSH_OK)
			l->broken = true;
	}
	if (!l->broken && ssh_event_dopoll(l->event, WAIT_MS) == SSH_ERROR)
		l->broken = true;
}

void leg_read_plain(struct leg *l)
{
	size_t room = MIN(buf_room(&l->in), (size_t)SSHLEG_MAX_PIECE);
	ssize_t n;
	char *at;

	if (room == 0 || l->plain_ended)
		return;
	if (buf_reserve(&l->in, room, &at) < 0) {
		l->broken = true;
		return;
	}
	n = recv(l->plain, at, room, MSG_DONTWAIT);
	if (n > 0)
		buf_commit(&l->in, (size_t)n);
	else if (n == 0)
		l->plain_ended = true;
	else if (errno != EAGAIN && errno != EINTR)
		l->broken = true;
}

void leg_write_plain(struct leg *l)
{
	while (buf_len(&l->out) > 0) {
		ssize_t n = send(
			l->plain, buf_data(&l->out), buf_len(&l->out), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR) {
			l->broken = l->broken || errno != EAGAIN;
			return;
		}
		if (n > 0)
			buf_consume(&l->out, (size_t)n);
	}
}

bool leg_may_write(const struct leg *l)
{
	return leg_is_open(l) && ssh_channel_window_size(l->channel) > 0 &&
	       !(ssh_get_status(l->session) & SSH_WRITE_PENDING);
}

bool leg_is_open(const struct leg *l)
{
	return !l->broken && ssh_is_connected(l->session) && ssh_channel_is_open(l->channel);
}

void leg_drain(struct leg *l)
{
	while (!l->broken && ssh_is_connected(l->session) &&
		(ssh_get_status(l->session) & SSH_WRITE_PENDING))
		leg_wait(l, false, false);
}
