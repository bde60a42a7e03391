/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: an upload is a write that the session's record (session_record.c) names by
 * reference. A file to keep is read in full before the log is locked, so the log does not wait for
 * a slow sender. Under the lock the file is checked again: if it has changed, nothing is recorded,
 * so that no write from outside is on record before the contents that it replaced. */
#include "api/record/oplog.h"
#include "base/err.h"
#include "job/job.h"

#include <cloche/assets.h>

_Static_assert(CLOCHE_ASSET_REF_SIZE == STATE_REF_BYTES + 1, "the public size of a reference");

static int find_record(const cloche_files *f, struct files_observer **ret, struct cloche_err *err)
{
	*ret = f->observer;
	if (*ret)
		return 0;
	err_set(err, E_UNSUPPORTED, "the sandbox is not recorded");
	err_hint(err, "create it with --record ops");
	return -E_UNSUPPORTED;
}

/* Ends what session_record_as_assets() began. */
static int assets_finish(struct files_observer *observer, int r, char *ret)
{
	session_record_as_assets(observer, false);
	if (r == 0)
		memcpy(ret, session_record_ref(observer), CLOCHE_ASSET_REF_SIZE);
	return r;
}

int cloche_assets_upload(
	cloche_files *f, const char *path, cloche_source from, char *ret, cloche_err *err)
{
	struct files_observer *observer;
	int r = find_record(f, &observer, err);

	if (r < 0)
		return r;
	session_record_as_assets(observer, true);
	r = cloche_files_write(f, path, CLOCHE_FILES_PARENTS, CLOCHE_FILES_KEEP_MODE, from, err);
	return assets_finish(observer, r, ret);
}

/* --- what is there already --- */

struct keeping {
	struct files_observer *observer;
	uint64_t bytes;
	struct cloche_err why; /* why it could not be recorded */
	int r;
};

static int take(void *user, const void *data, size_t length)
{
	struct keeping *k = user;

	k->bytes += length;
	k->r = k->observer->data(k->observer, str_make(data, length), &k->why);
	return k->r;
}

static bool is_same(const cloche_file_stat *a, const cloche_file_stat *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mode == b->mode && a->mtime_sec == b->mtime_sec && a->mtime_nsec == b->mtime_nsec;
}

static int changed(const char *path, struct cloche_err *err)
{
	return err_set(err, E_BUSY, "keep %s: it changed while it was read", path);
}

/* Do everything up to locking the log. */
static int gather(cloche_files *f, struct keeping *k, const char *path, const cloche_file_stat *st,
	struct cloche_err *err)
{
	const struct files_request q = {
		.op = FILES_OP_WRITE, .mode = st->mode & 0777, .path = str_from(path)};
	int r = k->observer->begin(k->observer, &q, err);

	if (r < 0)
		return r;
	/* Read one byte more: a file in /proc has size 0, but may have contents. */
	r = cloche_files_read(f, path, 0, st->size + 1, take, k, err);
	if (r < 0 && k->r < 0 && err)
		*err = k->why;
	if (r < 0)
		return k->r < 0 ? k->r : r;
	return k->bytes == st->size ? k->observer->ready(k->observer, err) : changed(path, err);
}

static int keep(cloche_files *f, struct files_observer *observer, const char *path, uint64_t max,
	struct cloche_err *err)
{
	struct keeping k = {.observer = observer};
	cloche_file_stat before, after;
	int end, r = cloche_files_stat(f, path, true, &before, err);

	if (r < 0)
		return r;
	if (before.type != CLOCHE_NODE_FILE)
		return err_set(err, E_USAGE, "keep %s: it is not a regular file", path);
	if (before.size > max)
		return err_set(err, E_LIMIT, "keep %s: it is larger than %llu bytes", path,
			(unsigned long long)max);
	r = gather(f, &k, path, &before, err);
	if (r == 0)
		r = cloche_files_stat(f, path, true, &after, err);
	if (r == 0 && !is_same(&before, &after))
		r = changed(path, err);
	end = observer->end(observer, r == 0, r == 0 ? err : NULL);
	return r < 0 ? r : end;
}

int cloche_assets_keep(cloche_files *f, const char *path, uint64_t max, char *ret, cloche_err *err)
{
	struct files_observer *observer;
	int r = find_record(f, &observer, err);

	if (r < 0)
		return r;
	/* What the session does meanwhile is not recorded on its own. */
	files_set_observer(f, NULL);
	session_record_as_assets(observer, true);
	r = keep(f, observer, path, max, err);
	files_set_observer(f, observer);
	return assets_finish(observer, r, ret);
}

/* --- what a log has --- */

static int note(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	return op->kind == STATE_ASSETS_UPLOAD ? state_table_set(user, op->subject, op->object, err)
					       : 0;
}

JOB_ASK2(call_assets_fn, cloche_assets_fn, bool, false, const char *, const char *)

int cloche_assets_list(cloche_oplog *log, cloche_assets_fn fn, void *user, cloche_err *err)
{
	struct state_table assets = {.max = STATE_STORAGE_TOTAL};
	int r = oplog_read_all(log, note, &assets, err);

	for (const struct state_pair *p = assets.pairs; r == 0 && p; p = p->hh.next)
		if (!call_assets_fn(fn, p->key, p->value, user))
			break;
	state_table_clear(&assets);
	return r;
}

int cloche_assets_open(cloche_oplog *log, const char *ref, int *ret_fd, cloche_err *err)
{
	int fd = oplog_open_content(log, str_from(ref), err);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
