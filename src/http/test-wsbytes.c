/* SPDX-License-Identifier: Apache-2.0 */
#include "http/wsbytes.h"
#include <errno.h>
#include <tap.h>

enum { WIRE_MAX = 1024 * 1024 };

struct end {
	struct wsbytes ws;
	struct buf out, got;
};

static struct end end_of(enum ws_side other)
{
	return (struct end){wsbytes(other), BUF_INIT(WIRE_MAX), BUF_INIT(WIRE_MAX)};
}

static void end_done(struct end *e)
{
	buf_done(&e->out);
	buf_done(&e->got);
}

/* Take bytes from memory of their own, so that a sanitizer sees what is read beyond them. */
static int feed(struct end *e, struct str wire, size_t step)
{
	int r = 0;

	while (wire.n && r == 0) {
		struct str piece = str_prefix(wire, step);
		char *copy = malloc(piece.n);

		must(copy != NULL);
		memcpy(copy, piece.p, piece.n);
		r = wsbytes_take(&e->ws, str_make(copy, piece.n), &e->got, &e->out);
		free(copy);
		wire = str_from_index(wire, piece.n);
	}
	return r;
}

static void carry(enum ws_side side, size_t n, size_t step)
{
	struct end from = end_of(side == WS_FROM_CLIENT ? WS_FROM_SERVER : WS_FROM_CLIENT),
		   to = end_of(side);
	char *bytes = malloc(n + 1);

	must(bytes != NULL);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 31 + i / 256);
	must(wsbytes_put(&from.ws, &from.out, str_make(bytes, n)) == 0);
	check_int(feed(&to, buf_str(&from.out), step), 0);
	check(str_eq(buf_str(&to.got), str_make(bytes, n)));
	check_int(buf_len(&to.out), 0);
	free(bytes);
	end_done(&from);
	end_done(&to);
}

static void bytes_come_as_they_were_sent(void)
{
	static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, 65537, 200001};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		carry(WS_FROM_CLIENT, sizes[i], 1);
		carry(WS_FROM_CLIENT, sizes[i], 1000);
		carry(WS_FROM_SERVER, sizes[i], 7);
		carry(WS_FROM_SERVER, sizes[i], WIRE_MAX);
	}
}

/* The examples of RFC 6455 5.7 and 1.3, as the bytes that they are there. */
static void the_standards_examples(void)
{
	struct end server = end_of(WS_FROM_CLIENT), client = end_of(WS_FROM_SERVER);
	char accept[WS_ACCEPT_LEN + 1], key[WS_KEY_LEN + 1], other[WS_KEY_LEN + 1];

	check_int(feed(&server, STR("\x82\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), 1), 0);
	check_str(buf_str(&server.got), "Hello");
	/* A message in fragments, with a ping between them. */
	check_int(feed(&client, STR("\x02\x03Hel\x89\x05Hello\x80\x02lo"), 1), 0);
	check_str(buf_str(&client.got), "Hello");
	check_int(buf_len(&client.out), 11);
	check(memcmp(buf_data(&client.out), "\x8a\x85", 2) == 0);
	check_int(feed(&server, buf_str(&client.out), 1), 0);
	ws_accept(STR("dGhlIHNhbXBsZSBub25jZQ=="), accept);
	check_z(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	ws_make_key(key);
	ws_make_key(other);
	check(ws_is_key(str_from(key)) && ws_is_key(str_from(other)) && strcmp(key, other) != 0);
	end_done(&server);
	end_done(&client);
}

static void a_client_masks_each_frame_with_other_bytes(void)
{
	struct end client = end_of(WS_FROM_SERVER);
	char first[4];

	must(wsbytes_put(&client.ws, &client.out, STR("abcdefgh")) == 0);
	memcpy(first, buf_data(&client.out) + 2, sizeof(first));
	check(str_find(buf_str(&client.out), STR("abcdefgh")) == buf_len(&client.out));
	buf_clear(&client.out);
	must(wsbytes_put(&client.ws, &client.out, STR("abcdefgh")) == 0);
	check(memcmp(first, buf_data(&client.out) + 2, sizeof(first)) != 0);
	end_done(&client);
}

static void a_close_ends_both_directions(void)
{
	struct end server = end_of(WS_FROM_CLIENT);

	check_int(feed(&server, STR("\x88\x82\0\0\0\0\x03\xe8\x82\x81\0\0\0\0x"), 100), 1);
	check_str(buf_str(&server.out), "\x88\x02\x03\xe8");
	check_int(buf_len(&server.got), 0);
	must(wsbytes_put(&server.ws, &server.out, STR("late")) == 0);
	must(wsbytes_put_close(&server.ws, &server.out, 1000) == 0);
	check_int(buf_len(&server.out), 4);
	end_done(&server);
}

static void what_is_no_such_stream_is_refused(void)
{
	static const struct {
		struct str wire;
		uint16_t code;
	} rows[] = {{STR("\x81\x80\0\0\0\0"), 1003}, {STR("\x82\x01x"), 1002},
		{STR("\xc2\x80\0\0\0\0"), 1002}, {STR("\x80\x80\0\0\0\0"), 1002},
		{STR("\x82\xff\0\0\0\0\x7f\xff\xff\xff\0\0\0\0"), 1009},
		{STR("\x89\xfe\0\x7e\0\0\0\0"), 1002}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct end server = end_of(WS_FROM_CLIENT);
		const char want[] = {'\x88', 2, (char)(rows[i].code >> 8), (char)rows[i].code};

		check_int(feed(&server, rows[i].wire, 1), -EPROTO);
		check(str_eq(buf_str(&server.out), str_make(want, sizeof(want))));
		end_done(&server);
	}
}

static void buffers_bound_what_comes(void)
{
	struct end server = end_of(WS_FROM_CLIENT);
	int r = 0;

	server.got = BUF_INIT(4);
	check_int(feed(&server, STR("\x82\x85\0\0\0\0Hello"), 100), -E2BIG);
	server.out = BUF_INIT(100);
	server.ws = wsbytes(WS_FROM_CLIENT);
	for (int i = 0; i < 51 && r == 0; i++)
		r = feed(&server, STR("\x89\x80\0\0\0\0"), 100);
	check_int(r, -E2BIG);
	end_done(&server);
}

int main(void)
{
	run_test(bytes_come_as_they_were_sent);
	run_test(the_standards_examples);
	run_test(a_client_masks_each_frame_with_other_bytes);
	run_test(a_close_ends_both_directions);
	run_test(what_is_no_such_stream_is_refused);
	run_test(buffers_bound_what_comes);
	return tap_done();
}
