/* SPDX-License-Identifier: Apache-2.0 */
/* What stands on top: what was asked, what came out, how the workspace differs from before, and
 * what the network refused. The log is read once more for the two states of the files. */
#include "record/oplog.h"
#include "report/internal.h"

#include <utlist.h>

enum { SUMMARY_FILES = 100, SUMMARY_OPEN = 3, SUMMARY_KEPT = REPORT_KEPT / 2 };

struct summary {
	struct report *r;
	struct tree was, is;
	bool has_begun;
	uint64_t files, of_git;
};

/* Whether it is how git keeps commits. */
static bool summary_is_of_git(struct str path)
{
	struct tree_path p;
	struct str rest, name;

	if (!tree_path_make(&p, path))
		return false;
	rest = tree_path_str(&p);
	while (tree_path_next(&rest, &name))
		if (str_eq(name, STR("/.git")) || str_eq(name, STR(".git")))
			return true;
	return false;
}

static int summary_take(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct cloche_err unknown = CLOCHE_ERR_INIT;
	struct summary *s = user;
	struct tree_node *n;
	int e = 0;

	s->has_begun |= op->kind == STATE_EXEC_START || op->exec;
	if (op->kind == STATE_FS_SKIP) {
		e = s->has_begun ? 0 : tree_take_skip(&s->was, op, &n, &unknown);
		if (e != -E_NO_MEMORY)
			e = tree_take_skip(&s->is, op, &n, &unknown);
		return e == -E_NO_MEMORY ? err_nomem(err) : 0;
	}
	if (state_op_about(op->kind) != STATE_FILES || tree_traits(op->kind) & TREE_ARCHIVE)
		return 0;
	if (!s->has_begun)
		e = tree_take(&s->was.taker, op, &unknown);
	if (e != -E_NO_MEMORY)
		e = tree_take(&s->is.taker, op, &unknown);
	return e == -E_NO_MEMORY ? err_nomem(err) : 0;
}

static bool summary_is_there(const struct tree_node *n)
{
	return n->type == TREE_FILE || n->type == TREE_LINK;
}

/* Draw a file if it differs, or count it. */
static int summary_draw_file(struct summary *s, const struct tree_node *is, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(4 * STATE_PATH_MAX);
	const struct tree_node *was = is->other;
	bool gone = !summary_is_there(is), is_new = !summary_is_there(was);
	int same;

	if (gone && is_new)
		return 0;
	same = gone || is_new || was->type != is->type ? 0 : tree_is_same(&s->is, was, is, err);
	if (same < 0)
		err_clear(err);
	if (same == -E_NO_MEMORY || tree_path_of(is, &path) < 0)
		return err_nomem(err);
	if ((same > 0 && was->mode == is->mode) || report_is_own(s->r, buf_str(&path)))
		return 0;
	if (summary_is_of_git(buf_str(&path))) {
		s->of_git++;
		return 0;
	}
	s->files++;
	if (s->files > SUMMARY_FILES)
		return 0;
	return draw_difference(s->r, buf_str(&path), is_new ? NULL : was, gone ? NULL : is,
		same > 0, s->r->survey.changed_files <= SUMMARY_OPEN, err);
}

static int summary_by_name(const struct tree_node *a, const struct tree_node *b)
{
	return str_compare(tree_name(a), tree_name(b));
}

static int summary_draw_files(struct summary *s, struct cloche_err *err)
{
	int e = tree_pair(&s->was, &s->is, err);

	if (e == 0)
		e = tree_pair(&s->is, &s->was, err);
	for (size_t i = 0; i < ARRAY_SIZE(s->is.tops); i++)
		for (struct tree_node *n = s->is.tops[i]; e == 0 && n;
			n = tree_next(n, s->is.tops[i])) {
			DL_SORT(n->children, summary_by_name);
			e = summary_draw_file(s, n, err);
		}
	return e;
}

static void summary_draw_rest(const struct summary *s)
{
	struct html *h = &s->r->html;

	if (s->files == 0 && s->of_git == 0)
		return;
	HTML(h, "<p class=k>");
	if (s->files > SUMMARY_FILES) {
		html_number(h, s->files - SUMMARY_FILES);
		HTML(h, " more files are below. ");
	}
	if (s->of_git) {
		html_number(h, s->of_git);
		HTML(h, " of git's own files changed.");
	}
	HTML(h, "</p>\n");
}

static int summary_draw_changes(struct report *r, struct cloche_err *err)
{
	struct summary s = {.r = r};
	struct tree *trees[] = {&s.was, &s.is};
	int e;

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		tree_init(trees[i], r->files.taker.open, r->files.taker.open_user);
		trees[i]->max_kept = SUMMARY_KEPT;
		trees[i]->max_file = REPORT_MAX_DIFF;
		trees[i]->sums = true;
		trees[i]->is_wanted = r->files.is_wanted;
		trees[i]->is_wanted_user = r->files.is_wanted_user;
	}
	e = oplog_read_file(r->source->log, r->source->torn, summary_take, &s, err);
	if (e >= 0) {
		HTML(&r->html, "<h2>Changed</h2>\n");
		e = summary_draw_files(&s, err);
		summary_draw_rest(&s);
	}
	tree_done(&s.was);
	tree_done(&s.is);
	return MIN(e, 0);
}

static void summary_draw_said(struct report *r, const char *title, const char *text)
{
	if (!text || !*text)
		return;
	HTML(&r->html, "<h2>");
	html_constant(&r->html, title);
	HTML(&r->html, "</h2>\n<div class=say>");
	draw_text(r, str_from(text));
	HTML(&r->html, "</div>\n");
}

static void summary_draw_refusals(struct report *r)
{
	struct html *h = &r->html;

	if (r->survey.refused == 0)
		return;
	HTML(h, "<h2><mark>Refused</mark></h2>\n<ul>");
	for (size_t i = 0; i < r->survey.refusals_n; i++) {
		const struct refusal *one = &r->survey.refusals[i];

		HTML(h, "<li><code>");
		html_text(h, str_from(one->what), HTML_LINE);
		HTML(h, "</code> ");
		html_text(h, str_from(one->why), HTML_LINE);
		if (one->times > 1) {
			HTML(h, ", ");
			html_number(h, one->times);
			HTML(h, " times");
		}
		HTML(h, "</li>\n");
	}
	if (r->survey.refusals_n == REPORT_REFUSALS)
		HTML(h, "<li>... more are below</li>\n");
	HTML(h, "</ul>\n");
}

int summary_draw(struct report *r, struct cloche_err *err)
{
	int e = 0;

	summary_draw_said(r, "Asked", r->survey.prompt);
	summary_draw_said(r, "Answer", r->survey.answer);
	r->is_on_top = true;
	/* Without a first command there is no before. */
	if (r->survey.has_there && r->survey.changed_files > 0)
		e = summary_draw_changes(r, err);
	r->is_on_top = false;
	summary_draw_refusals(r);
	return e;
}
