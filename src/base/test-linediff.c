/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/linediff.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>

static const uint64_t PLENTY = 1 << 30;

static int write_line(enum linediff_mark mark, struct str line, bool cut, void *user)
{
	struct buf *out = user;
	static const char marks[] = {0, ' ', '-', '+'};

	if (mark != LINEDIFF_HUNK && buf_add_char(out, marks[mark]) < 0)
		return -1;
	return buf_add_str(out, line) < 0 || buf_add_char(out, cut ? '$' : '\n') < 0 ? -1 : 0;
}

static void expect_unified(const char *before, const char *after, const char *want)
{
	_cleanup_(linediff_donep) struct linediff d;
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	uint64_t work = PLENTY;

	check_int(linediff_init(&d, str_from(before), str_from(after), &work), 0);
	check_int(linediff_unified(&d, 1, write_line, &out), 0);
	check_str(buf_str(&out), want);
}

static void writes_the_unified_form(void)
{
	expect_unified("a\nb\n", "a\nb\n", "");
	expect_unified("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
	expect_unified("a\n", "", "@@ -1 +0,0 @@\n-a\n");
	expect_unified("1\n2\n3\n4\n", "1\n2\nX\n4\n", "@@ -2,3 +2,3 @@\n 2\n-3\n+X\n 4\n");
	expect_unified("1\n2\n3\n4\n5\n", "X\n2\n3\n4\nY\n",
		"@@ -1,2 +1,2 @@\n-1\n+X\n 2\n@@ -4,2 +4,2 @@\n 4\n-5\n+Y\n");
	expect_unified("1\n2\n3\n4\n", "X\n2\n3\nY\n", "@@ -1,4 +1,4 @@\n-1\n+X\n 2\n 3\n-4\n+Y\n");
	expect_unified("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b$+b\n");
	expect_unified("a\nb\nc\n", "b\nc\nd\n", "@@ -1,3 +1,3 @@\n-a\n b\n c\n+d\n");
}

/* --- against the longest common sequence of lines --- */

enum { MOST = 24 };

static size_t fewest_edits(const char *a, size_t n, const char *b, size_t m)
{
	size_t t[MOST + 1][MOST + 1];

	for (size_t i = 0; i <= n; i++)
		for (size_t k = 0; k <= m; k++)
			t[i][k] = i == 0 || k == 0       ? i + k
				  : a[i - 1] == b[k - 1] ? t[i - 1][k - 1]
							 : 1 + MIN(t[i - 1][k], t[i][k - 1]);
	return t[n][m];
}

/* Whether the edits lead from one to the other. */
static bool leads(const struct linediff *d)
{
	size_t at[2] = {0, 0};

	for (size_t i = 0; i <= d->edits_n; i++) {
		struct linediff_edit end = {d->n[0], 0, d->n[1], 0};
		const struct linediff_edit *e = i < d->edits_n ? &d->edits[i] : &end;

		if (e->old_at - at[0] != e->new_at - at[1] || e->old_at < at[0])
			return false;
		for (; at[0] < e->old_at; at[0]++, at[1]++)
			if (!str_eq(d->lines[0][at[0]], d->lines[1][at[1]]))
				return false;
		at[0] += e->old_n;
		at[1] += e->new_n;
	}
	return at[0] == d->n[0] && at[1] == d->n[1];
}

static size_t draw(char *p, unsigned *seed)
{
	size_t n = (size_t)(rand_r(seed) % (MOST + 1));

	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + rand_r(seed) % 4);
	return n;
}

static size_t as_lines(const char *p, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = p[i];
		ret[2 * i + 1] = '\n';
	}
	return 2 * n;
}

static void finds_the_fewest(void)
{
	unsigned seed = 1;

	for (int i = 0; i < 20000; i++) {
		char a[MOST], b[MOST], x[2 * MOST], y[2 * MOST];
		size_t n = draw(a, &seed), m = draw(b, &seed);
		_cleanup_(linediff_donep) struct linediff d;
		uint64_t work = PLENTY;

		check_int(linediff_init(&d, str_make(x, as_lines(a, n, x)),
				  str_make(y, as_lines(b, m, y)), &work),
			0);
		if (!leads(&d) || d.added + d.deleted != fewest_edits(a, n, b, m)) {
			tap_fail("%.*s and %.*s: %zu", (int)n, a, (int)m, b, d.added + d.deleted);
			return;
		}
	}
}

static void is_bounded(void)
{
	_cleanup_(buf_donep) struct buf a = BUF_INIT(1 << 24), b = BUF_INIT(1 << 24);
	_cleanup_(linediff_donep) struct linediff d;
	uint64_t work = PLENTY;

	for (int i = 0; i < 5000; i++)
		if (buf_printf(&a, "a%d\n", i) < 0 || buf_printf(&b, "b%d\n", i) < 0)
			abort();
	check_int(linediff_init(&d, buf_str(&a), buf_str(&b), &work), 0);
	check_int(d.edits_n, 1);
	check(d.added == 5000 && d.deleted == 5000 && leads(&d));
	linediff_done(&d);
	work = 10;
	check_int(linediff_init(
			  &d, STR("1\n2\n3\n4\n5\n6\n7\n8\n"), STR("2\n1\n4\n3\n6\n5\n9\n"), &work),
		0);
	check(leads(&d) && d.edits_n == 1 && work < 10);
	buf_clear(&a);
	for (int i = 0; i <= LINEDIFF_MAX_LINES; i++)
		if (buf_add_char(&a, '\n') < 0)
			abort();
	linediff_done(&d);
	check_int(linediff_init(&d, buf_str(&a), STR(""), &work), -E2BIG);
}

static void without_memory(void)
{
	_cleanup_(linediff_donep) struct linediff d;
	uint64_t work = PLENTY;
	int r = linediff_init(&d, STR("1\n2\n3\n"), STR("1\nx\n3\n4\n"), &work);

	check_int(r, torture_failed ? -ENOMEM : 0);
}

static void survives_without_memory(void)
{
	torture(without_memory);
}

int main(void)
{
	run_test(writes_the_unified_form);
	run_test(finds_the_fewest);
	run_test(is_bounded);
	run_test(survives_without_memory);
	return tap_done();
}
