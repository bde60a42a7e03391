/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"
#include "tap.h"

#include <errno.h>

struct seen {
	struct buf text;
	size_t n, longest;
	int answer;
};

static int take(struct str line, void *data)
{
	struct seen *s = data;

	s->n++;
	s->longest = MAX(s->longest, line.n);
	must(buf_add_str(&s->text, line) == 0 && buf_add_char(&s->text, '|') == 0);
	return s->answer;
}

static void check_split(struct str input, size_t chunk, const char *want)
{
	struct seen s = {.text = BUF_INIT(1 << 20)};
	struct lines l = LINES_INIT(8);

	for (size_t at = 0; at < input.n; at += chunk)
		check_int(
			lines_feed(&l, str_prefix(str_from_index(input, at), chunk), take, &s), 0);
	check_int(lines_end(&l, take, &s), 0);
	check_str(buf_str(&s.text), want);
	lines_done(&l);
	buf_done(&s.text);
}

static void test_every_split_gives_the_same(void)
{
	const struct str input =
		STR("one\n\ntwo\r\n12345678\n123456789\nx\n1234567890123456789\nend");

	for (size_t chunk = 1; chunk <= input.n + 1; chunk++)
		check_split(input, chunk, "one||two\r|12345678|x|end|");
}

static void test_too_long_is_counted(void)
{
	struct seen s = {.text = BUF_INIT(1 << 20)};
	struct lines l = LINES_INIT(4);

	check_int(lines_feed(&l, STR("12345"), take, &s), 0);
	check(l.skipping);
	check_int(buf_len(&l.partial), 0);
	for (int i = 0; i < 1000; i++)
		check_int(lines_feed(&l, STR("and on and on"), take, &s), 0);
	check_int(lines_feed(&l, STR("\nok\nlonger\n1234567"), take, &s), 0);
	check_int(lines_end(&l, take, &s), 0);
	check_int(l.dropped, 3);
	check_int(s.n, 1);
	check_str(buf_str(&s.text), "ok|");
	lines_done(&l);
	buf_done(&s.text);
}

static void test_callback_stops(void)
{
	struct seen s = {.text = BUF_INIT(1 << 20), .answer = -ECANCELED};
	struct lines l = LINES_INIT(100);

	check_int(lines_feed(&l, STR("a\nb\n"), take, &s), -ECANCELED);
	check_int(s.n, 1);
	lines_done(&l);
	buf_done(&s.text);
}

static void test_large_chunks(void)
{
	enum { LINE = 1000, COUNT = 3000, CHUNK = 65536 };
	struct seen s = {.text = BUF_INIT(16 << 20)};
	struct lines l = LINES_INIT(LINES_MAX_DEFAULT);
	char *text = malloc((size_t)(LINE + 1) * COUNT);

	must(text);
	memset(text, 'x', (size_t)(LINE + 1) * COUNT);
	for (size_t i = 0; i < COUNT; i++)
		text[i * (LINE + 1) + LINE] = '\n';
	for (struct str rest = str_make(text, (size_t)(LINE + 1) * COUNT); rest.n > 0;
		rest = str_from_index(rest, CHUNK))
		check_int(lines_feed(&l, str_prefix(rest, CHUNK), take, &s), 0);
	check_int(s.n, COUNT);
	check_int(s.longest, LINE);
	lines_done(&l);
	buf_done(&s.text);
	free(text);
}

int main(void)
{
	run_test(test_every_split_gives_the_same);
	run_test(test_too_long_is_counted);
	run_test(test_callback_stops);
	run_test(test_large_chunks);
	return tap_done();
}
