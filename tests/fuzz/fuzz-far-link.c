/* fuzz-deps: base ipc far */
/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a hostile far end, for a near link that has sent messages and has channels open. The
 * first byte says in which pieces they come, the second after how many pieces a new carrier comes.
 * What the link would write is read, each byte of it. */
#include "far/link.h"

#include <errno.h>
#include <stdlib.h>

enum { M_CONNECTION = 1, CONNECTIONS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t session[LINK_SESSION] = "sixteen bytes...";
static struct link_channel ours, theirs[CONNECTIONS];
static unsigned theirs_n;
static volatile unsigned char sum;

static int on_message(struct link *l, uint16_t type, struct str payload)
{
	struct link_channel *c = &theirs[theirs_n % CONNECTIONS];

	if (type != M_CONNECTION || payload.n == 0)
		return 0;
	/* It names a channel; an older one is closed. */
	link_close(l, c);
	theirs_n++;
	return link_open(l, c, (uint8_t)payload.p[0] | 1U, true, true);
}

static int on_data(struct link *l, struct link_channel *c, struct str bytes)
{
	if (c->held > c->window || bytes.n > c->held)
		abort();
	for (size_t i = 0; i < bytes.n; i++)
		sum = (unsigned char)(sum + (unsigned char)bytes.p[i]);
	/* The reader of every other channel stalls. */
	return c->number % 4 < 2 ? link_consumed(l, c, bytes.n) : 0;
}

static int on_end(struct link *l, struct link_channel *c)
{
	return link_end(l, c);
}

static void on_stop(struct link *l, struct link_channel *c)
{
	link_close(l, c);
}

static void on_more(struct link *l, struct link_channel *c)
{
	if (link_may_send(l, c) == 0 || link_data(l, c, STR("more")) < 0)
		abort();
}

static const struct link_ops ops = {
	.message = on_message, .data = on_data, .end = on_end, .stop = on_stop, .more = on_more};

/* Write all, or half of one piece. */
static void drain(struct link *l, uint64_t now, bool half)
{
	struct str next;

	while ((next = link_pending(l)).n > 0) {
		size_t n = half ? (next.n + 1) / 2 : next.n;

		for (size_t i = 0; i < next.n; i++)
			sum = (unsigned char)(sum + (unsigned char)next.p[i]);
		link_written(l, n, now);
		if (half)
			return;
	}
}

static void check_bounds(const struct link *l)
{
	if (HASH_COUNT(l->channels) > CONNECTIONS + 1 || l->acked > l->written ||
		l->flight > LINK_FLIGHT_MAX || l->grown > LINK_GROWN_MAX ||
		buf_len(&l->kept) > LINK_MAX_KEPT)
		abort();
}

static int start(struct link *l)
{
	static char bytes[LINK_MAX_DATA];
	int r;

	memset(theirs, 0, sizeof(theirs));
	theirs_n = 0;
	link_init(l, &ops, session);
	r = link_restart(l, 1);
	if (r == 0)
		r = link_send(l, 7, STR("\377\377\377\177 is not the length of a frame"));
	if (r == 0)
		r = link_open(l, &ours, link_new_number(l), true, true);
	while (r == 0 && link_may_send(l, &ours) > 0)
		r = link_data(l, &ours, str_make(bytes, link_may_send(l, &ours)));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_make(data + 2, size < 2 ? 0 : size - 2);
	struct link l;
	int r = start(&l);

	for (unsigned i = 1; r == 0 && rest.n > 0; i++) {
		size_t n = MIN(rest.n, data[0] ? (size_t)data[0] : rest.n);

		r = link_feed(&l, str_prefix(rest, n), i * 1000);
		rest = str_from_index(rest, n);
		check_bounds(&l);
		if (r == 0)
			drain(&l, i * 1000, i % 3 == 1);
		if (r == 0 && i == data[1])
			r = link_restart(&l, i * 1000);
	}
	if (r != 0 && r != -EPROTO && r != -ENOMEM)
		abort();
	link_done(&l);
	return 0;
}
