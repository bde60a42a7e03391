/* SPDX-License-Identifier: Apache-2.0 */
#include "far/probe.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIPS = 3, LENGTH = 4 };

static int probe_malformed(struct cloche_err *err)
{
	err_set(err, E_PROTOCOL, "the other machine answers with what is no report");
	err_hint(err, "whoever controls that machine or the way to it may have changed the "
		      "answer: make no room there before you know");
	return -E_PROTOCOL;
}

static int probe_ended(struct cloche_err *err)
{
	err_set(err, E_NETWORK, "the connection ended before cloche-far said what it found");
	err_hint(err, "what it said for people is on standard error; programs may have to be "
		      "allowed in the home directory there");
	return -E_NETWORK;
}

static int probe_say(const struct greet *g, char c, struct cloche_err *err)
{
	int e = greet_wait(g, g->to, POLLOUT, err);

	if (e < 0)
		return e;
	return send(g->to, &c, 1, MSG_NOSIGNAL) == 1 ? 0 : probe_ended(err);
}

/* Read n bytes. */
static int probe_read(const struct greet *g, char *at, size_t n, struct cloche_err *err)
{
	while (n > 0) {
		int e = greet_wait(g, g->from, POLLIN, err);
		ssize_t got = e < 0 ? 0 : read(g->from, at, n);

		if (e < 0)
			return e;
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return probe_ended(err);
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static int probe_measure(const struct greet *g, uint64_t *ret, struct cloche_err *err)
{
	*ret = UINT64_MAX;
	for (int i = 0; i < TRIPS; i++) {
		uint64_t began = clock_mono_usec();
		char c = 0;
		int e = probe_say(g, PROBE_ECHO, err);

		if (e == 0)
			e = probe_read(g, &c, 1, err);
		if (e < 0)
			return e;
		if (c != PROBE_ECHO)
			return probe_malformed(err);
		*ret = MIN(*ret, clock_mono_usec() - began);
	}
	return 0;
}

static int probe_read_payload(const struct greet *g, struct buf *ret, struct cloche_err *err)
{
	char length[LENGTH], *at;
	struct wire_in in = wire_in(str_make(length, LENGTH));
	int e = probe_read(g, length, LENGTH, err);
	uint32_t n;

	if (e < 0)
		return e;
	n = wire_get_u32(&in);
	if (n == 0 || n > PROBE_MAX_PAYLOAD)
		return probe_malformed(err);
	if (buf_reserve(ret, n, &at) < 0)
		return err_nomem(err);
	e = probe_read(g, at, n, err);
	if (e == 0)
		buf_commit(ret, n);
	return e;
}

int far_probe_ask(const struct greet *g, struct far_probe *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf payload = BUF_INIT(PROBE_MAX_PAYLOAD);
	struct far_probe p = {.payload = BUF_INIT(PROBE_MAX_PAYLOAD)};
	int e = probe_measure(g, &p.round_trip_usec, err);

	if (e == 0)
		e = probe_say(g, PROBE_ASK, err);
	if (e == 0)
		e = probe_read_payload(g, &payload, err);
	if (e == 0 && !message_get(buf_str(&payload), far_probed_message(), &p.probed))
		e = probe_malformed(err);
	if (e < 0)
		return e;
	p.payload = payload;
	payload = BUF_INIT(PROBE_MAX_PAYLOAD);
	*ret = p;
	return 0;
}

void far_probe_done(struct far_probe *p)
{
	message_done(far_probed_message(), &p->probed);
	buf_done(&p->payload);
}
