/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/rand.h"
#include "secrets/scrub_internal.h"
#include "secrets/test-feed.h"

#include "seeded.h"
#include "tap.h"

#include <time.h>

static void test_simple(void)
{
	static const char *const values[] = {"sk-ant-secret-1", "ghp_secret-number-2"};
	char text[] = "a sk-ant-secret-1 b ghp_secret-number-2 c sk-ant-secret-";
	size_t n = strlen(text);

	use(values, 2);
	check_int(scrub_whole(scrubber, text, n), 2);
	check_int(strlen(text), n);
	check(strstr(text, "sk-ant-secret-1") == NULL && strstr(text, "number-2") == NULL);
	check(memcmp(text + 2, fake(0).p, fake(0).n) == 0);
	check(memcmp(text + 20, fake(1).p, fake(1).n) == 0);
	check(strcmp(text + 39, " c sk-ant-secret-") == 0);
	check_int(scrubber->max_held, 6 * 25 + 6); /* all of its base64 as \u00XX */
	drop();
}

static void test_nothing_held(void)
{
	static const char *const values[] = {"secret-value"};
	_cleanup_(scrub_freep) struct scrub *s = NULL;
	struct str first, second;
	char event[] = "data: {\"x\": 1}\n\n", begin[] = "data: sec", other[] = "tor\n",
	     whole[] = "secret-value", split1[] = "xsecret-v", split2[] = "alue";

	use(values, 1);
	s = scrub_new(scrubber);
	/* an event goes on at once, whole */
	scrub_feed(s, event, strlen(event), &first, &second);
	check(first.n == 0 && second.n == strlen(event) && second.p == event);
	/* what may be a beginning waits, and only that */
	scrub_feed(s, begin, strlen(begin), &first, &second);
	check_str(second, "data: ");
	scrub_feed(s, other, strlen(other), &first, &second);
	check_str(first, "sec");
	check_str(second, "tor\n");
	/* a whole value does not wait for what follows it */
	scrub_feed(s, whole, strlen(whole), &first, &second);
	check(first.n == 0 && str_eq(second, fake(0)));
	scrub_feed(s, split1, strlen(split1), &first, &second);
	check_str(second, "x");
	scrub_feed(s, split2, strlen(split2), &first, &second);
	check_int(first.n, 8);
	check_int(second.n, 4);
	check(memcmp(first.p, fake(0).p, 8) == 0 && memcmp(second.p, fake(0).p + 8, 4) == 0);
	check_int(scrub_end(s).n, 0);
	check_int(scrub_hits(s), 2);
	s = scrub_free(s);
	drop();
}

static void test_empty(void)
{
	_cleanup_(scrub_freep) struct scrub *s = NULL;
	struct str first, second;
	char text[] = "anything";

	use(NULL, 0);
	s = scrub_new(scrubber);
	scrub_feed(s, text, 8, &first, &second);
	check(first.n == 0 && second.n == 8);
	check_int(scrub_end(s).n, 0);
	check_int(scrub_whole(scrubber, text, 8), 0);
	check_int(scrubber->max_held, 0);
	s = scrub_free(s);
	drop();
}

/* All splits give what the whole gives, for values that overlap and contain each other. */
static void test_splits(void)
{
	static const char *const values[] = {"abababab", "ababababcd", "babababa", "cdababab",
		"xabababababx", "aaaaaaaa", "aaaaaaaaaab"};
	static const char bytes[] = "aaaabbbcdx";

	use(values, ARRAY_SIZE(values));
	for (size_t round = 0; round < 2000; round++) {
		_cleanup_(buf_donep) struct buf once = BUF_INIT(4096), split = BUF_INIT(4096);
		char text[200];
		size_t n = rand_below(sizeof(text));
		uint64_t hits, again;

		for (size_t i = 0; i < n; i++)
			text[i] = bytes[rand_below(10)];
		if (n > 100)
			memcpy(text + rand_below(80), values[rand_below(7)], 8);
		feed(str_make(text, n), n + 1, &once, &hits);
		check_int(buf_len(&once), n);
		feed(str_make(text, n), round % 12, &split, &again);
		check(str_eq(buf_str(&once), buf_str(&split)));
		check_int(hits, again);
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			struct str value = str_from(values[i]);
			bool there = str_find(str_make(text, n), value) < n;

			if (there)
				check(hits > 0);
			/* A surrogate of these small alphabets may by chance spell a value's
			 * part, but the places where a value stood have all been written. */
			for (size_t at = 0; at + value.n <= n; at++)
				if (memcmp(text + at, value.p, value.n) == 0)
					check(memcmp(buf_data(&once) + at, value.p, value.n) != 0);
		}
	}
	drop();
}

/* Return at how many places the value stands in both texts of n bytes. */
static size_t places_of(const char *value, const char *a, const char *b, size_t n)
{
	size_t len = strlen(value), found = 0;

	for (size_t at = 0; at + len <= n; at++)
		found += memcmp(a + at, value, len) == 0 && memcmp(b + at, value, len) == 0;
	return found;
}

/* The skipping finds what a plain search finds. */
static void test_against_search(void)
{
	static const char *const values[] = {
		"tok_0123456789", "\xc3\xa9secret\xff\xfe!", "ZZZZZZZZ"};
	enum { SIZE = 4000 };
	char *text = malloc(SIZE), *copy = malloc(SIZE);

	must(text && copy);
	use(values, 3);
	for (int round = 0; round < 300; round++) {
		size_t found = 0;

		rand_bytes(text, SIZE);
		for (uint32_t i = rand_below(6); i > 0; i--) {
			struct str value = str_from(values[rand_below(3)]);

			memcpy(text + rand_below(SIZE - 20), value.p, value.n);
		}
		memcpy(copy, text, SIZE);
		for (size_t v = 0; v < 3; v++)
			found += places_of(values[v], text, text, SIZE);
		check_int(scrub_whole(scrubber, copy, SIZE), found);
		/* Elsewhere a surrogate's last letter may be by chance what a value lacked that
		 * another one was written over. */
		for (size_t v = 0; v < 3; v++)
			check_int(places_of(values[v], text, copy, SIZE), 0);
	}
	free(text);
	free(copy);
	drop();
}

/* Of this thread: what else the machine does is not counted. */
static uint64_t cpu_usec(void)
{
	struct timespec t;

	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t time_of(char *text, size_t n)
{
	uint64_t start = cpu_usec();

	(void)scrub_whole(scrubber, text, n);
	return cpu_usec() - start;
}

/* Input that is all beginnings takes as long with a value ten times as long, not ten times that. */
static void test_linear(void)
{
	static const size_t lengths[] = {200, 2000};
	size_t n = 4U << 20;
	char *hostile = malloc(n);
	uint64_t took[2];

	must(hostile);
	for (size_t i = 0; i < 2; i++) {
		char value[2001] = "";
		const char *const values[] = {value};

		memset(value, 'a', lengths[i]);
		value[lengths[i] - 1] = 'b';
		use(values, 1);
		memset(hostile, 'a', n);
		took[i] = time_of(hostile, n);
		drop();
	}
	printf("# 4 MiB of beginnings: %llu us, value ten times as long: %llu us\n",
		(unsigned long long)took[0], (unsigned long long)took[1]);
	check(took[1] < 4 * took[0] + 10 * USEC_PER_MSEC);
	free(hostile);
}

/* An event goes on whole and at once, whatever is in it. */
static void test_events(void)
{
	static const char *const values[] = {"sk-ant-0123456789", "\"quoted\"\\", "line/break"};
	static const char *const events[] = {"data: {\"text\": \"sk-ant\"}\n\n", "data: %\n\n",
		"data: \\u00\n\n", "data: %73%6B-ant-01%32\n\n", "data: c2stYW50LTAxMjM\r\n\r\n",
		"data: line\\\\/\n\n", "data: 50%\n\n", ": sk-ant-012345678\n\n"};

	use(values, ARRAY_SIZE(values));
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		_cleanup_(scrub_freep) struct scrub *s = scrub_new(scrubber);
		struct str first, second;
		char text[64];

		must(s);
		(void)snprintf(text, sizeof(text), "%s", events[i]);
		scrub_feed(s, text, strlen(text), &first, &second);
		check(first.n == 0 && str_eq(second, str_from(events[i])));
		check_int(scrub_end(s).n, 0);
	}
	drop();
}

static void test_too_much(void)
{
	struct secret_set *big = secret_set_new();
	struct scrubber *s = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;
	static char value[16001];

	for (int i = 0; i < 8; i++) {
		_cleanup_(secret_spec_done) struct secret_spec spec = {0};
		char text[32];

		memset(value, 'a' + i, 16000);
		(void)snprintf(text, sizeof(text), "K%d@x.com", i);
		must(secret_spec_parse(str_from(text), &spec, NULL) == 0);
		must(secret_set_add(big, &spec, str_from(value), STR_NULL, NULL) == 0);
	}
	check_int(scrubber_new(big, &s, &err), -E_LIMIT);
	check(s == NULL);
	secret_set_free(big);
}

static size_t hits_in(const char *text)
{
	char copy[64];

	must(scrubber_new(set, &scrubber, NULL) == 0);
	(void)snprintf(copy, sizeof(copy), "%s", text);
	size_t n = scrub_whole(scrubber, copy, strlen(copy));

	scrubber = scrubber_free(scrubber);
	return n;
}

/* A token is good for a while after another has taken its place. */
static void test_live_values(void)
{
	static const char *const values[] = {"first-value-1", "second-value-2", "third-value-3"};
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};

	must(secret_spec_parse(STR("K@x.com"), &spec, NULL) == 0);
	set = secret_set_new();
	must(secret_set_add_live(set, &spec, STR("looks-like-it"), STR_NULL, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct secret *value = secret_new(values[i], strlen(values[i]));

		check_int(hits_in(values[i]), 0);
		must(value && secret_set_renew(set, 0, value, NULL) == 0);
		check_int(hits_in(values[i]), 1);
		check_int(hits_in(values[i > 0 ? i - 1 : 0]), 1);
		must(secret_set_renew(set, 0, NULL, NULL) == 0);
		check_int(hits_in(values[i]), 1);
	}
	/* What cannot be masked takes the place of a token, too, which is still good. */
	must(secret_set_renew(set, 0, secret_new(values[0], strlen(values[0])), NULL) == 0);
	check(secret_set_renew(set, 0, secret_new("short", 5), NULL) < 0);
	check(!secret_set_get(set, 0)->known);
	check_int(hits_in(values[0]), 1);
	must(secret_set_renew(set, 0, secret_new(values[2], strlen(values[2])), NULL) == 0);
	check_int(hits_in(values[0]), 1);
	check_int(hits_in(values[1]), 0);
	set = secret_set_free(set);
}

static struct scrubber *scrubber_of(const char *value)
{
	struct scrubber *was = scrubber, *made;

	use(&value, value ? 1 : 0);
	made = scrubber;
	set = secret_set_free(set);
	scrubber = was;
	return made;
}

/* Feed the text up to each place until `last`, go on with the scrubber of `to`, and feed the rest.
 */
static void follow(const char *from, const char *to, const char *text, size_t last, uint64_t hits)
{
	_cleanup_(scrubber_freep) struct scrubber *before = scrubber_of(from);
	_cleanup_(scrubber_freep) struct scrubber *after = scrubber_of(to);
	size_t all = strlen(text);

	for (size_t n = 0; n <= last; n++) {
		_cleanup_(scrub_freep) struct scrub *s = scrub_new(before);
		_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
		char copy[256];
		struct str first, second;

		memcpy(copy, text, all);
		must(s);
		scrub_feed(s, copy, n, &first, &second);
		must(buf_add_str(&out, first) == 0 && buf_add_str(&out, second) == 0);
		must(scrub_follow(s, after) == 0);
		for (size_t i = n; i < all; i++) {
			scrub_feed(s, copy + i, 1, &first, &second);
			must(buf_add_str(&out, first) == 0 && buf_add_str(&out, second) == 0);
		}
		must(buf_add_str(&out, scrub_end(s)) == 0);
		check_int((int)buf_len(&out), (int)all);
		check_int((int)scrub_hits(s), (int)hits);
		check((hits == 0) == str_eq(buf_str(&out), str_from(text)));
	}
}

/* A stream goes on with the values of now; what it holds back may be the beginning of one. */
static void test_followed(void)
{
	static const char old[] = "token-0123456789", fresh[] = "token-abcdefghij";
	static const char written[] = "\\u0074oken%2dtoken\\u002dabcdef\\u0067hij";

	follow(old, fresh, fresh, strlen("token-"), 1);
	follow(old, fresh, written, strlen("\\u0074oken%2dtoken\\u002d"), 1);
	follow("token-abcdefghij-and-longer", "token-abc", "token-abcdefghij", 16, 1);
	follow(old, NULL, "token-012345678", 15, 0);
	follow(NULL, old, "token-012345678", 15, 0);
}

int main(void)
{
	seeded_begin();
	run_test(test_simple);
	run_test(test_nothing_held);
	run_test(test_empty);
	run_test(test_splits);
	run_test(test_against_search);
	run_test(test_linear);
	run_test(test_events);
	run_test(test_too_much);
	run_test(test_live_values);
	run_test(test_followed);
	return tap_done();
}
