/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "far/relay.h"

#include <errno.h>
#include <fcntl.h>

/* The gateway has a limit of its own for connections. */
enum { STREAMS_MAX = 900 };

static void relay_stream_on_done(struct pump *p)
{
	struct relay_stream *s = (struct relay_stream *)p;

	s->relay->streams_n--;
	free(s);
}

/* Connect a channel with one end of a socket (taken). */
static int relay_stream_new(struct relay *r, uint32_t number, int fd)
{
	_cleanup_fd_ int in = fd, out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	_cleanup_(freep) struct relay_stream *s = calloc(1, sizeof(*s));
	int e;

	if (!s || out < 0)
		return -ENOMEM;
	s->relay = r;
	e = pump_open(
		&s->pump, &r->carrier, number, TAKE_FD(in), TAKE_FD(out), relay_stream_on_done);
	if (e < 0)
		return e;
	r->streams_n++;
	TAKE_PTR(s);
	return 0;
}

int relay_stream_files(struct relay *r, uint32_t mount, int fd)
{
	struct far_files m = {.mount = mount, .channel = link_new_number(&r->carrier.link)};
	int e = relay_stream_new(r, m.channel, fd);

	return e < 0 ? e : far_send(&r->carrier.link, FAR_FILES, far_files_message(), &m);
}

/* Tell the far end that nobody takes this channel: it is opened and ended. */
static int relay_stream_refuse(struct relay *r, uint32_t number)
{
	struct link *l = &r->carrier.link;
	struct link_channel c;
	int e = link_open(l, &c, number, true, true);

	if (e < 0)
		return e;
	e = link_stop(l, &c);
	if (e == 0)
		e = link_end(l, &c);
	link_close(l, &c);
	return e;
}

int relay_stream_connection(struct relay *r, struct str payload)
{
	struct far_connection m;
	_cleanup_fd_ int ours = -1, theirs = -1;
	int pair[2], e;

	if (!message_get(payload, far_connection_message(), &m) || m.channel % 2 == 0)
		return -EPROTO;
	if (!r->capture.open || r->streams_n >= STREAMS_MAX || fd_socketpair(SOCK_STREAM, pair) < 0)
		return relay_stream_refuse(r, m.channel);
	ours = pair[0];
	theirs = pair[1];
	/* The gateway is behind: the connection is refused, as by a full queue. */
	e = chan_send(&r->capture.chan, CAPTURE_CONNECTION, m.capture, &theirs, 1);
	if (e < 0)
		return relay_stream_refuse(r, m.channel);
	relay_sent(r, &r->capture, 0);
	return relay_stream_new(r, m.channel, TAKE_FD(ours));
}
