/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: both sides are looked at, the table decides for each path, and then what was
 * deleted there is deleted here (what is in a directory before the directory), and what is new or
 * changed there is taken (a directory before what is in it). The state changes with each path,
 * after the path. If a pull is killed and the old state is read again, what was taken has changed
 * on both sides, and is found to be alike. */
#include "sync/internal.h"

enum { ARCHIVE_LEAST = 8 };

/* The place there may have been lost with all that was in it, and another one made. Nobody wants
 * that to be repeated here. */
static bool is_lost(const struct sync *s)
{
	for (size_t i = 0; s->listed == 0 && i < s->n; i++)
		if (s->nodes[i]->before.type != SYNC_ABSENT)
			return true;
	return false;
}

/* Whether a path is the person's alone. */
static bool is_own(const struct sync *s, const char *path)
{
	char *const *own = s->o->own;

	while (own && *own && strcmp(path, *own) != 0 && !sync_is_below(path, *own))
		own++;
	return own && *own;
}

/* Whether this would change something here. */
static bool pull_is_change(uint8_t action)
{
	return action == SYNC_TAKE || action == SYNC_RESTORE || action == SYNC_COMPARE ||
	       action == SYNC_DELETE;
}

static int pull_decide(struct sync *s, struct cloche_err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		struct sync_node *n = s->nodes[i];
		enum sync_side here;
		int r = n->blind ? 0 : here_side(s, n, &here);

		sync_pulse(s);
		if (r < 0)
			return err_sys(err, -r, "compare the directory with its copy");
		if (n->blind)
			continue;
		n->action = (uint8_t)sync_decide_pull(here, there_side(n, true));
		if (pull_is_change(n->action) && is_own(s, n->path)) {
			n->action = SYNC_DO_NOTHING;
			sync_tell(s, SYNC_OWN, n->path, NULL);
		}
		if (n->action == SYNC_KEEP)
			sync_tell(s, SYNC_KEPT, n->path, NULL);
		if (n->action == SYNC_KEEP || n->action == SYNC_FORGET)
			n->before.type = SYNC_ABSENT;
	}
	return 0;
}

static int pull_delete(struct sync *s, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = s->n; r == 0 && i > 0; i--)
		if (!s->nodes[i - 1]->blind && s->nodes[i - 1]->action == SYNC_DELETE)
			r = take_deletion(s, s->nodes[i - 1], err);
	return r;
}

static bool is_taken(const struct sync_node *n)
{
	return !n->blind &&
	       (n->action == SYNC_TAKE || n->action == SYNC_RESTORE || n->action == SYNC_COMPARE);
}

/* Whether it is a new directory with many files. */
static bool is_archive(const struct sync *s, size_t at, size_t end)
{
	const struct sync_node *n = s->nodes[at];
	size_t files = 0;

	if (s->o->what != SYNC_ALL || n->action != SYNC_TAKE || n->before.type != SYNC_ABSENT ||
		n->there.type != SYNC_DIRECTORY)
		return false;
	for (size_t i = at; i < end; i++)
		files += is_taken(s->nodes[i]) && s->nodes[i]->there.type == SYNC_FILE;
	return files >= ARCHIVE_LEAST;
}

static int pull_take(struct sync *s, struct cloche_err *err)
{
	size_t archived = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		struct sync_node *n = s->nodes[i];
		size_t end;

		if (!is_taken(n))
			continue;
		r = take_node(s, n, err);
		if (r < 0 || n->there.type != SYNC_DIRECTORY || i < archived)
			continue;
		end = sync_end_of(s, i);
		if (!is_archive(s, i, end))
			continue;
		r = take_archive(s, i, end, err);
		archived = end;
	}
	return r;
}

static int pull_change(struct sync *s, struct cloche_err *err)
{
	int r = pull_delete(s, err), settled;

	if (r == 0)
		r = pull_take(s, err);
	settled = take_settle(s, r < 0 ? NULL : err);
	return r < 0 ? r : settled;
}

int sync_pull(cloche_files *f, int dir, const struct sync_options *o, struct sync_state *state,
	struct sync_report *report, struct cloche_err *err)
{
	struct sync s;
	int r;

	if (o->what == SYNC_NONE)
		return 0;
	if (state->phase != SYNC_WHOLE)
		return err_set(err, E_USAGE, "there is no copy: the first push has not ended");
	sync_begin(&s, f, dir, o, state, report);
	r = here_scan(&s, err);
	if (r == 0)
		r = there_scan(&s, err);
	if (r == 0)
		r = sync_sort(&s, err);
	if (r == 0 && is_lost(&s))
		r = err_set(err, E_NOT_FOUND,
			"the copy is empty: it seems to be lost, so nothing is deleted here");
	if (r == 0)
		r = pull_decide(&s, err);
	if (r == 0)
		r = pull_change(&s, err);
	sync_end(&s);
	return r;
}
