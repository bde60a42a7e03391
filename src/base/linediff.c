/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: lines are numbered so that equal lines have the same number, common ends are
 * removed, and the greedy algorithm finds the shortest path through the rest. For each number of
 * edits d it keeps how far each diagonal k got (x = old lines used, y = x - k), which is d + 1
 * numbers. Following the path backwards gives the edits, the last one first. */
#include "base/linediff.h"
#include "base/hash.h"
#include "base/macro.h"

#include <errno.h>
#include <stdio.h>

struct name {
	UT_hash_handle hh;
	uint32_t number;
};

struct search {
	uint32_t *id[2]; /* numbers of the lines between the common ends */
	size_t n[2];
	size_t skipped;  /* lines before those */
	size_t most;     /* limit of edits */
	uint32_t *trace; /* for d edits: d + 1 numbers from d * (d + 1) / 2 on */
};

/* --- lines and their numbers --- */

static int split(struct str text, struct str **ret, size_t *ret_n)
{
	size_t n = 0, max = 0;
	struct str *lines;

	for (size_t at = 0; at < text.n; max++)
		at += str_chr(str_from_index(text, at), '\n') + 1;
	if (max > LINEDIFF_MAX_LINES)
		return -E2BIG;
	lines = calloc(max + 1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	while (text.n) {
		size_t end = MIN(str_chr(text, '\n') + 1, text.n);

		lines[n++] = str_prefix(text, end);
		text = str_from_index(text, end);
	}
	*ret = lines;
	*ret_n = n;
	return 0;
}

static int number_line(struct name **names, struct str line, uint32_t *ret)
{
	struct name *one = NULL;

	HASH_FIND(hh, *names, line.p, line.n, one);
	if (!one) {
		one = calloc(1, sizeof(*one));
		if (!one)
			return -ENOMEM;
		one->number = (uint32_t)HASH_COUNT(*names);
		HASH_ADD_KEYPTR(hh, *names, line.p, line.n, one);
		if (!one->hh.tbl) {
			free(one);
			return -ENOMEM;
		}
	}
	*ret = one->number;
	return 0;
}

static int number_lines(const struct linediff *d, struct search *s)
{
	struct name *names = NULL, *one, *next;
	int r = 0;

	for (int side = 0; r == 0 && side < 2; side++) {
		s->id[side] = calloc(s->n[side] + 1, sizeof(uint32_t));
		r = s->id[side] ? 0 : -ENOMEM;
		for (size_t i = 0; r == 0 && i < s->n[side]; i++)
			r = number_line(&names, d->lines[side][s->skipped + i], &s->id[side][i]);
	}
	HASH_ITER (hh, names, one, next) {
		HASH_DEL(names, one);
		free(one);
	}
	return r;
}

static void skip_common(const struct linediff *d, struct search *s)
{
	size_t most = MIN(d->n[0], d->n[1]), end = 0;

	while (s->skipped < most && str_eq(d->lines[0][s->skipped], d->lines[1][s->skipped]))
		s->skipped++;
	while (end < most - s->skipped &&
		str_eq(d->lines[0][d->n[0] - 1 - end], d->lines[1][d->n[1] - 1 - end]))
		end++;
	s->n[0] = d->n[0] - s->skipped - end;
	s->n[1] = d->n[1] - s->skipped - end;
}

/* --- the shortest path --- */

static uint32_t *row_of(const struct search *s, size_t d)
{
	return s->trace + d * (d + 1) / 2;
}

/* Diagonals of d edits are -d, -d + 2, ... d; i is their index. Return how far the i-th one gets by
 * one edit from those of d - 1, and whether that edit adds a line. */
static size_t step(const struct search *s, size_t d, size_t i, bool *ret_adds)
{
	const uint32_t *before = d ? row_of(s, d - 1) : NULL;

	*ret_adds = d && (i == 0 || (i < d && before[i - 1] < before[i]));
	if (!d)
		return 0;
	return *ret_adds ? before[i] : (size_t)before[i - 1] + 1;
}

/* Return the number of edits, or -1 if there would be too many. */
static int search(const struct search *s, uint64_t *work)
{
	for (size_t d = 0; d <= s->most; d++) {
		uint32_t *row = row_of(s, d);

		for (size_t i = 0; i <= d; i++) {
			bool adds;
			size_t x = step(s, d, i, &adds), y = x + d - 2 * i, from = x;

			/* If x or y is beyond the edge, no path leads to the end from there. */
			while (x < s->n[0] && y < s->n[1] && s->id[0][x] == s->id[1][y])
				x++, y++;
			row[i] = (uint32_t)x;
			if (*work < x - from + 1)
				return -1;
			*work -= x - from + 1;
			if (x >= s->n[0] && y >= s->n[1] && x - s->n[0] == y - s->n[1])
				return (int)d;
		}
	}
	return -1;
}

/* Follow the path backwards. Single edits arrive last first and are merged. */
static void trace_back(struct linediff *ret, const struct search *s, size_t d)
{
	size_t i = 0;

	/* The diagonal of the end: x - y = n[0] - n[1] = 2 * i - d. */
	i = (s->n[0] + d - s->n[1]) / 2;
	for (; d > 0; d--) {
		bool adds;
		size_t x = step(s, d, i, &adds), y = x + d - 2 * i;
		struct linediff_edit *last = ret->edits_n ? &ret->edits[ret->edits_n - 1] : NULL;

		/* The position before the edit. */
		x -= !adds;
		y -= adds;
		if (!last || last->old_at != s->skipped + x + !adds ||
			last->new_at != s->skipped + y + adds) {
			last = &ret->edits[ret->edits_n++];
			*last = (struct linediff_edit){0};
		}
		last->old_at = s->skipped + x;
		last->new_at = s->skipped + y;
		last->old_n += !adds;
		last->new_n += adds;
		i -= !adds;
	}
}

static void reverse(struct linediff *d)
{
	for (size_t i = 0, j = d->edits_n; j-- > i; i++) {
		struct linediff_edit e = d->edits[i];

		d->edits[i] = d->edits[j];
		d->edits[j] = e;
	}
}

static int find_edits(struct linediff *ret, struct search *s, uint64_t *work)
{
	const size_t most = MIN((size_t)LINEDIFF_MAX_EDITS, s->n[0] + s->n[1]);
	int r = number_lines(ret, s), d = -1;

	s->most = most;
	ret->edits = calloc(most + 1, sizeof(*ret->edits));
	s->trace = malloc((most + 1) * (most + 2) / 2 * sizeof(*s->trace));
	if (r < 0 || !ret->edits || !s->trace)
		return -ENOMEM;
	if (s->n[0] && s->n[1])
		d = search(s, work);
	if (d >= 0)
		trace_back(ret, s, (size_t)d);
	else
		ret->edits[ret->edits_n++] =
			(struct linediff_edit){s->skipped, s->n[0], s->skipped, s->n[1]};
	reverse(ret);
	return 0;
}

int linediff_init(struct linediff *ret, struct str before, struct str after, uint64_t *work)
{
	struct search s = {0};
	int r;

	*ret = (struct linediff){0};
	r = split(before, &ret->lines[0], &ret->n[0]);
	if (r == 0)
		r = split(after, &ret->lines[1], &ret->n[1]);
	if (r == 0) {
		skip_common(ret, &s);
		if (s.n[0] || s.n[1])
			r = find_edits(ret, &s, work);
	}
	free(s.id[0]);
	free(s.id[1]);
	free(s.trace);
	if (r < 0)
		linediff_done(ret);
	for (size_t i = 0; i < ret->edits_n; i++) {
		ret->deleted += ret->edits[i].old_n;
		ret->added += ret->edits[i].new_n;
	}
	return r;
}

void linediff_done(struct linediff *d)
{
	free(d->lines[0]);
	free(d->lines[1]);
	free(d->edits);
	*d = (struct linediff){0};
}

/* --- the unified form --- */

struct writing {
	const struct linediff *d;
	linediff_fn fn;
	void *user;
};

static int put(const struct writing *w, enum linediff_mark mark, int side, size_t at, size_t n)
{
	int r = 0;

	for (size_t i = at; r == 0 && i < at + n; i++) {
		struct str line = w->d->lines[side][i];
		bool whole = str_ends(line, STR("\n"));

		r = w->fn(mark, str_prefix(line, line.n - whole), !whole, w->user);
	}
	return r;
}

/* As in diff -u: a length of 1 is omitted, and an empty range gives the line before it. */
static int range(char *p, size_t size, size_t at, size_t n)
{
	return n == 1 ? snprintf(p, size, "%zu", at + 1)
		      : snprintf(p, size, "%zu,%zu", n ? at + 1 : at, n);
}

/* One hunk: the edits [first, last]. */
static int put_hunk(const struct writing *w, size_t first, size_t last, size_t context)
{
	const struct linediff_edit *a = &w->d->edits[first], *b = &w->d->edits[last];
	size_t lead = MIN(context, a->old_at), old_end = b->old_at + b->old_n;
	size_t tail = MIN(context, w->d->n[0] - old_end), at = a->old_at - lead;
	char text[120], old[48], new[48];
	int r;

	range(old, sizeof(old), at, old_end + tail - at);
	range(new, sizeof(new), a->new_at - lead, b->new_at + b->new_n + tail - (a->new_at - lead));
	snprintf(text, sizeof(text), "@@ -%s +%s @@", old, new);
	r = w->fn(LINEDIFF_HUNK, str_from(text), false, w->user);
	for (size_t i = first; r == 0 && i <= last; i++) {
		const struct linediff_edit *e = &w->d->edits[i];

		r = put(w, LINEDIFF_SAME, 0, at, e->old_at - at);
		if (r == 0)
			r = put(w, LINEDIFF_DELETED, 0, e->old_at, e->old_n);
		if (r == 0)
			r = put(w, LINEDIFF_ADDED, 1, e->new_at, e->new_n);
		at = e->old_at + e->old_n;
	}
	return r == 0 ? put(w, LINEDIFF_SAME, 0, at, tail) : r;
}

int linediff_unified(const struct linediff *d, size_t context, linediff_fn fn, void *user)
{
	const struct writing w = {d, fn, user};
	int r = 0;

	for (size_t i = 0, last; r == 0 && i < d->edits_n; i = last + 1) {
		for (last = i; last + 1 < d->edits_n; last++)
			if (d->edits[last + 1].old_at -
					(d->edits[last].old_at + d->edits[last].old_n) >
				2 * context)
				break;
		r = put_hunk(&w, i, last, context);
	}
	return r;
}
