/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "base/rand.h"

#include "seeded.h"
#include "tap.h"

/* RFC 4648 section 10, and what a strict reader takes beside it. */
static const struct {
	const char *text, *plain; /* NULL: refused */
	bool canonical;
} cases[] = {
	{"", "", true},
	{"Zg==", "f", true},
	{"Zm8=", "fo", true},
	{"Zm9v", "foo", true},
	{"Zm9vYg==", "foob", true},
	{"Zm9vYmE=", "fooba", true},
	{"Zm9vYmFy", "foobar", true},
	{"Zg", "f", false},
	{"Zm8", "fo", false},
	{"Pz8/Pj4+", "??\?>>>", true},
	{"Pz8_Pj4-", "??\?>>>", false},
	{"Pz8/Pj4-", NULL, false},
	{"Zg=", NULL, false},
	{"Zg===", NULL, false},
	{"Z", NULL, false},
	{"Zh==", NULL, false},
	{"Zm9=", NULL, false},
	{"Zm9v=", NULL, false},
	{"Zm9v====", NULL, false},
	{"=", NULL, false},
	{"====", NULL, false},
	{"Zg==Zg==", NULL, false},
	{"Zm 9v", NULL, false},
	{"Zm9v\n", NULL, false},
	{" Zm9v", NULL, false},
	{"Zm9*", NULL, false},
	{"Zm\xc3\xa9", NULL, false},
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(64), text = BUF_INIT(64);
		int r = base64_decode(&plain, str_from(cases[i].text));

		if ((r == 0) != (cases[i].plain != NULL))
			tap_fail("\"%s\": %d", cases[i].text, r);
		if (r == 0 && cases[i].plain)
			check_str(buf_str(&plain), cases[i].plain);
		if (cases[i].canonical) {
			check(base64_encode(&text, str_from(cases[i].plain)) == 0);
			check_str(buf_str(&text), cases[i].text);
		}
	}
}

static void test_round_trip(void)
{
	for (int i = 0; i < 2000; i++) {
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(128), text = BUF_INIT(128);
		_cleanup_(buf_donep) struct buf url = BUF_INIT(128), again = BUF_INIT(128);
		char bytes[40];
		size_t n = rand_below(sizeof(bytes));

		rand_bytes(bytes, sizeof(bytes));
		must(base64_encode(&text, str_make(bytes, n)) == 0);
		must(base64_decode(&plain, buf_str(&text)) == 0);
		check(str_eq(buf_str(&plain), str_make(bytes, n)));
		must(base64url_encode(&url, str_make(bytes, n)) == 0);
		must(base64_decode(&again, buf_str(&url)) == 0);
		check(str_eq(buf_str(&again), str_make(bytes, n)));
		check_int(buf_len(&url), (8 * n + 5) / 6);
		for (size_t k = 0; k < buf_len(&url); k++)
			check(!strchr("+/=", buf_data(&url)[k]));
	}
}

/* The characters between the neighbours' are the same whatever the neighbours are. */
static void test_inner(void)
{
	for (int i = 0; i < 2000; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(128);
		char bytes[64], inner[64];
		size_t before = rand_below(7), n = 1 + rand_below(40), after = rand_below(4);
		size_t len = base64_inner_len(n, (unsigned)(before % 3)),
		       first = (8 * before + 5) / 6;

		rand_bytes(bytes, sizeof(bytes));
		must(base64_encode(&text, str_make(bytes, before + n + after)) == 0);
		base64_inner(str_make(bytes + before, n), (unsigned)(before % 3), inner);
		check(first + len <= buf_len(&text));
		check(memcmp(buf_data(&text) + first, inner, len) == 0);
		/* nothing more could be told: the next character needs a bit of what follows */
		check(6 * (first + len + 1) > 8 * (before + n));
	}
}

int main(void)
{
	seeded_begin();
	run_test(test_table);
	run_test(test_round_trip);
	run_test(test_inner);
	return tap_done();
}
