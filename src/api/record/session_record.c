/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the record of a file session is told of each operation, as its observer
 * (struct files_observer). Data is collected while it is sent: small data goes into the log, the
 * rest becomes a file of its own. The log is locked just before the worker does the operation, and
 * unlocked when the operation is on record or has failed. So the log has the order in which things
 * were done, and does not stay locked for a slow sender. In a full record all paths are absolute,
 * like those of what commands do: one file has one name. */
#include "api/record/state.h"
#include "base/json.h"
#include "fs/fs.h"
#include "record/blobs.h"
#include "record/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct session_record {
	struct files_observer base;
	struct state_home home;
	struct state state;
	char *workdir;       /* where relative paths begin; NULL: they are recorded as they are */
	char *also, *target; /* two paths of the workspace (struct room_mount), or NULL */
	int blobs, blobs_lock;

	bool by_reference; /* the next write is an asset */
	int source;        /* borrowed: contents that the next operation has, or -1 */
	char source_ref[STATE_REF_BYTES + 1];
	bool is_shared; /* they are among our own, and need not be stored again */
	bool pending, is_batch;
	struct state_op op; /* its strings are owned by us */
	char *path, *other;
	struct buf data;
	struct blob_writer blob;
	char ref[STATE_REF_BYTES + 1];
};

/* Return the kind of the operation in the log, or STATE_UNKNOWN if it changes nothing. */
static enum state_op_kind kind_of(const struct files_request *q)
{
	switch ((enum files_op)q->op) {
	case FILES_OP_WRITE:
		return q->flags & FILES_APPEND ? STATE_FS_APPEND : STATE_FS_WRITE;
	case FILES_OP_MKDIR:
		return STATE_FS_MKDIR;
	case FILES_OP_REMOVE:
		return STATE_FS_DELETE;
	case FILES_OP_RENAME:
		return STATE_FS_RENAME;
	case FILES_OP_CHMOD:
		return STATE_FS_CHMOD;
	case FILES_OP_SYMLINK:
		return STATE_FS_SYMLINK;
	case FILES_OP_TAR_PUT:
		return STATE_FS_UNPACK;
	case FILES_OP_READ:
	case FILES_OP_LIST:
	case FILES_OP_STAT:
	case FILES_OP_READLINK:
	case FILES_OP_WATCH:
	case FILES_OP_TAR_GET:
	case FILES_OP_WRITE_SMALL: /* see on_begin() */
	case FILES_OP_END_:
		break;
	}
	return STATE_UNKNOWN;
}

/* Return whether the operation has the contents of a file. */
static bool has_contents(enum state_op_kind kind)
{
	return kind == STATE_FS_WRITE || kind == STATE_FS_APPEND || kind == STATE_ASSETS_UPLOAD;
}

static uint32_t recorded_mode(uint32_t mode)
{
	return mode == FILES_KEEP_MODE ? STATE_NO_MODE : mode;
}

static void drop(struct session_record *r)
{
	r->pending = r->is_batch = r->is_shared = false;
	state_end(&r->state);
	blob_done(&r->blob);
	r->blobs_lock = fd_close(r->blobs_lock);
	buf_clear(&r->data);
	free(r->path);
	free(r->other);
	r->path = r->other = NULL;
}

/* Return the path as it is recorded, on the heap; NULL if memory runs out. */
static char *recorded_path(const struct session_record *r, struct str path)
{
	_cleanup_(freep) char *copy = str_dup(path), *joined = NULL;

	if (!copy || !copy[0] || !r->workdir)
		return TAKE_PTR(copy);
	joined = fs_join(r->workdir, copy);
	return joined ? fs_absolute(joined) : NULL;
}

/* Return the path by which it is recorded: another machine has the workspace elsewhere. */
static char *recorded_inside(const struct session_record *r, struct str path)
{
	_cleanup_(freep) char *whole = recorded_path(r, path);
	const char *rest = whole && r->also ? fs_below(whole, r->also) : NULL;

	if (!rest)
		return TAKE_PTR(whole);
	return rest[0] ? fs_join(r->target, rest) : strdup(r->target);
}

/* Find the mount that has two paths. Return 0 or -ENOMEM. */
static int find_second(const cloche_instance *instance, struct session_record *r)
{
	const json_t *config = json_object_get(instance->record, "config"), *one;
	size_t i;

	json_array_foreach (json_object_get(config, "mounts"), i, one) {
		struct str also = json_str_at(one, "also");

		if (!also.n)
			continue;
		r->also = str_dup(also);
		r->target = str_dup(json_str_at(one, "target"));
		return r->also && r->target ? 0 : -ENOMEM;
	}
	return 0;
}

/* Open the store of contents, and lock it against removal. */
static int hold_blobs(struct session_record *r, struct cloche_err *err)
{
	if (r->blobs < 0)
		r->blobs = oplogs_open_blobs(err);
	if (r->blobs < 0)
		return r->blobs;
	r->blobs_lock = blobs_lock(r->blobs, false, err);
	return r->blobs_lock < 0 ? r->blobs_lock : 0;
}

/* Find out whether the contents are a file of our own, the very one that was checked. It stays as
 * long as the lock is held. */
static int share_contents(struct session_record *r, struct cloche_err *err)
{
	struct stat theirs, ours;
	int e = hold_blobs(r, err);

	if (e < 0)
		return e;
	r->is_shared = fstat(r->source, &theirs) == 0 &&
		       fstatat(r->blobs, r->source_ref, &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
		       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
	if (!r->is_shared)
		r->blobs_lock = fd_close(r->blobs_lock);
	else if (r->state.log.sync != OPLOG_SYNC_NEVER && fsync(r->source) < 0)
		return err_sys(err, errno, "sync blobs/%s", r->source_ref);
	return 0;
}

static int on_begin(
	struct files_observer *base, const struct files_request *q, struct cloche_err *err)
{
	struct session_record *r = container_of(base, struct session_record, base);
	enum state_op_kind kind = kind_of(q);

	drop(r);
	r->pending = r->is_batch = q->op == FILES_OP_WRITE_SMALL;
	if (kind == STATE_UNKNOWN)
		return 0;
	if (kind == STATE_FS_WRITE && r->by_reference)
		kind = STATE_ASSETS_UPLOAD;
	r->path = recorded_inside(r, q->path);
	r->other = kind == STATE_FS_RENAME ? recorded_inside(r, q->other) : str_dup(q->other);
	if (!r->path || !r->other)
		return err_nomem(err);
	r->pending = true;
	r->op = (struct state_op){.kind = kind,
		.subject = str_from(r->path),
		.object = str_from(r->other),
		.is_new = q->flags & FILES_IS_NEW,
		.mode = recorded_mode(q->mode)};
	if (!has_contents(kind) && kind != STATE_FS_MKDIR && kind != STATE_FS_CHMOD)
		r->op.mode = STATE_NO_MODE;
	return r->source >= 0 ? share_contents(r, err) : 0;
}

static int begin_blob(struct session_record *r, struct cloche_err *err)
{
	int e = hold_blobs(r, err);

	if (e == 0)
		e = blob_begin(&r->blob, r->blobs, err);
	if (e == 0)
		e = blob_add(&r->blob, buf_str(&r->data), err);
	buf_clear(&r->data);
	return e;
}

static int on_data(struct files_observer *base, struct str data, struct cloche_err *err)
{
	struct session_record *r = container_of(base, struct session_record, base);

	if (!r->pending || r->is_shared)
		return 0;
	if (r->blob.fd < 0 && buf_len(&r->data) + data.n <= STATE_DATA_MAX)
		return buf_add_str(&r->data, data) < 0 ? err_nomem(err) : 0;
	if (r->blob.fd < 0) {
		int e = begin_blob(r, err);

		if (e < 0)
			return e;
	}
	return blob_add(&r->blob, data, err);
}

static int finish_data(struct session_record *r, struct cloche_err *err)
{
	int e = 0;

	if (r->is_shared) {
		r->op.is_ref = true;
		r->op.object = str_from(r->source_ref);
		return 0;
	}
	if (r->blob.fd < 0 && (r->op.kind == STATE_FS_UNPACK || r->op.kind == STATE_ASSETS_UPLOAD))
		e = begin_blob(r, err);
	if (e == 0 && r->blob.fd >= 0) {
		e = blob_finish(&r->blob, r->state.log.sync != OPLOG_SYNC_NEVER, r->ref, err);
		r->op.is_ref = true;
		r->op.object = str_from(r->ref);
	} else if (e == 0) {
		r->op.object = buf_str(&r->data);
	}
	return e;
}

static int not_recorded(int e, struct cloche_err *err)
{
	return err_wrap(err, e, "it was done, but is not on record");
}

static int on_ready(struct files_observer *base, struct cloche_err *err)
{
	struct session_record *r = container_of(base, struct session_record, base);
	enum state_op_kind kind = r->op.kind;
	int e = 0;

	if (!r->pending)
		return 0;
	if (!r->is_batch && (has_contents(kind) || kind == STATE_FS_UNPACK))
		e = finish_data(r, err);
	return e == 0 ? state_begin(&r->state, err) : e;
}

static int on_wrote(struct files_observer *base, const struct files_small *files, size_t n,
	struct cloche_err *err)
{
	struct session_record *r = container_of(base, struct session_record, base);
	_cleanup_(freep) struct state_op *ops = calloc(n, sizeof(*ops));
	_cleanup_(freep) char **paths = calloc(n, sizeof(*paths));
	int e = ops && paths ? 0 : err_nomem(err);

	for (size_t i = 0; e == 0 && i < n; i++) {
		paths[i] = recorded_inside(r, files[i].path);
		ops[i] = (struct state_op){.kind = STATE_FS_WRITE,
			.subject = str_from(paths[i]),
			.object = files[i].data,
			.mode = recorded_mode(files[i].mode)};
		e = paths[i] ? 0 : err_nomem(err);
	}
	if (e == 0)
		e = state_record_files(&r->state, ops, n, err);
	for (size_t i = 0; paths && i < n; i++)
		free(paths[i]);
	return e < 0 ? not_recorded(e, err) : 0;
}

static int on_end(struct files_observer *base, bool done, struct cloche_err *err)
{
	struct session_record *r = container_of(base, struct session_record, base);
	int e = 0;

	if (done && r->pending && !r->is_batch)
		e = state_record(&r->state, &r->op, err);
	drop(r);
	return e < 0 ? not_recorded(e, err) : 0;
}

void session_record_as_assets(struct files_observer *base, bool by_reference)
{
	container_of(base, struct session_record, base)->by_reference = by_reference;
}

void session_record_share(struct files_observer *base, int fd, struct str ref)
{
	struct session_record *r = container_of(base, struct session_record, base);

	r->source = fd;
	str_copy(r->source_ref, sizeof(r->source_ref), ref);
}

const char *session_record_ref(struct files_observer *base)
{
	return container_of(base, struct session_record, base)->ref;
}

static void on_free(struct files_observer *base)
{
	struct session_record *r = container_of(base, struct session_record, base);

	drop(r);
	buf_done(&r->data);
	(void)state_close(&r->state, NULL);
	fd_close(r->blobs);
	state_home_done(&r->home);
	free(r->workdir);
	free(r->also);
	free(r->target);
	free(r);
}

int session_record_new(const cloche_instance *instance, const char *workdir,
	struct files_observer **ret, struct cloche_err *err)
{
	struct session_record *r;
	struct state_home home = STATE_HOME_INIT;
	int e = state_home_find(instance, &home, err);

	*ret = NULL;
	if (e == -E_UNSUPPORTED)
		err_clear(err);
	if (e < 0 || !home.recorded) {
		state_home_done(&home);
		return e == -E_UNSUPPORTED ? 0 : e;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		state_home_done(&home);
		return err_nomem(err);
	}
	*r = (struct session_record){
		.base = {on_begin, on_data, on_ready, on_wrote, on_end, on_free},
		.home = home,
		.state = STATE_INIT,
		.blobs = -1,
		.source = -1,
		.blobs_lock = -1,
		.data = BUF_INIT(STATE_DATA_MAX),
		.blob = BLOB_WRITER_INIT};
	r->workdir = home.full ? strdup(workdir) : NULL;
	e = (home.full && !r->workdir) || find_second(instance, r) < 0
		    ? err_nomem(err)
		    : state_home_open(&home, &r->state, err);
	if (e < 0)
		on_free(&r->base);
	else
		*ret = &r->base;
	return e;
}
