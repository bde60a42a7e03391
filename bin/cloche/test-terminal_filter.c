/* SPDX-License-Identifier: Apache-2.0 */
/* INV-TERMINAL: every row is fed whole, byte by byte and cut at every place; the result is the
 * same. */
#include "tap.h"
#include "terminal_filter.h"

#include <string.h>

#define ST "\033\\"
#define BAD "\xef\xbf\xbd"

struct row {
	const char *in, *out;
	const char *end; /* what the end writes; NULL: nothing */
};

static struct terminal_filter f;
static unsigned char shown[1 << 16], scratch[TERMINAL_FILTER_OUT(1 << 13)];
static size_t shown_n;

static void feed(const char *p, size_t n)
{
	size_t w = terminal_filter_feed(&f, (const unsigned char *)p, n, scratch);

	must(w <= TERMINAL_FILTER_OUT(n) && shown_n + w <= sizeof(shown));
	memcpy(shown + shown_n, scratch, w);
	shown_n += w;
}

/* What is shown, with escapes that can be read. */
static const char *readable(const unsigned char *p, size_t n)
{
	static char text[4][8192];
	static unsigned turn;
	char *at = text[turn++ % 4], *begin = at;

	for (size_t i = 0; i < n && at - begin < 8000; i++)
		at += snprintf(at, 8, p[i] >= 0x20 && p[i] < 0x7f ? "%c" : "\\x%02x", p[i]);
	*at = '\0';
	return begin;
}

static void compare(const struct row *r, const char *how)
{
	const char *end = r->end ? r->end : "";
	unsigned char tail[TERMINAL_FILTER_END];
	size_t n = terminal_filter_end(&f, tail);

	if (shown_n != strlen(r->out) || memcmp(shown, r->out, shown_n) != 0)
		tap_fail("%s (%s): got \"%s\", want \"%s\"",
			readable((const unsigned char *)r->in, strlen(r->in)), how,
			readable(shown, shown_n),
			readable((const unsigned char *)r->out, strlen(r->out)));
	if (n != strlen(end) || memcmp(tail, end, n) != 0)
		tap_fail("%s (%s): ends with \"%s\", want \"%s\"",
			readable((const unsigned char *)r->in, strlen(r->in)), how,
			readable(tail, n), readable((const unsigned char *)end, strlen(end)));
	check_int(terminal_filter_end(&f, tail), 0);
	shown_n = 0;
}

static void run_rows(enum terminal_filter_kind kind, const struct row *rows, size_t rows_n)
{
	for (size_t i = 0; i < rows_n; i++) {
		const struct row *r = &rows[i];
		size_t n = strlen(r->in);

		terminal_filter_init(&f, kind);
		feed(r->in, n);
		compare(r, "whole");
		for (size_t k = 0; k < n; k++)
			feed(r->in + k, 1);
		compare(r, "bytes");
		for (size_t cut = 1; cut < n; cut++) {
			feed(r->in, cut);
			feed(r->in + cut, n - cut);
			compare(r, "cut");
		}
	}
}

#define ROWS(kind, rows) run_rows(kind, rows, sizeof(rows) / sizeof((rows)[0]))

static void text_passes(void)
{
	static const struct row rows[] = {
		{"plain\ttext\r\nwith\bbackspace\a\f\v", "plain\ttext\r\nwith\bbackspace\a\f\v"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x94 \xc3\x9b"
		 "31m",
			"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x94 \xc3\x9b"
			"31m"},
		{"\033[31mred\033[0m", "\033[31mred\033[0m"},
		{"\033[31mred\033[m", "\033[31mred\033[m"},
		{"\033[31mred", "\033[31mred", "\033[0m"},
		{"\033[38;2;255;0;127;48:2::1:2:3mx", "\033[38;2;255;0;127;48:2::1:2:3mx",
			"\033[0m"},
		{"\033[2K\033[1A\033[5;7Hx\033[J\033[2J\033[3G",
			"\033[2K\033[1A\033[5;7Hx\033[J\033[2J\033[3G"},
		{"\0337\0338\033M\033(B\017", "\0337\0338\033M\033(B\017"},
		{"\033[?25lspin\033[?25h", "\033[?25lspin\033[?25h"},
		{"\033[?25lspin", "\033[?25lspin", "\033[?25h"},
		{"\033[s\033[u", "\033[s\033[u"},
	};

	ROWS(TERMINAL_TEXT, rows);
}

static void text_hides_nothing(void)
{
	static const struct row rows[] = {
		/* Changes of direction, no width, tags, a byte order mark. */
		{"a\xe2\x80\xae"
		 "b\xe2\x81\xa6"
		 "c\xe2\x80\x8b"
		 "d\xf3\xa0\x81\x81"
		 "e\xef\xbb\xbf"
		 "f",
			"abcdef"},
		/* Joiners, variation selectors, wide blanks and icons shape text. */
		{"\xe2\x9c\x94\xef\xb8\x8f\xe2\x80\x8d\xe3\x80\x80\xee\x82\xa0",
			"\xe2\x9c\x94\xef\xb8\x8f\xe2\x80\x8d\xe3\x80\x80\xee\x82\xa0"},
	};

	ROWS(TERMINAL_TEXT, rows);
}

static void text_makes_no_answer(void)
{
	static const struct row rows[] = {
		{"a\033[cb\033[0cc\033[>cd\033[=ce", "abcde"},
		{"a\033[5nb\033[6nc\033[?6nd\033[?996ne", "abcde"},
		{"a\033Zb\005c", "abc"},
		{"a\033P$qm" ST "b\033P+q544e" ST "c", "abc"},
		{"a\033]52;c;?" ST "b\033]52;c;cm0gLXJm\ac", "abc"},
		{"a\033]0;title\ab\033]2;title" ST "c\033[21td\033[20te", "abcde"},
		{"a\033]11;?" ST "b\033]4;1;?\ac", "abc"},
		{"a\033[14tb\033[8;1;1tc\033[2td", "abcd"},
		{"a\033[?1$pb\033[1$pc\033[0xd\033[?ue", "abcde"},
		{"a\033[1;1;1;1;1;1*yb", "ab"},
		{"a\033[ib\033[?5ic", "abc"},
	};

	ROWS(TERMINAL_TEXT, rows);
}

static void text_changes_nothing_for_long(void)
{
	static const struct row rows[] = {
		{"a\033[?1000hb\033[?2004hc\033[?1049hd\033[?1he\033[4hf", "abcdef"},
		{"a\033cb\033[!pc\033=d\033[1;5re\033[?7lf\033[3g\033Hg\033[2 qh", "abcdefgh"},
		{"a\033(0b\016c\033%@d\033 Ge\033*0f", "abcdef"},
		{"a\033[?2lb\033[?38hc\033[?25;2hd\033[?1049;25le", "abcde"},
		{"a\033[3Jb\033[1;1;1;1;1Tc\033[5;10sd", "abcd"},
		{"a\033[>4;2mb\033[?4mc\033[>1ud", "abcd"},
		{"a\033[999999Cb\033[1:2Hc", "abc"},
	};

	ROWS(TERMINAL_TEXT, rows);
}

static void strings_go_whole(void)
{
	static const struct row rows[] = {
		{"a\033]8;;http://evil.example/" ST "text\033]8;;" ST "b", "atextb"},
		{"a\033_Gt=f,f=100;L2V0Yy9wYXNzd2Q=" ST "b\033^pm" ST "c\033Xsos" ST "d", "abcd"},
		{"a\033ktitle" ST "b\033Ptmux;\033\033]52;c;eA==\a" ST "c", "abc"},
		{"a\033Pq#0;2;0;0;0\n#0~~\n" ST "b", "ab"},
		/* One that does not end is over at the line's end; it was no command. */
		{"a\033]0;never ended\nb", "a\nb"},
		{"a\033]0;cut\030b\033[3\032c", "abc"},
		/* Another sequence within ends it. */
		{"a\033]0;x\033[31mb", "a\033[31mb", "\033[0m"},
		{"a\033]0;x\033]52;c;eA==\ab", "ab"},
		{"a\033P\033]52;c;eA==\a" ST "b", "ab"},
		{"a\033[3\033[31mb", "a\033[31mb", "\033[0m"},
		{"a\033\033[31mb", "a\033[31mb", "\033[0m"},
		{"a\033[3\nb", "a\nb"},
		{"end\033", "end"},
		{"end\033[3", "end"},
		{"end\033]52;c;eA==", "end"},
		{"end\xe2\x82", "end"},
	};

	ROWS(TERMINAL_TEXT, rows);
	/* All but the first: links of the web are another matter there. */
	run_rows(TERMINAL_PROGRAM, rows + 1, sizeof(rows) / sizeof(rows[0]) - 1);
}

static void eight_bit_controls(void)
{
	static const struct row rows[] = {
		{"a\x9b"
		 "6nb",
			"a" BAD "6nb"},
		{"a\x9d"
		 "52;c;eA==\x9c"
		 "b",
			"a" BAD "52;c;eA==" BAD "b"},
		{"a\xc2\x9b"
		 "6nb\xc2\xa0\xc2\x85",
			"a6nb\xc2\xa0"},
		{"\xe9t\xe9!", BAD "t" BAD "!"},
		/* Longer forms than needed, surrogates, and what is above Unicode. */
		{"\xc0\x9b\xc1\xbf\xe0\x82\x9b", BAD BAD BAD BAD BAD BAD BAD},
		{"\xed\xa0\x80\xf4\x90\x80\x80\xf5", BAD BAD BAD BAD BAD BAD BAD BAD},
		{"\xe2\x82"
		 "A\xe2\033[31mB\033[m",
			BAD "A" BAD "\033[31mB\033[m"},
		{"\xe2\xc2\x9b"
		 "6n",
			BAD "6n"},
		{"a\033[3\xc2\x9b"
		 "1mb\033]0;\x9c"
		 "c\n",
			"a1mb\n"},
	};

	ROWS(TERMINAL_TEXT, rows);
	ROWS(TERMINAL_PROGRAM, rows);
}

/* Two streams on one terminal: neither writes less than a whole character or sequence. */
static void never_a_part(void)
{
	static const char in[] = "\xe2\x82\xac\033[31m\xc3\xa4\033[0m";
	static const size_t want[] = {0, 0, 3, 0, 0, 0, 0, 5, 0, 2, 0, 0, 0, 4};

	terminal_filter_init(&f, TERMINAL_TEXT);
	for (size_t i = 0; i < sizeof(in) - 1; i++)
		check_int(terminal_filter_feed(&f, (const unsigned char *)in + i, 1, scratch),
			want[i]);
}

static void programs_may_do_more(void)
{
	static const char *const fine[] = {
		/* what vim, tmux, less, htop and line editors write */
		"\033[>c",
		"\033[c",
		"\033[6n",
		"\033[?12$p",
		"\033]11;?\a",
		"\033]10;?" ST,
		"\033[?u",
		"\033P+q436f;6b75" ST,
		"\033P$q q" ST,
		"\033[14t",
		"\033[18t",
		"\033[22;2t",
		"\033[23;0;0t",
		"\033]0;vim\a",
		"\033]2;\xc3\xa4" ST,
		"\033]112\a",
		"\033[>4;m",
		"\033[!p",
		"\033#8",
		"\033%G",
		"\033]8;;" ST,
		"\033]9;4;0" ST,
		"\033[3J",
		"\033[5b",
		"\033[0 q",
		"\033P=1s" ST,
		"\033[?1001s",
		"\033[?1048h",
		"\033[?2;1;0S",
		"\033[>m",
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		struct row r = {fine[i], fine[i]};

		run_rows(TERMINAL_PROGRAM, &r, 1);
	}
}

/* Whoever closes the stream has to know that an answer may come late. */
static void questions_are_noted(void)
{
	static const char *const asked[] = {"\033[c", "\033[>c", "\033[6n", "\033[?12$p",
		"\033[18t", "\033]11;?\a", "\033P$qm\033\\", "\033[?u", "\033[>q"};
	static const char *const none[] = {"\033[31m", "\033[?25h", "\033]0;what?\a", "\033[2J",
		"\033]52;c;?\033\\", "\033[21t", "\033Z"};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		terminal_filter_init(&f, TERMINAL_PROGRAM);
		feed(asked[i], strlen(asked[i]));
		check(f.asked);
		terminal_filter_init(&f, TERMINAL_TEXT);
		feed(asked[i], strlen(asked[i]));
		check(!f.asked);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		terminal_filter_init(&f, TERMINAL_PROGRAM);
		feed(none[i], strlen(none[i]));
		check(!f.asked);
	}
	shown_n = 0;
}

static void programs_may_not(void)
{
	static const char *const bad[] = {"\033]52;c;?" ST, "\033]52;c;cm0=\a", "\033[21t",
		"\033[20t", "\033[>2t", "\033[>1T", "\033[8;50;80t", "\033[1t", "\033[3;0;0t",
		"\033[i", "\033[5i", "\033[?4i", "\033[1;1;1;1;1;1*y", "\033[1$w", "\033[2$~",
		"\033[1$}", "\033[61\"p", "\033[?2l", "\033[?2h", "\033[?38h", "\033[?1049;2l",
		"\033[2h", "\033[12l", "\033%@", "\033 G", "\033 F", "\033Z", "\005", "\033]50;?\a",
		"\033]7;file://h/\a", "\033]1337;File=name=eA==:eA==\a", "\033]777;notify;a;b" ST,
		"\033]9;text" ST, "\033]99;;text" ST, "\033]5522;type=read" ST,
		"\033]633;E;rm -rf ~" ST, "\033]133;A" ST, "\033]3;x=y" ST,
		"\033]8;;file:///etc/passwd" ST, "\033]8;;ssh://-oProxyCommand=x" ST,
		"\033]8;;javascript:x" ST,
		"\033]0;a\xc2\x9b"
		"b" ST,
		"\033]0"
		"0000;x" ST,
		"\033P0;1|17/726d0d" ST, "\033P1$tx" ST, "\033Ptmux;x" ST, "\033Pq~" ST,
		"\033P+q zz" ST, "\033P$qmmm" ST, "\033_Ga=q;" ST, "\033ktitle" ST, "\033^x" ST,
		"\033Xx" ST, "\033[5;5;5;5;5T", "\033[999999;1H", "\033[1;2?h", "\033[3 1q",
		/* What lasts, and what is usual nobody knows: keys as sequences, key repeat,
		 * scrolling that becomes keys, national characters, wrapping backwards, 8-bit keys,
		 * columns, tab stops, the mouse's shape, protected text, the limits of images. */
		"\033[?9001h", "\033[?7727h", "\033[?8l", "\033[?1061h", "\033[?1007h", "\033[?42h",
		"\033[?45h", "\033[?1034h", "\033[?3l", "\033[?3h", "\033[?65000h",
		"\033[?1049;1007h", "\033[?9001r", "\033[3h", "\033H", "\033[3g", "\033[>3p",
		"\033[1\"q", "\033[?1;3;16S", "\033[>1;2m", "\033[>1n",
		/* Character sets that SI does not take back. */
		"\033*0", "\033+0", "\033-A", "\033.A", "\033/A", "\033n", "\033o", "\033|",
		"\033}", "\033~"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct row r = {bad[i], ""};

		run_rows(TERMINAL_PROGRAM, &r, 1);
	}
}

static void programs_leave_nothing_on(void)
{
	static const struct row rows[] = {
		{"\033[?1049h\033[?1000;1006h\033[?2004h\033[?25l\033[1m",
			"\033[?1049h\033[?1000;1006h\033[?2004h\033[?25l\033[1m",
			"\033[?1049l\033[?25h\033[?1000l\033[?1006l\033[?2004l\033[0m"},
		{"\033[?1049h\033[?1049l\033[?7l\033[?7h",
			"\033[?1049h\033[?1049l\033[?7l\033[?7h"},
		{"\033=\033[2;5r\033[4 q\033[>1u\033[>4;2m\033(0",
			"\033=\033[2;5r\033[4 q\033[>1u\033[>4;2m\033(0",
			"\033[<32u\033[=0u\0337\033[r\0338\033>\033[0 q\033[<32u\033[=0u\033[>4m"
			"\033(B\033)B\017"},
		/* A screen of its own has its own keyboard. */
		{"\033[?1049h\033[=5u", "\033[?1049h\033[=5u",
			"\033[<32u\033[=0u\033[?1049l\033[<32u\033[=0u"},
		/* What is restored may have been saved as anything. */
		{"\033[?1003h\033[?1003s\033[?1003l\033[?1003r",
			"\033[?1003h\033[?1003s\033[?1003l\033[?1003r", "\033[?1003l"},
		{"\033[?12;25h", "\033[?12;25h", "\033[0 q"},
		{"\033[>4n", "\033[>4n", "\033[>4m"},
		/* Links and progress. */
		{"\033]8;id=1;https://example.com/" ST "x",
			"\033]8;id=1;https://example.com/" ST "x", "\033]8;;" ST},
		{"\033]8;;http://a/;b" ST "x\033]8;;" ST, "\033]8;;http://a/;b" ST "x\033]8;;" ST},
		{"\033]8;;http://a/;" ST, "\033]8;;http://a/;" ST, "\033]8;;" ST},
		{"\033]9;4;1;50" ST, "\033]9;4;1;50" ST, "\033]9;4;0" ST},
		/* SO chooses the other set, whatever the first one is. */
		{"\033)0\016\033(B", "\033)0\016\033(B", "\033(B\033)B\017"},
		{"\033]4;1;#ff0000" ST "\033]11;#000" ST, "\033]4;1;#ff0000" ST "\033]11;#000" ST,
			"\033]104" ST "\033]105" ST "\033]110" ST "\033]111" ST "\033]112" ST
			"\033]113" ST "\033]114" ST "\033]115" ST "\033]116" ST "\033]117" ST
			"\033]118" ST "\033]119" ST},
		/* Not every terminal resets everything at RIS. */
		{"\033[?1000h\033[1m\033c", "\033[?1000h\033[1m\033c", "\033[?1000l\033[0m"},
		{"\016x\033[4h", "\016x\033[4h", "\033[4l\033(B\033)B\017"},
	};

	ROWS(TERMINAL_PROGRAM, rows);
}

static void too_long(void)
{
	static char in[8000];

	/* A sequence longer than is looked at goes, all of it. */
	memset(in, '1', sizeof(in));
	memcpy(in, "\033[", 2);
	memcpy(in + sizeof(in) - 2, "mx", 2);
	terminal_filter_init(&f, TERMINAL_PROGRAM);
	feed(in, sizeof(in));
	check(shown_n == 1 && shown[0] == 'x');
	shown_n = 0;
	memcpy(in, "\033]0;", 4);
	memcpy(in + sizeof(in) - 2, "\ay", 2);
	feed(in, sizeof(in));
	check(shown_n == 1 && shown[0] == 'y');
	shown_n = 0;
	/* A string without end gives the stream back at last. */
	memcpy(in, "\033P", 2);
	memset(in + 2, 'z', sizeof(in) - 2);
	feed(in, sizeof(in));
	for (int i = 0; i < 140 && shown_n == 0; i++)
		feed(in + 2, sizeof(in) - 2);
	check(shown_n > 0);
	shown_n = 0;
}

static void untouched(void)
{
	static const char in[] = "\033]52;c;eA==\a\x9b\x00\xff";

	terminal_filter_init(&f, TERMINAL_UNTOUCHED);
	feed(in, sizeof(in));
	check(shown_n == sizeof(in) && memcmp(shown, in, sizeof(in)) == 0);
	check_int(terminal_filter_end(&f, scratch), 0);
	shown_n = 0;
}

int main(void)
{
	run_test(text_passes);
	run_test(text_hides_nothing);
	run_test(text_makes_no_answer);
	run_test(text_changes_nothing_for_long);
	run_test(strings_go_whole);
	run_test(eight_bit_controls);
	run_test(never_a_part);
	run_test(programs_may_do_more);
	run_test(questions_are_noted);
	run_test(programs_may_not);
	run_test(programs_leave_nothing_on);
	run_test(too_long);
	run_test(untouched);
	return tap_done();
}
