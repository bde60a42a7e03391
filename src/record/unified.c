/* SPDX-License-Identifier: Apache-2.0 */
#include "record/unified.h"
#include "base/linediff.h"
#include "base/utf8.h"

enum { CONTEXT = 3, WORK_MAX = 1 << 24 };

static int add_line(enum linediff_mark mark, struct str line, bool cut, void *user)
{
	static const char marks[] = {
		[LINEDIFF_SAME] = ' ', [LINEDIFF_DELETED] = '-', [LINEDIFF_ADDED] = '+'};
	struct buf *out = user;
	int r = mark == LINEDIFF_HUNK ? 0 : buf_add_char(out, marks[mark]);

	if (r == 0)
		r = buf_add_str(out, line);
	if (r == 0)
		r = buf_add_char(out, '\n');
	return r == 0 && cut ? buf_add_str(out, STR("\\ No newline at end of file\n")) : r;
}

int unified_write(struct buf *out, struct str before, struct str after)
{
	_cleanup_(linediff_donep) struct linediff d = {0};
	uint64_t work = WORK_MAX;
	int r = linediff_init(&d, before, after, &work);

	return r < 0 ? r : linediff_unified(&d, CONTEXT, add_line, out);
}

bool unified_is_text(struct str s)
{
	return utf8_is_valid(s) && str_chr(s, '\0') == s.n;
}
