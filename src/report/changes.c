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
	struct str text;
	bool is_text; /* can be compared */
};
#define SIDE_INIT ((struct side){.content = CONTENT_INIT})

static void side_donep(struct side *s)
{
	content_done(&s->content);
}

static int side_load(
	struct side *s, struct report *r, struct str text, bool is_ref, struct cloche_err *err)
{
	int e = content_of(&s->content, r->source, text, is_ref, err);

	if (e < 0 || s->content.is_missing || s->content.size > REPORT_MAX_DIFF)
		return e;
	s->text = content_read(&s->content, 0, (size_t)s->content.size);
	s->is_text =
		s->text.n == s->content.size && str_chr(str_prefix(s->text, LOOK_FOR_NUL), '\0') ==
							MIN(s->text.n, (size_t)LOOK_FOR_NUL);
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

static void draw_change_row(
	struct report *r, const struct state_op *op, const char *verb, const struct linediff *diff)
{
	row_begin(r, ROW_FILE, false, false, op->usec);
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
	row_begin_plain(r, ROW_FILE, op->usec);
	draw_path(r, verb, op->subject);
	draw_whose(r, op);
	HTML(&r->html, " <small class=r>");
	if (after->content.is_missing) {
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
	row_begin_plain(r, ROW_FILE, op->usec);
	draw_path(r, verb, op->subject);
	if (op->object.n && (op->kind == STATE_FS_RENAME || op->kind == STATE_FS_SYMLINK)) {
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

static int draw_write(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	struct file *f = files_add(&r->files, op->subject);
	bool is_new = !f || f->type == FILE_NONE;
	const char *verb = op->kind == STATE_ASSETS_UPLOAD ? "upload" : is_new ? "new" : "change";
	int e = side_load(&after, r, op->object, op->is_ref, err);

	if (e == 0 && f && f->data)
		e = side_load(&before, r, file_text(f), f->is_ref, err);
	else
		before.is_text = is_new;
	if (e == 0)
		e = compare(r, op, verb, &before, &after, err);
	if (f)
		files_set(&r->files, f, FILE_REGULAR, op->is_ref, op->object);
	return e;
}

static int draw_append(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	_cleanup_(buf_donep) struct buf joined = BUF_INIT(REPORT_MAX_DIFF);
	struct file *f = files_add(&r->files, op->subject);
	int e = side_load(&after, r, op->object, op->is_ref, err);

	if (e == 0 && f && f->data && !f->is_ref && !op->is_ref &&
		buf_add_str(&joined, file_text(f)) == 0 && buf_add_str(&joined, op->object) == 0) {
		e = side_load(&before, r, file_text(f), false, err);
		after.text = buf_str(&joined);
	} else {
		buf_clear(&joined);
		before.is_text = true;
	}
	if (e == 0)
		e = compare(r, op, "append to", &before, &after, err);
	if (f && buf_len(&joined))
		files_set(&r->files, f, FILE_REGULAR, false, buf_str(&joined));
	else if (f)
		/* Its full contents are no longer known. */
		files_set(&r->files, f, FILE_REGULAR, false, STR_NULL);
	return e;
}

static int draw_delete(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side before = SIDE_INIT, after = SIDE_INIT;
	struct file *f = files_find(&r->files, op->subject);
	uint32_t live = f ? f->live : 0;
	int e = 0;

	if (f && f->data)
		e = side_load(&before, r, file_text(f), f->is_ref, err);
	after.is_text = true;
	if (e < 0)
		return e;
	if (f && f->data && before.is_text) {
		e = compare(r, op, "delete", &before, &after, err);
	} else {
		row_begin_plain(r, ROW_FILE, op->usec);
		draw_path(r, "delete", op->subject);
		draw_whose(r, op);
		if (live) {
			HTML(&r->html, " <small class=r>with ");
			html_number(&r->html, live);
			HTML(&r->html, " names below it</small>");
		}
		row_end_plain(r);
	}
	if (f)
		files_remove(&r->files, f);
	return e;
}

static int draw_unpack(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(side_donep) struct side after = SIDE_INIT;
	int e = content_of(&after.content, r->source, op->object, true, err);

	if (e == 0) {
		after.is_text = true;
		draw_size_row(r, op, "unpack an archive into", &after);
	}
	return e;
}

static int draw_rename(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct file *from = files_find(&r->files, op->subject), *to;

	draw_plain_row(r, op, "rename");
	to = from ? files_add(&r->files, op->object) : files_find(&r->files, op->object);
	if (from && to)
		files_move(&r->files, from, to);
	else if (to)
		files_remove(&r->files, to);
	return 0;
}

/* --- what was there from the start --- */

static enum file_type type_made(enum state_op_kind kind)
{
	return kind == STATE_FS_MKDIR     ? FILE_DIRECTORY
	       : kind == STATE_FS_SYMLINK ? FILE_LINK
					  : FILE_REGULAR;
}

static void note_there(struct report *r, const struct state_op *op)
{
	struct file *f = files_add(&r->files, op->subject);

	if (op->kind == STATE_FS_DELETE) {
		if (f)
			files_remove(&r->files, f);
		return;
	}
	if (f)
		files_set(&r->files, f, type_made(op->kind), op->is_ref, op->object);
	if (op->kind != STATE_FS_WRITE)
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

/* A directory, or a link. */
static int draw_made(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct file *f = files_add(&r->files, op->subject);

	if (f)
		files_set(&r->files, f, type_made(op->kind), false, STR_NULL);
	draw_plain_row(r, op, op->kind == STATE_FS_MKDIR ? "make directory" : "link");
	return 0;
}

static int draw_mode(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	draw_plain_row(r, op, "mode of");
	return 0;
}

static const struct {
	enum state_op_kind kind;
	int (*fn)(struct report *r, const struct state_op *op, struct cloche_err *err);
} drawers[] = {
	{STATE_FS_WRITE, draw_write},
	{STATE_ASSETS_UPLOAD, draw_write},
	{STATE_FS_APPEND, draw_append},
	{STATE_FS_DELETE, draw_delete},
	{STATE_FS_UNPACK, draw_unpack},
	{STATE_FS_RENAME, draw_rename},
	{STATE_FS_MKDIR, draw_made},
	{STATE_FS_SYMLINK, draw_made},
	{STATE_FS_CHMOD, draw_mode},
};
_Static_assert(ARRAY_SIZE(drawers) == STATE_FILES_OPS, "an operation on files has no row");

int draw_change(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	if (r->survey.has_there && !r->has_begun && op->exec == 0) {
		note_there(r, op);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(drawers); i++)
		if (drawers[i].kind == op->kind)
			return drawers[i].fn(r, op, err);
	return 0;
}
