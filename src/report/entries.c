/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the log is read three times (internal.h). Rows come in the order of the log,
 * with requests among them by their time, and are written at once. Memory holds only the files and
 * commands of internal.h, one entry and one piece of output. */
#include "record/oplog.h"
#include "report/internal.h"

enum { VALUE = 400 };

/* Variables and the storage. */
static void draw_set(struct report *r, const struct state_op *op)
{
	row_begin_plain(r, ROW_OTHER, op->usec);
	html_constant(&r->html, state_op_name(op->kind));
	if (op->subject.p) {
		HTML(&r->html, " <code>");
		html_text(&r->html, op->subject, HTML_LINE);
		HTML(&r->html, "</code>");
	}
	if (op->object.p) {
		size_t n = report_take(r, MIN(op->object.n, (size_t)VALUE));

		HTML(&r->html, " = <code>");
		html_text(&r->html, text_prefix(op->object, n), HTML_LINE);
		html_constant(&r->html, n < op->object.n ? " ...</code>" : "</code>");
	}
	row_end_plain(r);
}

static int draw_sandbox(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct str why = json_str_at(op->args, "error");
	bool is_start = op->kind == STATE_SANDBOX_START;

	row_begin(r, ROW_OTHER, why.n > 0, false, op->usec);
	if (is_start) {
		HTML(&r->html, "sandbox ");
		html_text(&r->html, json_str_at(op->args, "id"), HTML_LINE);
	} else {
		HTML(&r->html, "end of the sandbox: ");
		html_text(&r->html, json_str_at(op->args, "reason"), HTML_LINE);
		if (why.n) {
			HTML(&r->html, " <small class=r>");
			html_text(&r->html, why, HTML_LINE);
			HTML(&r->html, "</small>");
		}
	}
	row_body(r);
	draw_json(r, op->args);
	row_end(r);
	return 0;
}

static int draw_skip(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct cloche_err unknown = CLOCHE_ERR_INIT;
	struct tree_node *n;

	row_begin_plain(
		r, report_is_own(r, json_str_at(op->args, "path")) ? ROW_OWN : ROW_FILE, op->usec);
	HTML(&r->html, "not on record <code>");
	html_text(&r->html, json_str_at(op->args, "path"), HTML_LINE);
	HTML(&r->html, "</code> <small class=r>");
	draw_size(&r->html, json_count_at(op->args, "size"));
	HTML(&r->html, ", ");
	html_text(&r->html, json_str_at(op->args, "why"), HTML_LINE);
	HTML(&r->html, "</small>");
	row_end_plain(r);
	/* What comes next is not compared with what was there before. */
	return tree_take_skip(&r->files, op, &n, &unknown) == -E_NO_MEMORY ? err_nomem(err) : 0;
}

static int draw_outcome(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	struct str outcome = json_str_at(op->args, "outcome");

	row_begin(r, ROW_AGENT, !str_eq(outcome, STR("success")), false, op->usec);
	HTML(&r->html, "<b>outcome</b> ");
	html_text(&r->html, outcome, HTML_LINE);
	row_body(r);
	draw_json(r, op->args);
	row_end(r);
	return 0;
}

static const struct {
	enum state_op_kind kind;
	int (*fn)(struct report *r, const struct state_op *op, struct cloche_err *err);
} drawers[] = {
	{STATE_SANDBOX_START, draw_sandbox},
	{STATE_SANDBOX_END, draw_sandbox},
	{STATE_EXEC_START, draw_command},
	{STATE_EXEC_END, draw_command},
	{STATE_CODE_CALL, draw_call},
	{STATE_AGENT_END, draw_outcome},
	{STATE_FS_SKIP, draw_skip},
};

static int draw_entry(struct report *r, const struct state_op *op, struct cloche_err *err)
{
	enum state_about about = state_op_about(op->kind);

	for (size_t i = 0; i < ARRAY_SIZE(drawers); i++)
		if (drawers[i].kind == op->kind)
			return drawers[i].fn(r, op, err);
	if (about == STATE_FILES)
		return draw_change(r, op, err);
	if (about == STATE_ENV || about == STATE_STORAGE) {
		draw_set(r, op);
	} else {
		row_begin_plain(r, ROW_OTHER, op->usec);
		html_constant(&r->html, op->kind == STATE_UNKNOWN
						? "an entry that this version does not know"
						: state_op_name(op->kind));
		row_end_plain(r);
	}
	return 0;
}

static int draw_one_entry(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct report *r = user;
	int e;

	if (op->kind == STATE_TABLES)
		return 0;
	r->offset = offset;
	if (op->kind == STATE_EXEC_START) {
		draw_there(r);
		r->has_begun = true;
	}
	e = op->usec ? draw_requests(r, op->usec, err) : 0;
	if (e < 0)
		return e;
	e = draw_entry(r, op, err);
	return e < 0 ? e : r->html.error < 0 ? 1 : 0;
}

static int write_page(struct report *r, struct cloche_err *err)
{
	int e;

	e = page_begin(r, err);
	if (e == 0)
		e = oplog_read_file(r->source->log, r->source->torn, draw_one_entry, r, err);
	if (e >= 0)
		draw_there(r);
	if (e >= 0)
		e = draw_requests(r, UINT64_MAX, err);
	rows_end(r);
	page_end(r);
	if (html_finish(&r->html) < 0 && e >= 0)
		e = err_sys(err, -r->html.error, "write the report");
	return e < 0 ? e : 0;
}

static int open_contents(void *user, struct str ref, struct cloche_err *err)
{
	const struct report *r = user;
	const struct report_source *from = r->source;

	return from->open(from->user, ref, err);
}

static bool is_changed(const struct tree_path *path, void *user)
{
	const struct report *r = user;
	const struct tree_node *n = tree_find(&r->changed, path);

	return n && n->mark[0];
}

int report_write(const struct report_source *source, int fd, struct cloche_err *err)
{
	struct report r = {.source = source,
		.html = HTML_INIT(fd),
		.work = 1000 * 1000 * 1000,
		.texts = REPORT_TEXTS,
		.there_names = BUF_INIT((size_t)(REPORT_NAMES + 1) * (STATE_PATH_MAX + 1))};
	int e;

	tree_init(&r.changed, NULL, NULL);
	tree_init(&r.files, open_contents, &r);
	r.files.max_kept = REPORT_KEPT;
	r.files.max_file = REPORT_MAX_DIFF;
	r.files.is_wanted = is_changed;
	r.files.is_wanted_user = &r;
	e = survey_make(&r, err);
	if (e == 0)
		e = write_page(&r, err);
	buf_done(&r.html.out);
	buf_done(&r.there_names);
	tree_done(&r.files);
	tree_done(&r.changed);
	survey_done(&r);
	return e;
}
