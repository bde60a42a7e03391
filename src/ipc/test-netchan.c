/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/rand.h"
#include "ipc/netchan.h"
#include "seeded.h"
#include "tap.h"

#include <sys/socket.h>

static struct chan a, b;
static struct chan_frame f;

static void open_pair(void)
{
	int fds[2];

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	must(chan_init(&a, fds[0], NET_MAX_PAYLOAD, 4 << 20) == 0);
	must(chan_init(&b, fds[1], NET_MAX_PAYLOAD, 4 << 20) == 0);
}

static void receive(uint16_t type)
{
	must(chan_flush(&a) == 0);
	must(chan_recv(&b, &f) == 1);
	check_int(f.type, type);
}

static void send_open(void)
{
	struct net_open m = {.stream = 5,
		.connection = 9,
		.scheme = NET_HTTPS,
		.host = STR("api.example.com"),
		.port = 443,
		.method = STR("POST"),
		.target = STR("/v1/x?y=z"),
		.body = NET_BODY_LENGTH,
		.length = 1ULL << 40,
		.expect_continue = true,
		.kind = NET_KIND_WEBSOCKET,
		.client = {.family = 4,
			.port = 40000,
			.server_port = 443,
			.address = {100, 64, 0, 2}},
		.te_trailers = true};
	struct net_fields_out out = net_begin_open(&a, &m);

	net_add_field(&out, STR("accept"), STR("*/*"));
	net_add_field(&out, STR("x-empty"), STR(""));
	check_int(net_end_fields(&out), 0);
}

static void test_open_comes_back_with_its_fields(void)
{
	struct net_open m;
	struct wire_in fields;
	struct str name, value;

	send_open();
	receive(NET_OPEN);
	check(net_get_open(f.payload, &m, &fields));
	check_int(m.stream, 5);
	check_int(m.connection, 9);
	check_int(m.scheme, NET_HTTPS);
	check_str(m.host, "api.example.com");
	check_int(m.port, 443);
	check_str(m.method, "POST");
	check_str(m.target, "/v1/x?y=z");
	check_int(m.body, NET_BODY_LENGTH);
	check(m.length == 1ULL << 40 && m.expect_continue && m.te_trailers);
	check_int(m.kind, NET_KIND_WEBSOCKET);
	check(m.client.family == 4 && m.client.port == 40000 && m.client.address[0] == 100);
	check_int(m.fields_n, 2);
	check(net_next_field(&fields, &name, &value));
	check_str(name, "accept");
	check_str(value, "*/*");
	check(net_next_field(&fields, &name, &value));
	check_str(value, "");
	check(wire_ok(&fields));
}

static void test_responses_trailers_and_small_frames(void)
{
	struct net_response m = {.stream = 7, .status = 200, .body = NET_BODY_STREAM}, got;
	struct net_fields_out out = net_begin_response(&a, NET_HEAD, &m);
	struct wire_in fields;
	struct str bytes;
	struct net_trailers trailers;
	struct net_end_of_stream end;
	struct net_credit credit;
	uint32_t stream;

	net_add_field(&out, STR("content-type"), STR("text/plain"));
	check_int(net_end_fields(&out), 0);
	receive(NET_HEAD);
	check(net_get_response(f.payload, &got, &fields) && got.status == 200 && got.fields_n == 1);
	check_int(net_send_data(&a, 7, STR("hello")), 0);
	receive(NET_DATA);
	check(net_get_data(f.payload, &stream, &bytes) && stream == 7);
	check_str(bytes, "hello");
	check_int(net_send_end(&a, 7), 0);
	receive(NET_END);
	check(net_get_trailers(f.payload, &trailers, &fields) && trailers.fields_n == 0 &&
		wire_ok(&fields));
	check_int(net_send_reset(&a, 7, NET_RESET_UPSTREAM), 0);
	receive(NET_RESET);
	check(net_get_end_of_stream(f.payload, &end) && end.why == NET_RESET_UPSTREAM);
	check_int(net_send_credit(&a, 7, 4096), 0);
	receive(NET_CREDIT);
	check(net_get_credit(f.payload, &credit) && credit.bytes == 4096);
}

static void test_mint_and_cert(void)
{
	struct net_mint m = {.request = 3, .host = STR("x.test"), .port = 8443, .h2 = true}, got;
	struct net_cert c = {.request = 3, .ok = true, .mode = NET_MODE_H2, .leaf = STR("der")},
			back;

	check_int(net_send_mint(&a, &m), 0);
	receive(NET_MINT);
	check(net_get_mint(f.payload, &got) && got.request == 3 && got.port == 8443);
	check(got.h2 && !got.http1);
	check_str(got.host, "x.test");
	check_int(net_send_cert(&a, &c), 0);
	receive(NET_CERT);
	check(net_get_cert(f.payload, &back) && back.ok && back.mode == NET_MODE_H2);
	check_str(back.leaf, "der");
}

static void test_data_written_in_place(void)
{
	struct str bytes;
	uint32_t stream;
	size_t mark, before = chan_pending(&a);
	char *at = net_begin_data(&a, 3, 1000, &mark);

	must(at);
	check_int(net_commit_data(&a, mark, 0), 0);
	check_int(chan_pending(&a), before);
	at = net_begin_data(&a, 3, 1000, &mark);
	must(at);
	memcpy(at, "abc", 3);
	check_int(net_commit_data(&a, mark, 3), 0);
	receive(NET_DATA);
	check(net_get_data(f.payload, &stream, &bytes) && stream == 3);
	check_str(bytes, "abc");
}

static void test_too_many_fields_withdraw_the_frame(void)
{
	struct net_fields_out out = net_begin_trailers(&a, 1);

	for (int i = 0; i <= NET_MAX_FIELDS; i++)
		net_add_field(&out, STR("n"), STR("v"));
	check(net_end_fields(&out) < 0);
	check_int(chan_pending(&a), 0);
}

/* Reads a payload as every kind of frame: none may crash or read beyond it. */
static void read_as_everything(struct str p)
{
	struct net_open open;
	struct net_response response;
	struct net_hello hello;
	struct net_mint mint;
	struct net_cert cert;
	struct net_event event;
	struct wire_in fields;
	struct str s, value;
	struct net_trailers trailers;
	struct net_end_of_stream end;
	struct net_credit credit;
	uint32_t u;
	uint16_t n;

	if (net_get_open(p, &open, &fields))
		for (n = 0; n < open.fields_n && net_next_field(&fields, &s, &value);)
			n++;
	(void)net_get_response(p, &response, &fields);
	(void)net_get_hello(p, &hello);
	(void)net_get_mint(p, &mint);
	(void)net_get_cert(p, &cert);
	(void)net_get_event(p, &event);
	(void)net_get_data(p, &u, &s);
	(void)net_get_trailers(p, &trailers, &fields);
	(void)net_get_end_of_stream(p, &end);
	(void)net_get_credit(p, &credit);
}

static void test_damaged_frames_are_only_refused(void)
{
	_cleanup_(freep) char *copy = NULL;
	size_t n;

	send_open();
	receive(NET_OPEN);
	n = f.payload.n;
	for (size_t cut = 0; cut <= n; cut++) {
		struct net_open m;
		struct wire_in fields;
		struct str name, value;
		bool ok;

		copy = str_dup(str_prefix(f.payload, cut));
		must(copy);
		ok = net_get_open(str_make(copy, cut), &m, &fields);
		for (int i = 0; ok && i < m.fields_n; i++)
			ok = net_next_field(&fields, &name, &value);
		check((ok && wire_ok(&fields)) == (cut == n));
		read_as_everything(str_make(copy, cut));
		for (int round = 0; round < 20 && cut > 0; round++) {
			copy[rand_below((uint32_t)cut)] = (char)rand_below(256);
			read_as_everything(str_make(copy, cut));
		}
		free(TAKE_PTR(copy));
	}
}

static void test_values_out_of_range_are_malformed(void)
{
	struct net_end_of_stream end;
	struct net_credit credit;
	uint32_t stream;
	struct str bytes;

	check(!net_get_credit(STR("\1\0\0\0\0\0\0\0"), &credit));
	check(!net_get_credit(STR("\1\0\0\0\xff\xff\xff\xff"), &credit));
	check(!net_get_data(STR("\1\0\0\0"), &stream, &bytes));
	check(!net_get_end_of_stream(STR("\1\0\0\0\x09"), &end));
}

int main(void)
{
	seeded_begin();
	open_pair();
	run_test(test_open_comes_back_with_its_fields);
	run_test(test_responses_trailers_and_small_frames);
	run_test(test_mint_and_cert);
	run_test(test_data_written_in_place);
	run_test(test_too_many_fields_withdraw_the_frame);
	run_test(test_damaged_frames_are_only_refused);
	run_test(test_values_out_of_range_are_malformed);
	chan_done(&a);
	chan_done(&b);
	return tap_done();
}
