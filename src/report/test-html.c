/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "report/html.h"
#include "tap.h"

#include <cloche/job.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void expect_text(struct str text, enum html_form form, const char *want)
{
	struct html h = HTML_INIT(memfd_create("page", MFD_CLOEXEC));
	char got[4096];
	ssize_t n;

	html_text(&h, text, form);
	check_int(html_finish(&h), 0);
	n = pread(h.fd, got, sizeof(got), 0);
	check_str(str_make(got, (size_t)MAX(n, (ssize_t)0)), want);
	fd_close(h.fd);
}

static void markup_is_escaped(void)
{
	expect_text(STR("a<b>&\"'c"), HTML_LINE, "a&lt;b&gt;&amp;&quot;&#39;c");
	expect_text(STR("</pre><script>x</script>"), HTML_TEXT,
		"&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;");
	expect_text(STR("&lt;&#60;"), HTML_TEXT, "&amp;lt;&amp;#60;");
	expect_text(STR(""), HTML_TEXT, "");
}

static void what_is_hidden_is_shown(void)
{
	expect_text(STR("a\0b"), HTML_TEXT, "a<u>\\x00</u>b");
	expect_text(STR("\x1b[2J\x07\x7f"), HTML_TEXT, "<u>\\x1b</u>[2J<u>\\x07\\x7f</u>");
	expect_text(STR("a\xe2\x80\xae"
			"b"),
		HTML_TEXT, "a<u>\\u{202e}</u>b");
	expect_text(STR("\xe2\x80\xa8\xe2\x80\x8b\xef\xbb\xbf"), HTML_TEXT,
		"<u>\\u{2028}\\u{200b}\\u{feff}</u>");
	expect_text(STR("\xf3\xa0\x81\x81"), HTML_LINE, "<u>\\u{e0041}</u>");
	expect_text(STR("a\xff\xc3<"), HTML_TEXT, "a<u>\\xff\\xc3</u>&lt;");
	/* An overlong "<", and one half of a pair. */
	expect_text(STR("\xc0\xbc\xed\xa0\x80"), HTML_TEXT, "<u>\\xc0\\xbc\\xed\\xa0\\x80</u>");
	expect_text(STR("gr\xc3\xbc\xc3\x9f"), HTML_LINE, "gr\xc3\xbc\xc3\x9f");
}

static void lines_and_colours(void)
{
	expect_text(STR("a\tb\r\nc\rd\r"), HTML_TEXT, "a\tb\nc\nd\n");
	expect_text(STR("a\tb\r\n"), HTML_LINE, "a<u>\\x09</u>b<u>\\x0d\\x0a</u>");
	expect_text(STR("\x1b[1;31mred\x1b[0m\x1b[m"), HTML_TEXT, "red");
	expect_text(STR("\x1b[31mred"), HTML_LINE, "<u>\\x1b</u>[31mred");
	expect_text(STR("\x1b[31"), HTML_TEXT, "<u>\\x1b</u>[31");
	/* An emoji's form is its text's. */
	expect_text(STR("\xe2\x9c\x94\xef\xb8\x8f"), HTML_TEXT, "\xe2\x9c\x94\xef\xb8\x8f");
	expect_text(STR("\xe2\x9c\x94\xef\xb8\x8f"), HTML_LINE, "\xe2\x9c\x94<u>\\u{fe0f}</u>");
}

static void marks_are_bounded(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	_cleanup_(buf_donep) struct buf page = BUF_INIT(1 << 20);
	struct html h = HTML_INIT(memfd_create("page", MFD_CLOEXEC));
	char name[64];
	size_t marks = 0;

	for (int i = 0; i < 10000; i++)
		if (buf_add(&b, "a\x01", 2) < 0)
			abort();
	html_text(&h, buf_str(&b), HTML_TEXT);
	check_int(html_finish(&h), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", h.fd);
	check_int(fd_read_file(AT_FDCWD, name, &page, NULL), 0);
	for (struct str s = buf_str(&page); s.n; s = str_from_index(s, 1))
		marks += str_starts(s, STR("<u>"));
	check_int(marks, 500);
	check(str_ends(buf_str(&page), STR("a\\x01a\\x01")));
	fd_close(h.fd);
}

static void a_failure_stays(void)
{
	struct html h = HTML_INIT(open("/dev/full", O_WRONLY | O_CLOEXEC));

	HTML(&h, "<p>");
	check_int(html_finish(&h), -ENOSPC);
	html_number(&h, 1);
	check_int(html_finish(&h), -ENOSPC);
	fd_close(h.fd);
}

#ifdef CLOCHE_HAS_JOBS
static int write_page(void *user, cloche_err *err)
{
	struct html h = HTML_INIT(*(const int *)user);

	for (int i = 0; i < 50000; i++)
		html_constant(&h, "<p>text");
	check_int(html_finish(&h), 0);
	return 0;
}

/* The pipe does not block, so that a write that comes too early fails. */
static void a_job_waits_for_who_reads(void)
{
	cloche_job *job = NULL;
	int fds[2], r, got = 0;
	char chunk[4096];
	ssize_t n;

	must(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	must(cloche_job_start(write_page, &fds[1], &job, NULL) == 0);
	while ((r = cloche_job_dispatch(job, NULL)) > 0)
		for (; (n = read(fds[0], chunk, sizeof(chunk))) > 0; got += (int)n)
			;
	check_int(r, 0);
	for (; (n = read(fds[0], chunk, sizeof(chunk))) > 0; got += (int)n)
		;
	check_int(got, 50000 * 7);
	cloche_job_free(job);
	close(fds[0]);
	close(fds[1]);
}
#endif

int main(void)
{
	run_test(markup_is_escaped);
	run_test(what_is_hidden_is_shown);
	run_test(lines_and_colours);
	run_test(marks_are_bounded);
	run_test(a_failure_stays);
#ifdef CLOCHE_HAS_JOBS
	run_test(a_job_waits_for_who_reads);
#endif
	return tap_done();
}
