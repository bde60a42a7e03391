/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test-h2-frames.h"

struct side s;
struct buf in; /* to be fed */
bool alive;    /* h2_feed() has not failed */

struct answers seen;

void u8(struct buf *b, unsigned v)
{
	must(buf_add_char(b, (char)v) == 0);
}

static void u32(struct buf *b, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		u8(b, v >> shift & 255);
}

void frame(unsigned type, unsigned flags, uint32_t id, struct str payload)
{
	u8(&in, (unsigned)payload.n >> 16);
	u8(&in, payload.n >> 8 & 255);
	u8(&in, payload.n & 255);
	u8(&in, type);
	u8(&in, flags);
	u32(&in, id);
	must(buf_add_str(&in, payload) == 0);
}

void frame_u32(unsigned type, uint32_t id, uint32_t v)
{
	char p[4] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};

	frame(type, 0, id, str_make(p, 4));
}

void text(struct buf *b, struct str s_)
{
	size_t n = s_.n;

	if (n < 127) {
		u8(b, (unsigned)n);
	} else {
		u8(b, 127);
		for (n -= 127; n >= 128; n /= 128)
			u8(b, (n & 127) | 128);
		u8(b, (unsigned)n);
	}
	must(buf_add_str(b, s_) == 0);
}

void pairs(struct buf *b, const char *const *p)
{
	for (; *p; p += 2) {
		u8(b, 0);
		text(b, str_from(p[0]));
		text(b, str_from(p[1]));
	}
}

uint32_t next_id;

void request_with(unsigned flags, const char *const *p)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1024 * 1024);

	next_id += 2;
	pairs(&b, p);
	frame(HEADERS, END_HEADERS | flags, next_id, buf_str(&b));
}

static uint32_t get_u32(const char *p)
{
	const uint8_t *u = (const uint8_t *)p;

	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

void see(struct buf *out)
{
	while (buf_len(out) >= 9) {
		const char *p = buf_data(out);
		size_t n = get_u32(p) >> 8;
		unsigned type = (uint8_t)p[3];

		must(buf_len(out) >= 9 + n);
		if (type == RST_STREAM) {
			seen.resets++;
			seen.reset = (int32_t)get_u32(p + 9);
			seen.reset_id = get_u32(p + 5);
		} else if (type == GOAWAY) {
			seen.goaway = (int32_t)get_u32(p + 13);
		} else if (type == SETTINGS) {
			seen.settings_acks += (uint8_t)p[4] & ACK;
		} else if (type == PING) {
			seen.acks++;
		}
		buf_consume(out, 9 + n);
	}
}

void play_cut(size_t n)
{
	while (buf_len(&in) > 0 && alive) {
		size_t take = MIN(n, buf_len(&in));
		char *piece = malloc(take);

		must(piece);
		memcpy(piece, buf_data(&in), take);
		alive = h2_feed(s.h, str_make(piece, take)) == 0;
		free(piece);
		buf_consume(&in, take);
		do {
			check_int(h2_output(s.h, &s.out, OUT_ENOUGH), 0);
			see(&s.out);
		} while (h2_wants_output(s.h));
		if (h2_is_done(s.h))
			alive = false;
	}
	buf_clear(&in);
}

void play(void)
{
	play_cut(1000);
}

void begin_with(struct str preface)
{
	must(side_try(&s, H2_SERVER, 128 * 1024, 1024 * 1024) == 0);
	in = BUF_INIT(64 * 1024 * 1024);
	alive = true;
	next_id = (uint32_t)-1;
	memset(&seen, 0, sizeof(seen));
	seen.reset = seen.goaway = -1;
	must(buf_add_str(&in, preface) == 0);
}

void begin(void)
{
	begin_with(STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	frame(SETTINGS, 0, 0, STR(""));
	play();
	check(alive);
}

void done(void)
{
	buf_done(&in);
	side_done(&s);
}

void refused(const char *why, const char *const *p)
{
	begin();
	request_with(END_STREAM, p);
	play_cut(1);
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check_int(s.legs_n, 0);
	check(s.why[0]);
	if (why)
		check_z(s.why, why);
	if (seen.reset < 0 || s.legs_n > 0)
		tap_fail("%s %s", p[0], p[1]);
	/* The connection is as good as before. */
	request(END_STREAM, GOOD);
	play();
	check_int(s.legs_n, 1);
	check_z(side_log(&s), "[3 GET https://a.test:0/ body0](3 end 0)");
	done();
}
