/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the log is read once for what was run, and once each for the files before
 * the first command and at its end. Each is a tree in memory (record/tree.h) in which larger
 * contents are digests. Where the two differ, the run changed something: what is there now is
 * compared with both (undo_judge.c). If it is what the run left, it is to be put back, and nothing
 * else is touched. So it does not matter how far an earlier undo came.
 *
 * The record is complete only if it begins before the first command and has each entry: one that
 * was compacted has lost what later entries overwrote. What the first look could not see is not
 * known to have been missing, so it is neither removed nor overwritten. */
#include "api/record/undo.h"
#include "api/instance/made.h"
#include "fs/fs.h"
#include "ipc/statedir.h"
#include "workspace/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { HELD_MAX = 64 << 20, HELD_FILE_MAX = STATE_DATA_MAX, CONTENTS_MAX = 256 << 20 };

/* --- what was run --- */

/* Whether it is the home of an agent: its logins and its history are no part of the workspace. */
static bool undo_is_home(const char *path)
{
	_cleanup_(freep) char *homes = NULL;

	return statedir_path("homes", &homes, NULL) == 0 && fs_is_within(path, homes);
}

static int undo_add_top(struct cloche_undo *u, const json_t *mount, struct cloche_err *err)
{
	struct str source = json_str_at(mount, "source"), target = json_str_at(mount, "target");
	struct undo_top *top = &u->tops[u->tops_n];
	int fd;

	if (!source.p || !target.p)
		return 0;
	*top = (struct undo_top){.fd = -1, .source = str_dup(source), .target = str_dup(target)};
	u->tops_n++;
	if (!top->source || !top->target)
		return err_nomem(err);
	if (json_is_true(json_object_get(mount, "read_only")) || undo_is_home(top->source))
		return 0;
	fd = fs_open_beneath(AT_FDCWD, top->source, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		top->fd = fd;
	else
		top->error = -fd;
	return 0;
}

/* Keep what the sandbox was made with: the directories of the host. */
static int undo_take_start(struct cloche_undo *u, const struct state_op *op, struct cloche_err *err)
{
	const json_t *config = json_object_get(op->args, "config");
	const json_t *mounts = json_object_get(config, "mounts");
	size_t n = json_array_size(mounts);
	int r = 0;

	if (u->tops)
		return 0;
	u->is_full = str_eq(json_str_at(config, "record"), STR("full"));
	u->tops = calloc(n + 1, sizeof(*u->tops));
	if (!u->tops)
		return err_nomem(err);
	for (size_t i = 0; r == 0 && u->is_full && i < n; i++)
		r = undo_add_top(u, json_array_get(mounts, i), err);
	return r;
}

static int undo_take_facts(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct cloche_undo *u = user;

	if (op->number != u->last + (op->kind != STATE_TABLES))
		u->is_gapped = true;
	/* Also if its start could not be put on record. */
	u->has_begun = u->has_begun || op->kind == STATE_EXEC_START || op->kind == STATE_EXEC_END ||
		       op->exec;
	if (!u->has_begun)
		u->start = op->number;
	u->last = op->number;
	u->has_end = op->kind == STATE_SANDBOX_END;
	return op->kind == STATE_SANDBOX_START ? undo_take_start(u, op, err) : 0;
}

static int undo_check(const struct cloche_undo *u, struct cloche_err *err)
{
	const char *id = u->log->id;

	if (!id[0])
		return err_set(err, E_USAGE, "a log that is a file says nothing of this machine");
	if (!u->is_full) {
		err_set(err, E_UNSUPPORTED,
			"%s was not recorded in full, so what was there before is not known", id);
		err_hint(err, "record the next run in full: cloche run --record full ...");
		return -E_UNSUPPORTED;
	}
	if (u->is_gapped) {
		err_set(err, E_UNSUPPORTED,
			"the log of %s was compacted, so what was there before is not on record",
			id);
		err_hint(err, "what is on record: cloche log %s", id);
		return -E_UNSUPPORTED;
	}
	return 0;
}

static int undo_check_ended(const cloche_oplog *log, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;

	if (!log->id[0] || cloche_instance_open(log->id, &instance, NULL) < 0 ||
		cloche_instance_refresh(instance, NULL) < 0 || instance->life != SANDBOX_LIVE)
		return 0;
	err_set(err, E_BUSY, "sandbox %s still runs, and may change more", log->id);
	err_hint(err, "stop it first: cloche stop %s", log->id);
	return -E_BUSY;
}

/* --- its files --- */

struct undo_reading {
	const struct cloche_undo *u;
	struct tree *tree;
	uint64_t last; /* entries up to this one count */
	bool has_begun;
};

static bool undo_is_unknown(const struct tree_node *n)
{
	return n->mark[UNDO_SKIPPED];
}

/* From now on, what the record does not name in the directories is not there. */
static int undo_begin(struct undo_reading *q, struct cloche_err *err)
{
	int r = 0;

	q->has_begun = true;
	for (size_t i = 0; r == 0 && i < q->u->tops_n; i++) {
		struct tree_path path;
		const struct tree_node *n;

		if (q->u->tops[i].fd < 0 || !tree_path_make(&path, str_from(q->u->tops[i].target)))
			continue;
		n = tree_find(q->tree, &path);
		if (!n || !undo_is_unknown(n))
			r = tree_close(q->tree, &path, undo_is_unknown, err);
	}
	return r;
}

static int undo_take_skip(struct undo_reading *q, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf bytes = BUF_INIT(2 * STATE_PATH_MAX);
	struct tree_node *n;
	struct tree_path path;
	struct str text;
	int r = state_argument_read(op->args, "path", &bytes, &text, err);

	if (r == 0 && !tree_path_make(&path, text))
		r = err_set(err, E_LIMIT, "a path of the log is too long");
	if (r == 0)
		r = tree_add(q->tree, &path, &n, err);
	if (r == 0)
		n->mark[UNDO_SKIPPED] = (unsigned)MIN(op->number, (uint64_t)UINT_MAX);
	return r;
}

static int undo_take_file(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct undo_reading *q = user;
	struct tree_node *n;
	struct tree_path path;
	int r = 0;

	if (op->number > q->last)
		return 1;
	if (op->number > q->u->start && !q->has_begun && (r = undo_begin(q, err)) < 0)
		return r;
	if (op->kind == STATE_FS_SKIP)
		return undo_take_skip(q, op, err);
	if (state_op_about(op->kind) != STATE_FILES)
		return 0;
	r = tree_take(&q->tree->taker, op, err);
	if (r < 0)
		return err_wrap(err, r, "entry %llu", (unsigned long long)op->number);
	/* From now on it is known. */
	n = tree_path_make(&path, op->subject) ? tree_find(q->tree, &path) : NULL;
	/* A directory that still cannot be looked at after a change of its mode is told again. */
	if (n && op->kind != STATE_FS_UNPACK &&
		(op->kind != STATE_FS_CHMOD || n->type == TREE_DIRECTORY))
		n->mark[UNDO_SKIPPED] = 0;
	return 0;
}

static int undo_open_content(void *user, struct str ref, struct cloche_err *err)
{
	return oplog_open_content(user, ref, err);
}

static int undo_read_files(
	struct cloche_undo *u, struct tree *tree, uint64_t last, struct cloche_err *err)
{
	struct undo_reading q = {.u = u, .tree = tree, .last = last};
	int r = oplog_read_all(u->log, undo_take_file, &q, err);

	return r >= 0 && !q.has_begun ? undo_begin(&q, err) : MIN(r, 0);
}

static int undo_read_trees(struct cloche_undo *u, struct cloche_err *err)
{
	struct tree *trees[] = {&u->was, &u->is};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		trees[i]->max_kept = HELD_MAX;
		trees[i]->max_file = HELD_FILE_MAX;
		trees[i]->sums = true;
	}
	r = undo_read_files(u, &u->was, u->start, err);
	if (r == 0)
		r = undo_read_files(u, &u->is, u->last, err);
	if (r == 0)
		r = tree_pair(&u->was, &u->is, err);
	return r < 0 ? r : tree_pair(&u->is, &u->was, err);
}

/* --- contents --- */

static bool undo_is_wanted(const struct tree_path *path, void *user)
{
	const struct tree_node *n = tree_find(user, path);

	return n && n->mark[UNDO_ITEM];
}

int undo_load(struct cloche_undo *u, struct cloche_err *err)
{
	bool any = false;

	for (size_t i = 0; i < u->n; i++) {
		struct tree_node *was = u->items[i].was;

		if (!undo_is_due(&u->items[i]) || !u->items[i].contents || !was->sum)
			continue;
		was->mark[UNDO_ITEM] = 1;
		any = true;
	}
	if (!any || u->has_contents)
		return 0;
	u->has_contents = true;
	u->contents.max_kept = CONTENTS_MAX;
	u->contents.is_wanted = undo_is_wanted;
	u->contents.is_wanted_user = &u->was;
	return undo_read_files(u, &u->contents, u->start, err);
}

const struct tree_node *undo_contents(const struct cloche_undo *u, const struct undo_item *it)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4 * STATE_PATH_MAX);
	const struct tree_node *n = it->was;
	struct tree_path path;

	if (n->sum)
		n = u->has_contents && tree_path_of(n, &text) == 0 &&
				    tree_path_make(&path, buf_str(&text))
			    ? tree_find(&u->contents, &path)
			    : NULL;
	return n && !n->lost && !n->partial ? n : NULL;
}

/* --- the handle --- */

void cloche_undo_free(cloche_undo *u)
{
	if (!u)
		return;
	tree_done(&u->was);
	tree_done(&u->is);
	tree_done(&u->contents);
	for (size_t i = 0; i < u->n; i++)
		free(u->items[i].path);
	free(u->items);
	for (size_t i = 0; i < u->tops_n; i++) {
		fd_close(u->tops[i].fd);
		free(u->tops[i].source);
		free(u->tops[i].target);
		free(u->tops[i].hooks);
	}
	free(u->tops);
	free(u);
}
DEFINE_CLEANUP(cloche_undo, cloche_undo_free)

/* Look at what the host obeys in the directories, before anything is changed there. */
static void undo_look_at_tops(struct cloche_undo *u)
{
	for (size_t i = 0; i < u->tops_n; i++) {
		struct undo_top *top = &u->tops[i];
		const struct obeyed *row = top->fd < 0 ? NULL : judge_mounted(top->fd);
		_cleanup_fd_ int git =
			top->fd < 0 ? -1
				    : openat(top->fd, ".git",
					      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		const struct judge j = {.root = top->fd,
			.dir = git,
			.in = ".git",
			.name = "config",
			.source = top->source,
			.target = top->target};

		top->place = row && row->below ? row->below : OBEYED_ANY;
		if (git >= 0)
			top->hooks = judge_hooks(&j);
	}
}

int cloche_undo_open(cloche_oplog *log, cloche_undo **ret, bool *ret_is_whole, cloche_err *err)
{
	_cleanup_(cloche_undo_freep) cloche_undo *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return err_nomem(err);
	u->log = log;
	tree_init(&u->was, undo_open_content, log);
	tree_init(&u->is, undo_open_content, log);
	tree_init(&u->contents, undo_open_content, log);
	r = undo_check_ended(log, err);
	if (r == 0)
		r = oplog_read_all(log, undo_take_facts, u, err);
	if (r == 0)
		r = undo_check(u, err);
	if (r == 0)
		r = undo_read_trees(u, err);
	if (r < 0)
		return r;
	undo_look_at_tops(u);
	r = undo_plan(u, err);
	if (r < 0)
		return r;
	if (ret_is_whole)
		*ret_is_whole = u->has_end;
	*ret = TAKE_PTR(u);
	return 0;
}
