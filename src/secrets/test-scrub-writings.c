/* SPDX-License-Identifier: Apache-2.0 */
/* However a value is written, what comes back is the surrogate, written likewise. */
#include "base/base64.h"
#include "base/rand.h"
#include "secrets/test-feed.h"

#include "seeded.h"
#include "tap.h"

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
		"p%41ss/wo%rd", "12345678", "/a/b/c//d/", "a b+c d/e f", "q\"u\\\\o/t<&>e"};
	static const struct str before[] = {STR("x="), STR("%"), STR("%41"), STR("\\\\"), STR("%2"),
		STR("\\u00"), STR(""), STR("{\"a\": \""), STR("\\/"), STR("sk-ant-"), STR("%%%")};

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
		/* a plain '%' stays, and a backslash with what is behind it; '+' may mean a
		 * space */
		if (w == PERCENT || w == PERCENT_ALL || (w == PERCENT_SOME && k != 6) ||
			(w == AS_IS && k != 2 && k != 6 && !(k == 4 && str_ends(pad, STR("\\")))))
			if (!str_starts(buf_str(&plain), fake(k)))
				tap_fail("\"%.*s\" became \"%.*s\", not \"%.*s\"",
					STR_FMT(buf_str(&text)), STR_FMT(buf_str(&once)),
					STR_FMT(fake(k)));
	}
	drop();
}

/* The last digit of %34 is a 4 itself, so the text reads as the value also from there on. What is
 * written is for who reads the escape. */
static void test_value_from_within_an_escape(void)
{
	static const char *const values[] = {"41bcdefgh/41bc"};
	static const struct str first[] = {STR("%34"), STR("\\u0034")};
	static const enum writing how[] = {PERCENT_SOME, JSON_SOME};

	for (size_t i = 0; i < 2 * 50; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(64), back = BUF_INIT(64);
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(64);

		use(values, 1);
		must(buf_add_str(&text, first[i % 2]) == 0);
		must(buf_add_str(&text, STR("1bcdefgh/41bc")) == 0);
		feed(buf_str(&text), i % 20, &back, NULL);
		read_as(&plain, buf_str(&back), how[i % 2]);
		check(str_eq(buf_str(&plain), fake(0)));
		drop();
	}
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
		"quote\"back\\slash/", "\xc3\xa9t\xc3\xa9-\xf0\x9f\x98\x80-key", "\"a&b\\slash<>"};
	static const struct str forms[] = {STR("{\"k\": \"quote\\\"back\\\\slash/\"}"),
		STR("{\"k\": \"quote\\\"back\\\\slash\\/\"}"),
		/* for HTML, as Go, Rails and PHP can do */
		STR("{\"k\": \"\\\"a\\u0026b\\\\slash\\u003c\\u003e\"}"),
		STR("{\"k\": \"\\u0022a\\u0026b\\\\slash\\u003C\\u003E\"}"),
		STR("{\"k\": \"\\\\\\\"a\\u0026b\\\\slash<\\u003e\"}"),
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
		check(i >= 150 || str_ends(buf_str(&back), end));
	}
	drop();
}

/* Any cut of any text of few letters, with values that overlap in each other and in their own
 * escapes. */
static void test_any_text(void)
{
	static const char *const values[] = {"41414141", "4141414141a", "%41%41%41", "A/A/A/A/A/",
		"/A/A/A/A", "u0041u0041", "AAAAAAAA", "A%41%2f41A", "A\"A\"A\"A\"", "\\u0041/%41",
		"\\\\\"A/\\\"\\A"};
	static const struct str parts[] = {STR("%41"), STR("41"), STR("A"), STR("%"), STR("\\"),
		STR("\\u0041"), STR("/"), STR("\\/"), STR("%2f"), STR("a"), STR("u0041"), STR("\n"),
		STR("\\\\"), STR("\\\""), STR("\""), STR("\\u005c"), STR("%22")};

	for (size_t i = 0; i < 30000; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(4096), once = BUF_INIT(4096);
		_cleanup_(buf_donep) struct buf cut = BUF_INIT(4096);
		size_t kinds = 1 + rand_below(ARRAY_SIZE(parts)),
		       from = rand_below(ARRAY_SIZE(parts));
		uint64_t hits, again;

		if (i % 15000 == 0) /* at first without those that have backslashes themselves */
			use(values, i == 0 ? 9 : ARRAY_SIZE(values));
		for (uint32_t n = rand_below(60); n > 0; n--)
			must(buf_add_str(&text, parts[(from + rand_below((uint32_t)kinds)) %
							ARRAY_SIZE(parts)]) == 0);
		feed(buf_str(&text), 100000, &once, &hits);
		feed(buf_str(&text), i % 12, &cut, &again);
		check(str_eq(buf_str(&once), buf_str(&cut)));
		check_int(hits, again);
		check_int(buf_len(&once), buf_len(&text));
		if (i % 15000 == 14999)
			drop();
	}
}

/* Which backslashes are pairs does not depend on how the text is cut. */
static void test_backslashes(void)
{
	static const char *const values[] = {"/a/b/c//d/"};

	use(values, 1);
	for (size_t i = 0; i < 80 * 8; i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(256), once = BUF_INIT(256);
		_cleanup_(buf_donep) struct buf cut = BUF_INIT(256);
		uint64_t hits;

		must(buf_add_str(&text, STR("................")) == 0);
		for (size_t k = 0; k < i / 8; k++)
			must(buf_add_char(&text, '\\') == 0);
		must(buf_add_str(&text, STR("/a\\/b\\/c//d/\n")) == 0);
		feed(buf_str(&text), 1000, &once, &hits);
		feed(buf_str(&text), 1 + i % 8, &cut, NULL);
		check_int(hits, 1);
		check(str_eq(buf_str(&once), buf_str(&cut)));
	}
	drop();
}

int main(void)
{
	seeded_begin();
	run_test(test_basic);
	run_test(test_writings);
	run_test(test_value_from_within_an_escape);
	run_test(test_base64);
	run_test(test_json);
	run_test(test_any_text);
	run_test(test_backslashes);
	return tap_done();
}
