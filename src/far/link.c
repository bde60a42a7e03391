/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: frames that count lie in one buffer, `kept`, from the moment they are made
 * until they are acknowledged; `written` is a position in it. A cut carrier only moves that
 * position back to what the other end says it has received, which is always the end of a frame. The
 * short frames of the carrier are put in between frames.
 *
 * The window over all channels follows what the path can hold: twice the rate at which
 * acknowledgements come, times the shortest round trip that was seen, and a quarter of a MiB. */
#include "far/link.h"
#include "ipc/wire.h"

#include <errno.h>
#include <string.h>

enum {
	BRIEF_MAX = 1024,
	/* Below this round trip, no more than this is on its way for one channel. */
	NEAR_USEC = 2000,
	NEAR_WINDOW = LINK_FLIGHT,
};

/* --- writing --- */

static void put_header(char *at, uint32_t n, enum link_frame type)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (char)(n >> (8 * i));
	at[4] = (char)type;
	memset(at + 5, 0, 3);
}

static uint32_t get_u32(const char *at)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < 4; i++)
		v |= (uint32_t)(uint8_t)at[i] << (8 * i);
	return v;
}

/* Append a frame: numbers of the given sizes, then the rest. */
static int put_frame(struct buf *b, enum link_frame type, const uint64_t *numbers,
	const uint8_t *sizes, unsigned numbers_n, struct str rest)
{
	size_t n = rest.n;
	struct wire_out w;
	char *at;
	int r;

	for (unsigned i = 0; i < numbers_n; i++)
		n += sizes[i];
	r = buf_reserve(b, LINK_HEADER + n, &at);
	if (r < 0)
		return r;
	put_header(at, (uint32_t)n, type);
	buf_commit(b, LINK_HEADER);
	w = wire_out(b);
	for (unsigned i = 0; i < numbers_n; i++)
		wire_put_int(&w, numbers[i], sizes[i]);
	return w.error ? w.error : buf_add_str(b, rest);
}

static int put_channel(
	struct link *l, enum link_frame type, const struct link_channel *c, struct str rest)
{
	return put_frame(&l->kept, type, &(uint64_t){c->number}, &(uint8_t){4}, 1, rest);
}

static int put_hello(struct link *l)
{
	const uint64_t version = LINK_VERSION;
	char rest[LINK_SESSION + 8];

	memcpy(rest, l->session, LINK_SESSION);
	for (unsigned i = 0; i < 8; i++)
		rest[LINK_SESSION + i] = (char)(l->received >> (8 * i));
	return put_frame(
		&l->brief, LINK_HELLO, &version, &(uint8_t){4}, 1, str_make(rest, sizeof(rest)));
}

/* Make what is owed to the other end. These frames fit, as at most one of each waits. */
static void put_owed(struct link *l)
{
	int r = 0;

	if (l->owes_ack)
		r = put_frame(&l->brief, LINK_ACK, &l->received, &(uint8_t){8}, 1, STR_NULL);
	if (r == 0 && l->owes_ping)
		r = put_frame(&l->brief, LINK_PING, NULL, NULL, 0, STR_NULL);
	if (r == 0 && l->owes_pong)
		r = put_frame(&l->brief, LINK_PONG, NULL, NULL, 0, STR_NULL);
	if (r == 0)
		l->owes_ack = l->owes_ping = l->owes_pong = false;
}

static uint64_t queued(const struct link *l)
{
	return l->acked + buf_len(&l->kept);
}

struct str link_pending(struct link *l)
{
	bool within = l->written < l->boundary;
	const char *from;

	if (!within && l->greeted && buf_len(&l->brief) == 0)
		put_owed(l);
	if (!within && buf_len(&l->brief) > 0)
		return buf_str(&l->brief);
	if (!l->greeted || l->written == queued(l))
		return STR_NULL;
	from = buf_data(&l->kept) + (l->written - l->acked);
	if (!within)
		l->boundary = l->written + LINK_HEADER + get_u32(from);
	/* More than one frame at once, unless something short waits to get in between. */
	if (!within && !l->owes_ack && !l->owes_ping && !l->owes_pong)
		while (l->boundary < queued(l) && l->boundary - l->written < LINK_MAX_DATA)
			l->boundary += LINK_HEADER +
				       get_u32(buf_data(&l->kept) + (l->boundary - l->acked));
	return str_make(from, (size_t)(l->boundary - l->written));
}

void link_written(struct link *l, size_t n, uint64_t now)
{
	if (l->written >= l->boundary && buf_len(&l->brief) > 0) {
		buf_consume(&l->brief, n);
		return;
	}
	l->written += n;
	l->sent = MAX(l->sent, l->written);
	if (l->sample_at == 0) {
		l->sample_at = now;
		l->sample_from = l->acked;
		l->sample_mark = l->written;
	}
}

void link_ping(struct link *l)
{
	l->owes_ping = true;
}

/* --- windows --- */

static uint64_t flight_room(const struct link *l)
{
	uint64_t used = buf_len(&l->kept);

	return used < l->flight ? l->flight - used : 0;
}

static void tell_waiting(struct link *l)
{
	struct link_channel *c, *tmp;

	HASH_ITER (hh, l->channels, c, tmp)
		if (c->waits && c->sends && c->credit > 0 && flight_room(l) > 0) {
			c->waits = false;
			l->ops->more(l, c);
		}
}

/* Use what was measured: how long it took until a written byte was acknowledged, and how much was
 * acknowledged meanwhile. */
static void learn(struct link *l, uint64_t now)
{
	uint64_t rtt, rate, target;

	if (l->sample_at == 0 || l->acked < l->sample_mark)
		return;
	rtt = now > l->sample_at ? now - l->sample_at : 1;
	if (l->rtt_min == 0 || rtt < l->rtt_min)
		l->rtt_min = rtt;
	rate = (l->acked - l->sample_from) * 1000 / rtt; /* bytes in a millisecond */
	target = LINK_FLIGHT + 2 * rate * l->rtt_min / 1000;
	if (target > l->flight)
		l->flight = MIN(target, (uint64_t)LINK_FLIGHT_MAX);
	l->sample_at = 0;
}

/* Whether a frame that was written ends there. Frames are received whole, so whatever is
 * acknowledged does; and only there is a header, which says how much of `kept` is written next. */
static bool is_frame_end(const struct link *l, uint64_t position)
{
	uint64_t at = l->acked;

	if (position > l->sent)
		return false;
	while (at < position)
		at += LINK_HEADER + get_u32(buf_data(&l->kept) + (at - l->acked));
	return at == position;
}

static int acknowledge(struct link *l, uint64_t received, uint64_t now)
{
	if (received > l->written || !is_frame_end(l, received))
		return -EPROTO;
	buf_consume(&l->kept, (size_t)(received - l->acked));
	l->acked = received;
	learn(l, now);
	tell_waiting(l);
	return 0;
}

/* A reader that consumes whole windows as fast as they come gets a larger one: as large as the way
 * is long, or, if it is short, so large that not each piece has to be waited for. */
static void enlarge(struct link *l, struct link_channel *c)
{
	uint64_t most = l->rtt_min < NEAR_USEC ? (uint64_t)NEAR_WINDOW : (uint64_t)LINK_WINDOW_MAX;
	uint64_t more = c->window < most ? MIN(c->window, most - c->window) : 0;

	if (!more || c->since_grown < c->window || c->held > 0 || l->grown + more > LINK_GROWN_MAX)
		return;
	c->since_grown = 0;
	c->window += more;
	c->consumed += more;
	l->grown += more;
}

int link_consumed(struct link *l, struct link_channel *c, size_t n)
{
	const uint8_t sizes[] = {4, 4};
	uint64_t numbers[] = {c->number, 0};

	if (!c->receives)
		return 0;
	c->held -= n;
	c->consumed += n;
	c->since_grown += n;
	enlarge(l, c);
	if (c->consumed < c->window / 4)
		return 0;
	numbers[1] = c->consumed;
	c->allowed += c->consumed;
	c->consumed = 0;
	return put_frame(&l->kept, LINK_CREDIT, numbers, sizes, 2, STR_NULL);
}

/* --- channels --- */

uint32_t link_new_number(struct link *l)
{
	uint32_t *last = &l->last[!l->is_near];

	/* Numbers from 2 (near) and 1 (far) on. */
	return *last ? *last + 2 : 2 - (uint32_t)!l->is_near;
}

int link_skip(struct link *l, uint32_t number)
{
	uint32_t *last = &l->last[number % 2];

	if (number == 0 || number <= *last || number > UINT32_MAX - 2)
		return -EPROTO;
	*last = number;
	return 0;
}

int link_open(struct link *l, struct link_channel *c, uint32_t number, bool sends, bool receives)
{
	int r = link_skip(l, number);

	if (r < 0)
		return r;
	if (HASH_COUNT(l->channels) >= LINK_MAX_CHANNELS)
		return -E2BIG;
	*c = (struct link_channel){.number = number,
		.sends = sends,
		.receives = receives,
		.credit = LINK_WINDOW,
		.allowed = LINK_WINDOW,
		.window = LINK_WINDOW};
	HASH_ADD(hh, l->channels, number, sizeof(c->number), c);
	if (!c->hh.tbl) {
		c->number = 0;
		return -ENOMEM;
	}
	return 0;
}

void link_close(struct link *l, struct link_channel *c)
{
	if (!link_is_open(c))
		return;
	HASH_DEL(l->channels, c);
	l->grown -= c->window - LINK_WINDOW;
	*c = (struct link_channel){0};
}

size_t link_may_send(struct link *l, struct link_channel *c)
{
	uint64_t n = MIN(c->credit, flight_room(l));

	c->waits = n == 0 && c->sends;
	return c->sends ? (size_t)MIN(n, (uint64_t)LINK_MAX_DATA) : 0;
}

int link_data(struct link *l, struct link_channel *c, struct str bytes)
{
	int r = put_channel(l, LINK_DATA, c, bytes);

	if (r == 0)
		c->credit -= bytes.n;
	return r;
}

int link_end(struct link *l, struct link_channel *c)
{
	if (!c->sends)
		return 0;
	c->sends = false;
	return put_channel(l, LINK_END, c, STR_NULL);
}

int link_stop(struct link *l, struct link_channel *c)
{
	if (!c->receives)
		return 0;
	c->receives = false;
	return put_channel(l, LINK_STOP, c, STR_NULL);
}

int link_send(struct link *l, uint16_t type, struct str payload)
{
	if (payload.n + 2 > LINK_MAX_PAYLOAD)
		return -E2BIG;
	return put_frame(&l->kept, LINK_MESSAGE, &(uint64_t){type}, &(uint8_t){2}, 1, payload);
}

/* --- reading --- */

static int on_hello(struct link *l, struct wire_in *r, uint64_t now)
{
	uint32_t version = wire_get_u32(r);
	const char *session = r->rest.p;
	uint64_t received;

	if (l->greeted || version != LINK_VERSION || r->rest.n != LINK_SESSION + 8)
		return -EPROTO;
	r->rest = str_from_index(r->rest, LINK_SESSION);
	received = wire_get_int(r, 8);
	if (!is_frame_end(l, received))
		return -EPROTO;
	/* The far end learns the session from the first carrier. */
	if (!l->known)
		memcpy(l->session, session, LINK_SESSION);
	l->known = true;
	if (memcmp(l->session, session, LINK_SESSION) != 0)
		return -EPROTO;
	if (!l->is_near && put_hello(l) < 0)
		return -ENOMEM;
	l->greeted = true;
	l->written = l->boundary = received;
	l->sample_at = 0;
	if (l->ops->greeted)
		l->ops->greeted(l);
	return acknowledge(l, received, now);
}

/* Return the channel of a frame. NULL: it is closed, or *ret_bad: it was never opened. */
static struct link_channel *find_channel(struct link *l, struct wire_in *r, bool *ret_bad)
{
	uint32_t number = wire_get_u32(r);
	struct link_channel *c;

	HASH_FIND(hh, l->channels, &number, sizeof(number), c);
	*ret_bad = r->bad || number == 0 || (!c && number > l->last[number % 2]);
	return c;
}

static int on_data(struct link *l, struct link_channel *c, struct str bytes)
{
	if (bytes.n == 0 || bytes.n > LINK_MAX_DATA)
		return -EPROTO;
	if (!c || !c->receives)
		return 0;
	if (bytes.n > c->allowed)
		return -EPROTO;
	c->allowed -= bytes.n;
	c->held += bytes.n;
	return l->ops->data(l, c, bytes);
}

static int on_credit(struct link *l, struct link_channel *c, struct wire_in *r)
{
	uint32_t n = wire_get_u32(r);

	if (!wire_ok(r) || n == 0)
		return -EPROTO;
	if (!c || !c->sends)
		return 0;
	c->credit += n;
	if (c->credit > LINK_WINDOW_MAX)
		return -EPROTO;
	if (c->waits && flight_room(l) > 0) {
		c->waits = false;
		l->ops->more(l, c);
	}
	return 0;
}

static int on_channel(struct link *l, enum link_frame type, struct wire_in *r)
{
	bool bad;
	struct link_channel *c = find_channel(l, r, &bad);

	if (bad)
		return -EPROTO;
	if (type == LINK_DATA)
		return on_data(l, c, r->rest);
	if (type == LINK_CREDIT)
		return on_credit(l, c, r);
	if (r->rest.n)
		return -EPROTO;
	if (type == LINK_END && c && c->receives) {
		c->receives = false;
		return l->ops->end(l, c);
	}
	if (type == LINK_STOP && c && c->sends) {
		c->sends = false;
		l->ops->stop(l, c);
	}
	return 0;
}

static int on_counted(struct link *l, enum link_frame type, struct str payload)
{
	struct wire_in r = wire_in(payload);
	uint16_t kind;

	switch ((int)type) {
	case LINK_MESSAGE:
		kind = (uint16_t)wire_get_int(&r, 2);
		return r.bad ? -EPROTO : l->ops->message(l, kind, r.rest);
	case LINK_DATA:
	case LINK_END:
	case LINK_STOP:
	case LINK_CREDIT:
		return on_channel(l, type, &r);
	default:
		return -EPROTO;
	}
}

static int on_brief(struct link *l, enum link_frame type, struct str payload, uint64_t now)
{
	struct wire_in r = wire_in(payload);
	uint64_t received;

	switch ((int)type) {
	case LINK_ACK:
		received = wire_get_int(&r, 8);
		return wire_ok(&r) ? acknowledge(l, received, now) : -EPROTO;
	case LINK_PING:
		l->owes_pong = true;
		return payload.n ? -EPROTO : 0;
	case LINK_PONG:
		return payload.n ? -EPROTO : 0;
	default:
		return -EPROTO;
	}
}

static int on_frame(struct link *l, enum link_frame type, struct str payload, uint64_t now)
{
	struct wire_in r = wire_in(payload);

	if (type == LINK_HELLO)
		return on_hello(l, &r, now);
	if (type == LINK_GONE && l->is_near && !l->greeted)
		return payload.n == 0 ? -ENOENT : -EPROTO;
	if (!l->greeted)
		return -EPROTO;
	if (type < LINK_MESSAGE)
		return on_brief(l, type, payload, now);
	l->received += LINK_HEADER + payload.n;
	l->owes_ack = true;
	return on_counted(l, type, payload);
}

/* Handle the whole frames at the front of bytes, and return what is left. */
static int take_frames(struct link *l, struct str *bytes, uint64_t now)
{
	while (bytes->n >= LINK_HEADER) {
		uint32_t n = get_u32(bytes->p);
		enum link_frame type = (uint8_t)bytes->p[4];
		struct str payload;
		int r;

		if (n > LINK_MAX_PAYLOAD || bytes->p[5] || bytes->p[6] || bytes->p[7])
			return -EPROTO;
		if (bytes->n - LINK_HEADER < n)
			return 0;
		payload = str_prefix(str_from_index(*bytes, LINK_HEADER), n);
		r = on_frame(l, type, payload, now);
		if (r < 0)
			return r;
		*bytes = str_from_index(*bytes, LINK_HEADER + n);
	}
	return 0;
}

int link_feed(struct link *l, struct str bytes, uint64_t now)
{
	int r;

	l->heard = now;
	if (buf_len(&l->in) == 0) {
		r = take_frames(l, &bytes, now);
		return r < 0 ? r : buf_add_str(&l->in, bytes);
	}
	r = buf_add_str(&l->in, bytes);
	bytes = buf_str(&l->in);
	if (r == 0)
		r = take_frames(l, &bytes, now);
	if (r == 0)
		buf_consume(&l->in, buf_len(&l->in) - bytes.n);
	return r;
}

/* --- life --- */

void link_init(struct link *l, const struct link_ops *ops, const uint8_t *session)
{
	*l = (struct link){.ops = ops,
		.is_near = session != NULL,
		.known = session != NULL,
		.in = BUF_INIT(LINK_HEADER + LINK_MAX_PAYLOAD + 256 * 1024),
		.kept = BUF_INIT(LINK_MAX_KEPT),
		.brief = BUF_INIT(BRIEF_MAX),
		.flight = LINK_FLIGHT};
	if (session)
		memcpy(l->session, session, LINK_SESSION);
}

void link_done(struct link *l)
{
	HASH_CLEAR(hh, l->channels);
	buf_done(&l->in);
	buf_done(&l->kept);
	buf_done(&l->brief);
}

int link_restart(struct link *l, uint64_t now)
{
	buf_clear(&l->in);
	buf_clear(&l->brief);
	l->greeted = l->owes_ack = l->owes_ping = l->owes_pong = false;
	l->written = l->boundary = l->acked;
	l->sample_at = 0;
	l->heard = now;
	/* The far end answers, and only to who knows the session. */
	return l->is_near ? put_hello(l) : 0;
}
