/* SPDX-License-Identifier: Apache-2.0 */
/* Files: those there from the start as one row, and each change as a diff against the earlier
 * contents in the log. */
#include "base/linediff.h"
#include "report/internal.h"

#include <errno.h>
#include <stdio.h>

enum { CONTEXT = 3, LOOK_FOR_NUL = 8000 };

/* One side of a change. */
struct side {
	struct content content;
	struct buf known; /* what the log says of it */
	struct str text;
	bool is_text; /* can be compared */
	bool is_unknown;
};
#define SIDE_INIT ((struct side){.content = CONTENT_INIT, .known = BUF_INIT(REPORT_MAX_DIFF)})

static void side_donep(struct side *s)
{
	content_done(&s->content);
	buf_done(&s->known);
}

static bool is_plain_text(struct str text)
{
	size_t n = MIN(text.n, (size_t)LOOK_FOR_NUL);

	return str_chr(str_prefix(text, n), '\0') == n;
}

static int side_load(
	struct side *s, struct report *r, struct str text, bool is_ref, struct cloche_err *err)
{
	int e = content_of(&s->content, r->source, text, is_ref, err);

	if (e < 0 || s->content.is_missing || s->content.size > REPORT_MAX_DIFF)
		return e;
	s->text = content_read(&s->content, 0, (size_t)s->content.size);
	s->is_text = s->text.n == s->content.size && is_plain_text(s->text);
	return 0;
}

/* Get what a file had, if that is known. Return 1 if it is not. */
static int side_recall(
	struct side *s, struct report *r, const struct tree_node *n, struct cloche_err *err)
{
	int e = n && n->type == TREE_FILE ? tree_contents(&r->files, n, &s->known, err) : 1;

	if (e != 0) {
		if (e != -E_NO_MEMORY && e < 0)
			err_clear(err);
		return e == -E_NO_MEMORY ? e : 1;
	}
	s->text = buf_str(&s->known);
	s->is_text = is_plain_text(s->text);
	return 0;
}

/* --- a diff --- */

struct drawing {
	struct report *r;
	enum linediff_mark mark; /* of the open element */
	bool is_open;
	size_t left; /* bytes that may be shown */
	uint64_t left_out;
};

static void open_mark(struct drawing *d, enum linediff_mark mark)
{
	static const char *const begins[] = {"<b>", "", "<del>", "<ins>"};
	static const char *const ends[] = {"</b>", "", "</del>", "</ins>"};

	if (d->is_open)
		html_constant(&d->r->html, ends[d->mark]);
	d->is_open = mark != LINEDIFF_SAME;
	d->mark = mark;
	html_constant(&d->r->html, begins[mark]);
}

static int draw_line(enum linediff_mark mark, struct str line, bool cut, void *user)
{
	static const char *const signs[] = {"", " ", "-", "+"};
	struct drawing *d = user;
	struct html *h = &d->r->html;

	if (d->left < line.n + 2) {
		d->left = 0;
		d->left_out++;
		return 0;
	}
	d->left -= line.n + 2;
	if (mark != d->mark || mark == LINEDIFF_HUNK)
		open_mark(d, mark);
	html_constant(h, signs[mark]);
	html_text(h, line, HTML_TEXT);
	HTML(h, "\n");
	if (cut)
		HTML(h, "\\ No newline at end of file\n");
	return h->error;
}

static void draw_diff(struct report *r, const struct linediff *diff)
{
	struct drawing d = {.r = r, .mark = LINEDIFF_SAME};

	d.left = report_take(r, (size_t)2 * REPORT_PIECE);
	HTML(&r->html, "<pre class=d>\n");
	(void)linediff_unified(diff, CONTEXT, draw_line, &d);
	open_mark(&d, LINEDIFF_SAME);
	HTML(&r->html, "</pre>");
	r->texts += d.left;
	if (d.left_out) {
		HTML(&r->html, "<p><i>");
		html_number(&r->html, d.left_out);
		HTML(&r->html, " more lines are not shown here.</i></p>");
	}
}

/* --- rows --- */

static void draw_path(struct report *r, const char *verb, struct str path)
{
	html_constant(&r->html, verb);
	HTML(&r->html, " <code>");
	html_text(&r->html, path, HTML_LINE);
	HTML(&r->html, "</code>");
}

static void draw_whose(struct report *r, const struct state_op *op)
{
	if (op->exec)
		draw_exec(&r->html, op->exec);
}

static void draw_counts(struct report *r, const struct linediff *diff)
{
	HTML(&r->html, " <small class=r>+");
	html_number(&r->html, diff->added);
	HTML(&r->html, " -");
	html_number(&r->html, diff->deleted);
	HTML(&r->html, "</small>");
}

static enum row_kind kind_of(const struct report *r, const struct state_op *op)
{
	return report_is_own(r, op->subject) ? ROW_OWN : ROW_FILE;
}

static void draw_change_row(
	struct report *r, const struct state_op *op, const char *verb, const struct linediff *diff)
{
	row_begin(r, kind_of(r, op), false, r->is_on_top && r->opens, op->usec);
	draw_path(r, verb, op->subject);
	draw_whose(r, op);
	draw_counts(r, diff);
	row_body(r);
	draw_diff(r, diff);
	row_end(r);
}

/* Show the size if the contents cannot be compared. */
static void draw_size_row(
	struct report *r, const struct state_op *op, const char *verb, const struct side *after)
{
	row_begin_plain(r, kind_of(r, op), op->usec);
	draw_path(r, verb, op->subject);
	draw_whose(r, op);
	HTML(&r->html, " <small class=r>");
	if (after->is_unknown) {
		HTML(&r->html, "not shown here");
	} else if (after->content.is_missing) {
		HTML(&r->html, "its contents are not beside the log");
	} else {
		draw_size(&r->html, after->content.size);
		if (!after->is_text && after->content.size <= REPORT_MAX_DIFF)
			HTML(&r->html, ", binary");
	}
	HTML(&r->html, "</small>");
	row_end_plain(r);
}

static void draw_plain_row(struct report *r, const struct state_op *op, const char *verb)
{
	row_begin_plain(r, kind_of(r, op), op->usec);
	draw_path(r, verb, op->subject);
	if (op->object.n) {
		HTML(&r->html, " to <code>");
		html_text(&r->html, op->object, HTML_LINE);
		HTML(&r->html, "</code>");
	}
	if (op->mode != STATE_NO_MODE) {
		char text[8];

		snprintf(text, sizeof(text), "%04o", op->mode & 07777U);
		HTML(&r->html, " <small>");
		html_constant(&r->html, text);
		HTML(&r->html, "</small>");
	}
	draw_whose(r, op);
	row_end_plain(r);
}

/* --- operations --- */

static int compare(struct report *r, const struct state_op *op, const char *verb,
	const struct side *before, const struct side *after, struct cloche_err *err)
{
	_cleanup_(linediff_donep) struct linediff diff = {0};
	int e = before->is_text && after->is_text
			? linediff_init(&diff, before->text, after->text, &r->work)
			: -E2BIG;

	if (e == -ENOMEM)
		return err_nomem(err);
	if (e == 0)
		draw_change_row(r, op, verb, &diff);
	else
		draw_size_row(r, op, verb, after);
	return 0;
}

static int draw_write(struct report *r, const struct state_op *op, const struct tree_node *n,
	bool is_new, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	int e = side_load(&after, r, op->object, op->is_ref, err);

	if (e == 0)
		e = side_recall(&before, r, n, err);
	if (e == 1)
		before.is_text = is_new;
	return e < 0 ? e : compare(r, op, tree_verb(op->kind, is_new), &before, &after, err);
}

/* Whether what is known of a file can be had without reading what is beside the log: a log may
 * append to it very often. */
static bool is_at_hand(const struct tree_node *n)
{
	const struct tree_piece *p = n ? n->first : NULL;

	while (p && !p->is_ref)
		p = p->next;
	return n && n->type == TREE_FILE && !p;
}

static int draw_append(struct report *r, const struct state_op *op, const struct tree_node *n,
	bool is_new, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	int e = side_load(&after, r, op->object, op->is_ref, err), known = 1;

	if (e == 0 && !op->is_ref && is_at_hand(n))
		known = side_recall(&before, r, n, err);
	if (known < 0)
		return known;
	if (known == 0 && buf_add_str(&after.known, before.text) == 0 &&
		buf_add_str(&after.known, op->object) == 0) {
		after.text = buf_str(&after.known);
	} else {
		/* Only what is added can be shown. */
		before.text = STR_NULL;
		before.is_text = true;
	}
	return e < 0 ? e : compare(r, op, tree_verb(op->kind, is_new), &before, &after, err);
}

static int draw_delete(struct report *r, const struct state_op *op, const struct tree_node *n,
	bool is_new, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	size_t below = n ? tree_count(n) : 0;
	int e = side_recall(&before, r, n, err);

	after.is_text = true;
	if (e < 0)
		return e;
	if (e == 0 && before.is_text)
		return compare(r, op, tree_verb(op->kind, false), &before, &after, err);
	row_begin_plain(r, kind_of(r, op), op->usec);
	draw_path(r, tree_verb(op->kind, false), op->subject);
	draw_whose(r, op);
	if (below) {
		HTML(&r->html, " <small class=r>with ");
		html_number(&r->html, below);
		HTML(&r->html, " names below it</small>");
	}
	row_end_plain(r);
	return 0;
}

static int draw_unpack(struct report *r, const struct state_op *op, const struct tree_node *n,
	bool is_new, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side after = SIDE_INIT;
	int e = content_of(&after.content, r->source, op->object, true, err);

	if (e == 0) {
		after.is_text = true;
		draw_size_row(r, op, tree_verb(op->kind, is_new), &after);
	}
	return e;
}

/* A link is drawn as what it leads to. */
static int side_of(
	struct side *s, struct report *r, const struct tree_node *n, struct cloche_err *err)
{
	int e;

	if (!n) {
		s->is_text = true;
		return 0;
	}
	e = tree_contents(&r->files, n, &s->known, err);
	if (e < 0 && e != -E_NO_MEMORY) {
		err_clear(err);
		e = 1;
	}
	s->is_unknown = e == 1;
	s->text = buf_str(&s->known);
	s->content.size = s->text.n;
	s->is_text = e == 0 && is_plain_text(s->text);
	return MIN(e, 0);
}

int draw_difference(struct report *r, struct str path, const struct tree_node *was,
	const struct tree_node *is, bool only_mode, bool is_open, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	const struct state_op op = {.subject = path, .mode = STATE_NO_MODE};
	const char *verb = !was ? "new" : !is ? "delete" : only_mode ? "set the mode of" : "change";
	int e = side_of(&before, r, was, err);

	if (e == 0)
		e = side_of(&after, r, is, err);
	r->opens = is_open;
	return e < 0 ? e : compare(r, &op, verb, &before, &after, err);
}

/* --- what was there from the start --- */

static void note_there(struct report *r, const struct state_op *op)
{
	if (!(tree_traits(op->kind) & TREE_WHOLE))
		return;
	r->there++;
	if (r->there <= REPORT_NAMES && (buf_add_str(&r->there_names, op->subject) < 0 ||
						buf_add_char(&r->there_names, '\0') < 0))
		r->html.error = -ENOMEM;
}

void draw_there(struct report *r)
{
	struct str names = buf_str(&r->there_names);

	if (r->there == 0)
		return;
	row_begin(r, ROW_FILE, false, false, r->survey.start_usec);
	html_number(&r->html, r->there);
	HTML(&r->html, " files were there before the first command");
	row_body(r);
	HTML(&r->html, "<pre>\n");
	while (names.n) {
		struct str name = str_prefix(names, str_chr(names, '\0'));

		html_text(&r->html, name, HTML_LINE);
		HTML(&r->html, "\n");
		names = str_from_index(names, name.n + 1);
	}
	if (r->there > REPORT_NAMES) {
		HTML(&r->html, "<i>and ");
		html_number(&r->html, r->there - REPORT_NAMES);
		HTML(&r->html, " more</i>");
	}
	HTML(&r->html, "</pre>");
	row_end(r);
	r->there = 0;
}

static const struct {
	unsigned traits;
	int (*fn)(struct report *r, const struct state_op *op, const struct tree_node *n,
		bool is_new, struct cloche_err *err);
} drawers[] = {
	{TREE_WHOLE, draw_write},
	{TREE_ADDS, draw_append},
	{TREE_REMOVES, draw_delete},
	{TREE_ARCHIVE, draw_unpack},
};

int draw_operation(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct tree_path path;
	bool known = tree_path_make(&path, op->subject);
	const struct tree_node *n = known ? tree_find(&r->files, &path) : NULL;
	bool is_new = !known || tree_type_of(&r->files, &path) <= TREE_GONE;

	for (size_t i = 0; i < ARRAY_SIZE(drawers); i++)
		if (tree_traits(op->kind) & drawers[i].traits)
			return drawers[i].fn(r, op, n, is_new, err);
	draw_plain_row(r, op, tree_verb(op->kind, is_new));
	return 0;
}

int draw_change(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct cloche_err unknown = CLOCHE_ERR_INIT;
	int e = 0;

	if (r->survey.has_there && !r->has_begun && op->exec == 0)
		note_there(r, op);
	else if (!timeline_has(r, op, r->offset))
		e = draw_operation(r, op, err);
	/* What does not fit into the tree is not known. What an archive has is not looked at: a log
	 * may name a large one often. */
	if (e == 0 && !(tree_traits(op->kind) & TREE_ARCHIVE) &&
		tree_take(&r->files.taker, op, &unknown) == -E_NO_MEMORY)
		return err_nomem(err);
	return e;
}
