/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "http/ws.h"
#include <tap.h>

/* What came out of a reader, as text: "[op length fin]payload" a frame. */
struct outcome {
	char text[4096];
	size_t n;
	enum ws_result last;
	struct ws_reader reader;
};

static void note(struct outcome *o, const char *p, size_t n)
{
	must(o->n + n < sizeof(o->text));
	memcpy(o->text + o->n, p, n);
	o->n += n;
}

static void note_frame(struct outcome *o, const struct ws_frame *f)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "[%d %llu%s]", (int)f->opcode,
		(unsigned long long)f->length, f->fin ? " fin" : "");

	note(o, text, (size_t)n);
}

static void note_payload(struct outcome *o, const struct ws_frame *f, struct str piece, uint64_t at)
{
	char *copy = malloc(piece.n + 1);

	must(copy != NULL);
	memcpy(copy, piece.p, piece.n);
	if (f->masked)
		ws_mask(copy, piece.n, f->mask, at);
	note(o, copy, piece.n);
	free(copy);
}

static void read_all(struct outcome *o, enum ws_side side, struct str all, size_t step)
{
	uint64_t at = 0;

	*o = (struct outcome){.reader = ws_reader(side)};
	while (all.n > 0 && o->last != WS_ERROR && o->last != WS_CLOSED) {
		struct str in = str_prefix(all, step), piece;

		all = str_from_index(all, in.n);
		do {
			o->last = ws_read(&o->reader, &in, &piece);
			if (o->last == WS_HEAD) {
				note_frame(o, &o->reader.frame);
				at = 0;
			} else if (o->last == WS_DATA) {
				note_payload(o, &o->reader.frame, piece, at);
				at += piece.n;
			}
		} while (o->last == WS_HEAD || o->last == WS_DATA);
		check(o->last != WS_MORE || in.n == 0);
	}
}

/* However it is cut. */
static void expect(enum ws_side side, struct str all, enum ws_result last, const char *want)
{
	for (size_t step = 1; step <= all.n; step++) {
		struct outcome o;

		read_all(&o, side, all, step);
		check_int(o.last, last);
		check_str(str_make(o.text, o.n), want);
	}
}

static void expect_error(enum ws_side side, struct str all, enum ws_error error)
{
	for (size_t step = 1; step <= all.n; step++) {
		struct outcome o;
		struct str more = STR("\x81\x00"), piece;

		read_all(&o, side, all, step);
		check_int(o.last, WS_ERROR);
		check_int(o.reader.error, error);
		check_int(ws_read(&o.reader, &more, &piece), WS_ERROR);
	}
	check(strcmp(ws_error_text(error), "no error") != 0);
}

#define BYTES(literal) str_make(literal, sizeof(literal) - 1)

/* RFC 6455 5.7. */
static void the_examples_of_the_standard(void)
{
	expect(WS_FROM_SERVER, BYTES("\x81\x05Hello"), WS_MORE, "[1 5 fin]Hello");
	expect(WS_FROM_CLIENT, BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), WS_MORE,
		"[1 5 fin]Hello");
	expect(WS_FROM_SERVER, BYTES("\x01\x03Hel\x80\x02lo"), WS_MORE, "[1 3]Hel[0 2 fin]lo");
	expect(WS_FROM_SERVER, BYTES("\x89\x05Hello"), WS_MORE, "[9 5 fin]Hello");
	expect(WS_FROM_CLIENT, BYTES("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), WS_MORE,
		"[10 5 fin]Hello");
}

static void control_frames_stand_within_a_message(void)
{
	expect(WS_FROM_SERVER,
		BYTES("\x02\x02"
		      "ab"
		      "\x89\x01"
		      "p"
		      "\x00\x00"
		      "\x8a\x00"
		      "\x80\x01"
		      "c"),
		WS_MORE, "[2 2]ab[9 1 fin]p[0 0][10 0 fin][0 1 fin]c");
}

static void long_lengths(void)
{
	static const uint64_t lengths[] = {0, 125, 126, 65535, 65536, WS_FRAME_MAX};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct ws_frame f = {.fin = true,
			.masked = i % 2,
			.opcode = WS_BINARY,
			.mask = {1, 2, 3, 4},
			.length = lengths[i]};
		struct ws_reader r = ws_reader(i % 2 ? WS_FROM_CLIENT : WS_FROM_SERVER);
		char head[WS_HEAD_MAX];
		struct str in = str_make(head, ws_write_head(head, &f)), piece;

		check_int(ws_read(&r, &in, &piece), WS_HEAD);
		check_int(in.n, 0);
		check_int(r.frame.length, lengths[i]);
		check_int(r.left, lengths[i]);
		check(ws_reader_is_between(&r) == (lengths[i] == 0));
	}
	expect_error(WS_FROM_SERVER, BYTES("\x82\x7e\x00\x7d"), WS_E_LENGTH);
	expect_error(WS_FROM_SERVER, BYTES("\x82\x7f\0\0\0\0\0\0\xff\xff"), WS_E_LENGTH);
	expect_error(WS_FROM_SERVER, BYTES("\x82\x7f\x80\0\0\0\0\0\0\0"), WS_E_LENGTH);
	expect_error(WS_FROM_SERVER, BYTES("\x82\x7f\0\0\0\0\x01\0\0\x01"), WS_E_FRAME_SIZE);
	check_int(ws_error_code(WS_E_FRAME_SIZE), 1009);
	check_int(ws_error_code(WS_E_LENGTH), 1002);
}

static void a_message_has_a_limit(void)
{
	struct ws_reader r = ws_reader(WS_FROM_SERVER);
	struct ws_frame f = {.opcode = WS_BINARY, .length = WS_FRAME_MAX};
	static char zeros[64 * 1024];
	char head[WS_HEAD_MAX];
	struct str in, piece;

	for (int i = 0; i < WS_MESSAGE_MAX / WS_FRAME_MAX; i++) {
		in = str_make(head, ws_write_head(head, &f));
		must(ws_read(&r, &in, &piece) == WS_HEAD);
		while (r.left > 0) {
			in = str_make(zeros, sizeof(zeros));
			must(ws_read(&r, &in, &piece) == WS_DATA && piece.n == sizeof(zeros));
		}
		f.opcode = WS_CONTINUATION;
	}
	in = BYTES("\x80\x01");
	check_int(ws_read(&r, &in, &piece), WS_ERROR);
	check_int(r.error, WS_E_MESSAGE_SIZE);
}

static void what_is_refused(void)
{
	expect_error(WS_FROM_SERVER, BYTES("\xc1\x00"), WS_E_RESERVED);
	expect_error(WS_FROM_SERVER, BYTES("\xa1\x00"), WS_E_RESERVED);
	expect_error(WS_FROM_SERVER, BYTES("\x91\x00"), WS_E_RESERVED);
	for (int opcode = 3; opcode < 16; opcode++) {
		char head[2] = {(char)(0x80 | opcode), 0};

		if (opcode < 8 || opcode > 10)
			expect_error(WS_FROM_SERVER, str_make(head, 2), WS_E_OPCODE);
	}
	expect_error(WS_FROM_CLIENT, BYTES("\x81\x00"), WS_E_UNMASKED);
	expect_error(WS_FROM_SERVER, BYTES("\x81\x80\0\0\0\0"), WS_E_MASKED);
	expect_error(WS_FROM_SERVER, BYTES("\x89\x7e\x00\x7e"), WS_E_CONTROL);
	expect_error(WS_FROM_SERVER, BYTES("\x09\x00"), WS_E_CONTROL);
	expect_error(WS_FROM_SERVER, BYTES("\x80\x00"), WS_E_CONTINUATION);
	expect_error(WS_FROM_SERVER, BYTES("\x00\x00"), WS_E_CONTINUATION);
	expect_error(WS_FROM_SERVER, BYTES("\x01\x00\x81\x00"), WS_E_CONTINUATION);
	expect_error(WS_FROM_SERVER, BYTES("\x01\x00\x80\x00\x80\x00"), WS_E_CONTINUATION);
}

static void close_frames(void)
{
	static const struct {
		unsigned code;
		bool ok;
	} codes[] = {{0, false}, {999, false}, {1000, true}, {1003, true}, {1004, false},
		{1005, false}, {1006, false}, {1007, true}, {1014, true}, {1015, false},
		{1016, false}, {2999, false}, {3000, true}, {4999, true}, {5000, false},
		{65535, false}};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		char frame[4];
		size_t n = ws_write_close(frame, (uint16_t)codes[i].code);
		struct outcome o;

		if (codes[i].code == 0) {
			memcpy(frame, "\x88\x02\0\0", 4);
			n = 4;
		}
		read_all(&o, WS_FROM_SERVER, str_make(frame, n), 1);
		check_int(o.last, codes[i].ok ? WS_CLOSED : WS_ERROR);
		check_int(o.reader.counts.close_code, codes[i].ok ? codes[i].code : 0);
	}
	/* What comes behind it is not read. */
	expect(WS_FROM_SERVER,
		BYTES("\x88\x06\x03\xe8 bye"
		      "\x81\x01x"),
		WS_CLOSED, "[8 6 fin]\x03\xe8 bye");
	expect(WS_FROM_SERVER, BYTES("\x88\x00\xff"), WS_CLOSED, "[8 0 fin]");
	expect_error(WS_FROM_SERVER, BYTES("\x88\x01\x03"), WS_E_CLOSE);
	expect_error(WS_FROM_SERVER, BYTES("\x88\x03\x03\xe8\xff"), WS_E_CLOSE);
	/* Masked. */
	expect(WS_FROM_CLIENT, BYTES("\x88\x82\x01\x02\x03\x04\x02\xea"), WS_CLOSED,
		"[8 2 fin]\x03\xe8");
}

static void what_is_counted(void)
{
	struct outcome o;

	read_all(&o, WS_FROM_SERVER,
		BYTES("\x01\x02"
		      "ab"
		      "\x89\x01"
		      "p"
		      "\x80\x01"
		      "c"
		      "\x82\x00"
		      "\x8a\x00"
		      "\x88\x00"),
		3);
	check_int(o.reader.counts.frames, 6);
	check_int(o.reader.counts.messages, 2);
	check_int(o.reader.counts.bytes, 4);
	check_int(o.reader.counts.close_code, 1005);
}

static void a_mask_is_taken_away_from_any_place(void)
{
	const unsigned char mask[4] = {0xa1, 0x00, 0xff, 0x5a};
	char text[64], copy[64];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7);
	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		memcpy(copy, text, sizeof(text));
		ws_mask(copy, cut, mask, 0);
		ws_mask(copy + cut, sizeof(text) - cut, mask, cut);
		for (size_t i = 0; i < sizeof(text); i++)
			check_int((unsigned char)copy[i], (unsigned char)text[i] ^ mask[i % 4]);
	}
}

static void keys(void)
{
	check(ws_is_key(STR("dGhlIHNhbXBsZSBub25jZQ==")));
	check(ws_is_key(STR("AAAAAAAAAAAAAAAAAAAAAA==")));
	check(!ws_is_key(STR("")));
	check(!ws_is_key(STR_NULL));
	check(!ws_is_key(STR("dGhlIHNhbXBsZSBub25jZR=="))); /* bits that belong to nothing */
	check(!ws_is_key(STR("dGhlIHNhbXBsZSBub25jZQ=")));
	check(!ws_is_key(STR("dGhlIHNhbXBsZSBub25jZQ===")));
	check(!ws_is_key(STR("dGhlIHNhbXBsZSBub25jZQAA")));
	check(!ws_is_key(STR("dGhlIHNhbXBsZSBub25jZ===")));
	check(!ws_is_key(STR("dGhlIHNh-XBsZSBub25jZQ==")));
	check(!ws_is_key(str_make("dGhlIHNhbXBsZSBub25jZ\0==", 24)));
}

int main(void)
{
	run_test(the_examples_of_the_standard);
	run_test(control_frames_stand_within_a_message);
	run_test(long_lengths);
	run_test(a_message_has_a_limit);
	run_test(what_is_refused);
	run_test(close_frames);
	run_test(what_is_counted);
	run_test(a_mask_is_taken_away_from_any_place);
	run_test(keys);
	return tap_done();
}
