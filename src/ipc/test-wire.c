/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/wire.h"
#include "tap.h"

static void fill(struct buf *b)
{
	char one[] = "one", none[] = "", three[] = "three";
	char *strings[] = {one, none, three, NULL};
	struct wire_out w = wire_out(b);

	wire_put_int(&w, 7, 1);
	wire_put_int(&w, 0xbeef, 2);
	wire_put_u32(&w, 0xdeadbeef);
	wire_put_int(&w, 0x0123456789abcdefULL, 8);
	wire_put_str(&w, STR("a\0b"));
	wire_put_str(&w, STR("text"));
	wire_put_strv(&w, strings);
	must(w.error == 0);
}

static void test_values_come_back(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	_cleanup_(freep) char *z = NULL;
	struct wire_in r;
	char **v;

	fill(&b);
	r = wire_in(buf_str(&b));
	check_int(wire_get_int(&r, 1), 7);
	check_int(wire_get_int(&r, 2), 0xbeef);
	check_int(wire_get_u32(&r), 0xdeadbeef);
	check(wire_get_int(&r, 8) == 0x0123456789abcdefULL);
	check(str_eq(wire_get_str(&r, 3), STR("a\0b")));
	z = wire_get_z(&r, 10);
	check_z(z, "text");
	v = wire_get_strv(&r, 3, 5);
	check(v && v[0] && v[1] && v[2] && !v[3]);
	check_z(v ? v[2] : NULL, "three");
	strv_free(v);
	check(wire_ok(&r));
}

static void test_every_truncation_is_malformed(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	fill(&b);
	for (size_t n = 0; n < buf_len(&b); n++) {
		struct wire_in r = wire_in(str_prefix(buf_str(&b), n));

		wire_get_int(&r, 1);
		wire_get_int(&r, 2);
		wire_get_u32(&r);
		wire_get_int(&r, 8);
		wire_get_str(&r, 3);
		free(wire_get_z(&r, 10));
		strv_free(wire_get_strv(&r, 3, 5));
		check(!wire_ok(&r));
	}
}

static void test_limits_and_lies(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	struct wire_out w = wire_out(&b);
	struct wire_in r;

	wire_put_str(&w, STR("four"));
	r = wire_in(buf_str(&b));
	check_int(wire_get_str(&r, 3).n, 0);
	check(r.bad);
	buf_clear(&b);
	wire_put_u32(&w, UINT32_MAX);
	r = wire_in(buf_str(&b));
	check(!wire_get_strv(&r, SIZE_MAX, 100) && r.bad);
	buf_clear(&b);
	wire_put_str(&w, STR("a\0b"));
	r = wire_in(buf_str(&b));
	check(!wire_get_z(&r, 10) && r.bad);
}

static void test_a_full_buffer_is_an_error_that_stays(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(8);
	struct wire_out w = wire_out(&b);

	wire_put_u32(&w, 1);
	wire_put_int(&w, 1, 8);
	check(w.error < 0);
	wire_put_int(&w, 1, 1);
	check_int(buf_len(&b), 4);
}

int main(void)
{
	run_test(test_values_come_back);
	run_test(test_every_truncation_is_malformed);
	run_test(test_limits_and_lies);
	run_test(test_a_full_buffer_is_an_error_that_stays);
	return tap_done();
}
