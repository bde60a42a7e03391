/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/rand.h"
#include "secrets/base64.h"
#include "secrets/scrub.h"

#include "base/buf.h"
#include "tap.h"

#include <time.h>

static struct secret_set *set;
static struct scrubber *scrubber;

static void use(const char *const *values, size_t n)
{
	set = secret_set_new();
	for (size_t i = 0; i < n; i++) {
		_cleanup_(secret_spec_done) struct secret_spec spec = {0};
		char text[32];

		(void)snprintf(text, sizeof(text), "K%zu@x.com", i);
		must(secret_spec_parse(str_from(text), &spec, NULL) == 0);
		must(secret_set_add(set, &spec, str_from(values[i]), STR_NULL, NULL) == 0);
	}
	must(scrubber_new(set, &scrubber, NULL) == 0);
}

static void drop(void)
{
	scrubber = scrubber_free(scrubber);
	set = secret_set_free(set);
}

static struct str fake(size_t i)
{
	return secret_set_get(set, i)->surrogate;
}

/* Feeds text in pieces of `step` bytes (0: random ones) and collects what comes out. */
static void feed(struct str text, size_t step, struct buf *out, uint64_t *ret_hits)
{
	_cleanup_(scrub_freep) struct scrub *s = scrub_new(scrubber);
	char *copy = malloc(text.n + 1);

	must(s && copy);
	for (size_t i = 0; i < text.n;) {
		size_t n = MIN(step ? step : rand_below(40), text.n - i);
		struct str first, second;

		memcpy(copy, text.p + i, n);
		scrub_feed(s, copy, n, &first, &second);
		must(buf_add_str(out, first) == 0 && buf_add_str(out, second) == 0);
		i += n;
		/* the held part is never more than promised */
		check(i - buf_len(out) <= scrubber_max_held(scrubber));
	}
	must(buf_add_str(out, scrub_end(s)) == 0);
	if (ret_hits)
		*ret_hits = scrub_hits(s);
	free(copy);
}

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
	check_int(scrubber_max_held(scrubber), 6 * 25 + 6); /* all of its base64 as \u00XX */
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
	check_int(scrubber_max_held(scrubber), 0);
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
			for (size_t at = 0; at + strlen(values[v]) <= SIZE; at++)
				found += memcmp(text + at, values[v], strlen(values[v])) == 0;
		check_int(scrub_whole(scrubber, copy, SIZE), found);
		for (size_t v = 0; v < 3; v++)
			check(memmem(copy, SIZE, values[v], strlen(values[v])) == NULL);
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

/* Within Basic credentials, wherever the value begins in them, and however they are cut. */
static void test_basic(void)
{
	static const char *const values[] = {
		"sk-real-0123456789", "12345678", "\xc3\xa9t\xc3\xa9+secret"};
	static const char *const users[] = {"", "u", "us", "use", "user"};

	use(values, ARRAY_SIZE(values));
	for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(users) * 20; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(256), back = BUF_INIT(256);
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(256);
		const char *value = values[i % ARRAY_SIZE(values)];
		struct str want = fake(i % ARRAY_SIZE(values));
		size_t at = strlen(users[i % ARRAY_SIZE(users)]) + 1, same = 0;
		char whole[64];
		uint64_t hits;
		int n = snprintf(whole, sizeof(whole), "%s:%s%s", users[i % ARRAY_SIZE(users)],
			value, i % 2 ? ":more" : "");

		must(base64_encode(&text, str_make(whole, (size_t)n)) == 0);
		feed(buf_str(&text), i % 20, &back, &hits);
		check_int(buf_len(&back), buf_len(&text));
		check(hits > 0);
		must(base64_decode(&plain, buf_str(&back)) == 0);
		/* all but a byte at either end is the surrogate's */
		check(memcmp(buf_data(&plain) + at + 1, want.p + 1, want.n - 2) == 0);
		for (size_t k = 0; k < want.n; k++)
			same += buf_data(&plain)[at + k] == value[k];
		check(same < want.n);
	}
	drop();
}

/* How bytes may be written. */
enum writing {
	AS_IS,
	PERCENT,
	PERCENT_ALL,
	PERCENT_SOME,
	PLUS,
	JSON,
	JSON_ALL,
	JSON_SOME,
	WRITINGS
};

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       memchr("-_.~", c, 4);
}

static void write_percent(struct buf *out, char c, enum writing w)
{
	bool escape =
		w == PERCENT_ALL || (w == PERCENT_SOME ? c == '%' || rand_below(2) : !is_plain(c));

	if (w == PLUS && c == ' ')
		must(buf_add_char(out, '+') == 0);
	else if (escape)
		must(buf_printf(out, rand_below(2) ? "%%%02x" : "%%%02X", (uint8_t)c) == 0);
	else
		must(buf_add_char(out, c) == 0);
}

static void write_json(struct buf *out, char c, enum writing w)
{
	if (c == '"' || c == '\\' || (c == '/' && rand_below(2)))
		must(buf_printf(out, "\\%c", c) == 0);
	else if (w == JSON_ALL || (w == JSON_SOME && rand_below(2)))
		must(buf_printf(out, rand_below(2) ? "\\u%04x" : "\\u%04X", (uint8_t)c) == 0);
	else
		must(buf_add_char(out, c) == 0);
}

static void write_byte(struct buf *out, char c, enum writing w)
{
	if (w == AS_IS)
		must(buf_add_char(out, c) == 0);
	else if (w < JSON)
		write_percent(out, c, w);
	else
		write_json(out, c, w);
}

static void write_as(struct buf *out, struct str s, enum writing w)
{
	for (size_t i = 0; i < s.n; i++)
		write_byte(out, s.p[i], w);
}

/* The byte that stands in n hexadecimal digits from the front of s on; -1: there are none. */
static int hex_byte(struct str s, size_t n)
{
	char digits[8] = "";
	char *end;
	long value;

	if (s.n < n)
		return -1;
	memcpy(digits, s.p, n);
	value = strtol(digits, &end, 16);
	return end == digits + n && digits[0] != ' ' && value < 256 ? (int)value : -1;
}

/* Takes one byte off the front. */
static char read_byte(struct str *s, enum writing w)
{
	char c = s->p[0];
	bool percent = w != AS_IS && w < JSON && c == '%', json = w >= JSON && c == '\\';
	size_t skip = percent ? 1 : json && s->n > 1 && s->p[1] == 'u' ? 2 : 0;
	size_t digits = percent ? 2 : 4;
	int value = skip ? hex_byte(str_from_index(*s, skip), digits) : -1;

	if (value >= 0) {
		*s = str_from_index(*s, skip + digits);
		return (char)value;
	}
	if (json && s->n > 1)
		c = s->p[1];
	*s = str_from_index(*s, json && s->n > 1 ? 2 : 1);
	return w == PLUS && c == '+' ? ' ' : c;
}

/* Reads it back. */
static void read_as(struct buf *out, struct str s, enum writing w)
{
	while (s.n > 0)
		must(buf_add_char(out, read_byte(&s, w)) == 0);
}

/* However it is written and cut, what comes back means the surrogate, in the same length. */
static void test_writings(void)
{
	static const char *const values[] = {"sk-ant-abc+def/ghi=jkl~mno.pqr", "41bcdefgh/41bc",
		"p%41ss/wo%rd", "12345678", "/a/b/c//d/", "a b+c d/e f"};
	static const struct str before[] = {STR("x="), STR("%"), STR("%41"), STR("\\\\"), STR("%2"),
		STR("\\u00"), STR(""), STR("{\"a\": \""), STR("\\/"), STR("sk-ant-"), STR("%%%")};

	unsigned misses = 0;

	use(values, ARRAY_SIZE(values));
	for (size_t i = 0; i < 20000; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(4096), once = BUF_INIT(4096);
		_cleanup_(buf_donep) struct buf cut = BUF_INIT(4096), plain = BUF_INIT(4096);
		size_t k = rand_below(ARRAY_SIZE(values)), at;
		enum writing w = rand_below(WRITINGS);
		struct str pad = before[rand_below(ARRAY_SIZE(before))];
		uint64_t hits = 0, again = 0;

		/* a prefix that makes another reading of it is for the raw form alone */
		if (w != AS_IS && (str_chr(pad, '%') < pad.n || str_chr(pad, '\\') < pad.n))
			pad = STR("?");
		must(buf_add_str(&text, pad) == 0);
		at = buf_len(&text);
		write_as(&text, str_from(values[k]), w);
		must(buf_add_str(&text, STR("\"&y=1\n\n")) == 0);
		feed(buf_str(&text), 100000, &once, &hits);
		feed(buf_str(&text), i % 9, &cut, &again);
		check(str_eq(buf_str(&once), buf_str(&cut)));
		check(hits == again && hits >= 1);
		check_int(buf_len(&once), buf_len(&text));
		read_as(&plain, str_from_index(buf_str(&once), at), w);
		check(str_find(buf_str(&plain), str_from(values[k])) == buf_len(&plain));
		/* a slash behind a backslash stays, and a plain '%'; '+' may mean a space */
		if (w == PERCENT || w == PERCENT_ALL || w == PERCENT_SOME ||
			(w == AS_IS && k != 2 && !(k == 4 && str_ends(pad, STR("\\")))))
			misses += !str_starts(buf_str(&plain), fake(k));
	}
	/* A surrogate is drawn, and now and then one makes an escape with what stands there. */
	check(misses <= 3);
	drop();
}

/* Base64 of a longer text, in both alphabets, and that percent-encoded or in JSON once more. */
static void test_base64(void)
{
	static const char *const values[] = {
		"\xfb\xff\xbf\xfe\xfb\xef\xbe!~?>\xfb\xff", "abcdefgh"};

	use(values, ARRAY_SIZE(values));
	for (size_t i = 0; i < 3000; i++) {
		_cleanup_(buf_donep) struct buf whole = BUF_INIT(4096), text = BUF_INIT(4096);
		_cleanup_(buf_donep) struct buf wire = BUF_INIT(4096), back = BUF_INIT(4096);
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(4096), decoded = BUF_INIT(4096);
		enum writing w = rand_below(WRITINGS);
		struct str want = fake(i % 2);
		char noise[16];
		size_t at = rand_below(9);
		uint64_t hits;

		rand_bytes(noise, sizeof(noise));
		must(buf_add(&whole, noise, at) == 0);
		must(buf_add_str(&whole, str_from(values[i % 2])) == 0);
		must(buf_add(&whole, noise, rand_below(9)) == 0);
		must(base64_encode(&text, buf_str(&whole)) == 0);
		for (size_t k = 0; i % 3 && k < buf_len(&text); k++) {
			char *c = buf_data(&text) + k;

			*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
		}
		write_as(&wire, buf_str(&text), w == PLUS ? PERCENT : w);
		feed(buf_str(&wire), i % 20, &back, &hits);
		check(hits > 0 && buf_len(&back) == buf_len(&wire));
		read_as(&decoded, buf_str(&back), w == PLUS ? PERCENT : w);
		if (w >= JSON || base64_decode(&plain, buf_str(&decoded)) < 0)
			continue; /* a slash that stays in JSON may be of the other alphabet */
		check(memcmp(buf_data(&plain) + at + 1, want.p + 1, want.n - 2) == 0);
	}
	drop();
}

/* What JSON must escape is looked for as Python, JavaScript and PHP write it. */
static void test_json(void)
{
	static const char *const values[] = {
		"quote\"back\\slash/", "\xc3\xa9t\xc3\xa9-\xf0\x9f\x98\x80-key"};
	static const struct str forms[] = {STR("{\"k\": \"quote\\\"back\\\\slash/\"}"),
		STR("{\"k\": \"quote\\\"back\\\\slash\\/\"}"),
		STR("[\"\\u00e9t\\u00e9-\\ud83d\\ude00-key\"]"),
		STR("[\"\xc3\xa9t\xc3\xa9-\xf0\x9f\x98\x80-key\"]")};

	use(values, ARRAY_SIZE(values));
	for (size_t i = 0; i < ARRAY_SIZE(forms) * 30; i++) {
		_cleanup_(buf_donep) struct buf back = BUF_INIT(4096);
		struct str form = forms[i / 30], end = STR("\"}");
		uint64_t hits;

		feed(form, i % 30, &back, &hits);
		check_int(hits, 1);
		check_int(buf_len(&back), form.n);
		check(str_find(buf_str(&back), STR("slash")) == form.n);
		check(str_find(buf_str(&back), STR("\\u00e9")) == form.n);
		check(i >= 60 || str_ends(buf_str(&back), end));
	}
	drop();
}

/* Any cut of any text of few letters, with values that overlap in each other and in their own
 * escapes. */
static void test_any_text(void)
{
	static const char *const values[] = {"41414141", "4141414141a", "%41%41%41", "A/A/A/A/A/",
		"/A/A/A/A", "u0041u0041", "AAAAAAAA", "\\u0041/%41", "A%41%2f41A"};
	static const struct str parts[] = {STR("%41"), STR("41"), STR("A"), STR("%"), STR("\\"),
		STR("\\u0041"), STR("/"), STR("\\/"), STR("%2f"), STR("a"), STR("u0041"),
		STR("\n")};

	use(values, ARRAY_SIZE(values));
	for (size_t i = 0; i < 30000; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(4096), once = BUF_INIT(4096);
		_cleanup_(buf_donep) struct buf cut = BUF_INIT(4096);
		size_t kinds = 1 + rand_below(ARRAY_SIZE(parts)),
		       from = rand_below(ARRAY_SIZE(parts));
		uint64_t hits, again;

		for (uint32_t n = rand_below(60); n > 0; n--)
			must(buf_add_str(&text, parts[(from + rand_below((uint32_t)kinds)) %
							ARRAY_SIZE(parts)]) == 0);
		feed(buf_str(&text), 100000, &once, &hits);
		feed(buf_str(&text), i % 12, &cut, &again);
		check(str_eq(buf_str(&once), buf_str(&cut)));
		check_int(hits, again);
		check_int(buf_len(&once), buf_len(&text));
	}
	drop();
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
	check_int(hits_in(values[1]), 0);
	set = secret_set_free(set);
}

int main(void)
{
	run_test(test_simple);
	run_test(test_nothing_held);
	run_test(test_empty);
	run_test(test_splits);
	run_test(test_against_search);
	run_test(test_linear);
	run_test(test_basic);
	run_test(test_writings);
	run_test(test_base64);
	run_test(test_json);
	run_test(test_any_text);
	run_test(test_events);
	run_test(test_too_much);
	run_test(test_live_values);
	return tap_done();
}
