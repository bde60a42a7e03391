/* SPDX-License-Identifier: Apache-2.0 */
/* What an undo would do, or has done, name by name. */
#include "api/record/undo.h"
#include "base/fd.h"
#include "job/job.h"
#include "record/unified.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { UNDO_SHOWN_MAX = 1 << 20 };

JOB_ASK1(call_undo_fn, cloche_undo_fn, bool, false, const cloche_undo_step *)

/* Get the text that is there now. Return whether it is one. */
static bool undo_text_now(const struct undo_item *it, struct buf *ret)
{
	_cleanup_(undo_look_donep) struct undo_look l = UNDO_LOOK_NULL;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	char piece[4096];
	ssize_t n = 0;

	if (it->now == TREE_GONE)
		return true;
	if (it->now != TREE_FILE || undo_look(it, &l) < 0 || l.dir < 0)
		return false;
	fd = openat(l.dir, l.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_add_str(ret, str_make(piece, (size_t)n)) < 0)
			return false;
	return n == 0 && unified_is_text(buf_str(ret));
}

static bool undo_text_former(
	const struct cloche_undo *u, const struct undo_item *it, struct buf *ret)
{
	const struct tree_node *n = it->old == TREE_FILE ? undo_contents(u, it) : NULL;

	if (it->old == TREE_GONE)
		return true;
	return n && tree_contents(&u->was, n, ret, NULL) == 0 && unified_is_text(buf_str(ret));
}

/* Tell of one item; with_text: as it is planned, with the differences. */
static int undo_tell(struct cloche_undo *u, const struct undo_item *it, bool with_text,
	cloche_undo_fn fn, void *user, bool *ret_stopped)
{
	_cleanup_(buf_donep) struct buf now = BUF_INIT(UNDO_SHOWN_MAX),
					former = BUF_INIT(UNDO_SHOWN_MAX),
					hunks = BUF_INIT(8 * UNDO_SHOWN_MAX);
	cloche_undo_step step = {.state = it->why    ? CLOCHE_UNDO_KEPT
					  : it->done ? CLOCHE_UNDO_DONE
						     : CLOCHE_UNDO_PLANNED,
		.kind = it->kind,
		.directory = it->top->source,
		.name = it->path,
		.name_length = strlen(it->path),
		.why = it->why,
		.mode_only = it->mode && !it->contents};

	if (with_text && !it->why && it->contents && undo_text_now(it, &now) &&
		undo_text_former(u, it, &former)) {
		if (unified_write(&hunks, buf_str(&now), buf_str(&former)) < 0)
			return -ENOMEM;
		step.unified = buf_len(&hunks) ? buf_cstr(&hunks) : NULL;
	}
	*ret_stopped = !call_undo_fn(fn, &step, user);
	return 0;
}

static int undo_tell_all(struct cloche_undo *u, bool with_text, cloche_undo_fn fn, void *user,
	struct cloche_err *err)
{
	bool stopped = false;

	for (size_t i = 0; i < u->n && !stopped; i++)
		if (undo_tell(u, &u->items[i], with_text, fn, user, &stopped) < 0)
			return err_nomem(err);
	return 0;
}

int cloche_undo_run(
	cloche_undo *u, enum cloche_undo_how how, cloche_undo_fn fn, void *user, cloche_err *err)
{
	int r = how == CLOCHE_UNDO_DO ? undo_put_all(u, err) : undo_load(u, err);

	return r < 0 ? r : undo_tell_all(u, how == CLOCHE_UNDO_SHOW, fn, user, err);
}
