/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/heard.h"
#include "base/macro.h"
#include "base/str.h"
#include "workspace/stuck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void heard_done(struct heard *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->things[i].name);
		free(h->things[i].target);
		free(h->things[i].also);
	}
	free(h->things);
	*h = (struct heard){0};
}

int heard_add(struct heard *h, const char *name, const char *target, const char *also)
{
	struct heard_thing *more = array_room(h->things, h->n, &h->cap, sizeof(*more)), *t;

	if (!more)
		return -ENOMEM;
	h->things = more;
	t = &h->things[h->n++];
	*t = (struct heard_thing){
		.name = strdup(name), .target = strdup(target), .also = also ? strdup(also) : NULL};
	return t->name && t->target && (t->also || !also) ? 0 : -ENOMEM;
}

static bool heard_has(struct str line, struct str word)
{
	return str_find(line, word) < line.n;
}

/* Whether it says that something cannot be changed. Node prints the name of the error, too. */
static bool heard_is_error(struct str line)
{
	return heard_has(line, STR("Read-only file system")) ||
	       heard_has(line, STR("Device or resource busy")) || heard_has(line, STR("EROFS")) ||
	       heard_has(line, STR("EBUSY"));
}

static bool heard_is_of_name(char c)
{
	return str_is_alnum(c) || c == '_' || c == '-' || c == '.' || (unsigned char)c >= 0x80;
}

/* Whether what stands before a path can: not more of a path, but for "./". */
static bool heard_is_begun(struct str before)
{
	if (str_ends(before, STR("./")))
		before.n -= 2;
	return before.n == 0 ||
	       (before.p[before.n - 1] != '/' && !heard_is_of_name(before.p[before.n - 1]));
}

/* Whether the path, or something below it, is named. */
static bool heard_names(struct str line, const char *path)
{
	struct str rest = line, p = str_from(path);

	while (p.n && rest.n) {
		size_t at = str_find(rest, p);
		struct str before, after;

		if (at >= rest.n)
			return false;
		before = str_prefix(line, (size_t)(rest.p - line.p) + at);
		after = str_from_index(rest, at + p.n);
		if (heard_is_begun(before) && (after.n == 0 || !heard_is_of_name(after.p[0])))
			return true;
		rest = str_from_index(rest, at + 1);
	}
	return false;
}

static void heard_end_line(struct heard *h)
{
	struct str line = str_make(h->line, h->line_n);

	h->line_n = 0;
	if (h->lines >= HEARD_MAX_LINES || !heard_is_error(line))
		return;
	h->lines++;
	for (size_t i = 0; i < h->n; i++) {
		struct heard_thing *t = &h->things[i];

		t->hit = t->hit || heard_names(line, t->name) || heard_names(line, t->target) ||
			 (t->also && heard_names(line, t->also));
	}
}

void heard_feed(struct heard *h, const char *p, size_t n)
{
	for (size_t i = 0, end; h->n && i < n; i = end) {
		size_t fits;

		for (end = i; end < n && p[end] != '\n' && p[end] != '\r'; end++)
			;
		fits = MIN(end - i, sizeof(h->line) - h->line_n);
		memcpy(h->line + h->line_n, p + i, fits);
		h->line_n += fits;
		if (end < n) {
			heard_end_line(h);
			end++;
		}
	}
}

/* Tell of those that lie in a git directory, or of the others. */
static int heard_tell_some(const struct heard *h, bool of_git, struct buf *out)
{
	_cleanup_(freep) char **names = calloc(h->n + 1, sizeof(*names)); /* borrowed */
	size_t n = 0;
	int r;

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < h->n; i++)
		if (h->things[i].hit && stuck_is_of_git(h->things[i].name) == of_git)
			names[n++] = h->things[i].name;
	if (n == 0)
		return 0;
	r = buf_add_str(out, buf_len(out) ? STR("; likewise ")
					  : STR("the command says that it could not change "));
	if (r == 0)
		r = told_quote_some(out, names, n);
	if (r < 0)
		return r;
	return buf_add_str(out, of_git ? STR(": read-only inside, as this machine obeys it; see "
					     "WHAT IS LEFT BEHIND in cloche-run(1)")
				       : STR(": read-only inside; --allow-write FILE lets it"));
}

int heard_tell(struct heard *h, struct buf *out)
{
	int r;

	heard_end_line(h);
	r = heard_tell_some(h, false, out);
	return r < 0 ? r : heard_tell_some(h, true, out);
}
