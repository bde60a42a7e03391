/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each operation is repeated with the ordinary functions, in a session with
 * the sandbox. So nothing outside of the sandbox can be reached, and a recorded sandbox has on
 * record what was done. Small files that are written one after the other go to the worker in
 * batches, and the worker writes one batch while the next is read from the log. They are written in
 * their order, but a file that a later row of the batch overwrites is not written first, unless
 * that has to be on record. If one fails, nothing after it is done. */
#include "api/instance/made.h"
#include "api/record/oplog.h"
#include "base/hash.h"

#include <errno.h>
#include <unistd.h>

enum {
	CHANGES_AT_ONCE = 1000,
	BATCH_ROWS = 8192,
	BATCH_BYTES = 512 << 10, /* of paths and data, also of those that are not sent */
};

/* A small write. */
struct row {
	UT_hash_handle hh;
	struct files_small file; /* its path is terminated */
	uint64_t number;         /* of its entry */
	size_t later;            /* the row with the same path that takes its place; 0: none */
};

/* Small writes that follow each other. */
struct batch {
	struct row rows[BATCH_ROWS];
	struct row *by_path;
	size_t n, used, sending; /* sending: bytes that the request has */
	char bytes[BATCH_BYTES];
	/* when it was sent: */
	struct files_small files[BATCH_ROWS];
	size_t row_of[BATCH_ROWS];
	struct files_batch sent;
	struct files_run run;
};

struct replaying {
	cloche_oplog *log;
	cloche_files *files;
	cloche_state *state;
	uint64_t last; /* 0: all */
	unsigned changes;
	struct batch *batches[2]; /* the one that is filled, and the one that was sent */
	bool is_sent;
	bool failed; /* an operation did */
	char *root;  /* that the log names; NULL: it does not, as one of a version before */
	cloche_replayed done;
};

struct content {
	struct str rest; /* contents from the log itself */
	int fd;          /* or -1 */
};

static long next_piece(void *user, void *data, size_t size)
{
	struct content *c = user;
	size_t n = MIN(c->rest.n, size);
	ssize_t got;

	if (c->fd < 0) {
		if (n > 0)
			memcpy(data, c->rest.p, n);
		c->rest = str_from_index(c->rest, n);
		return (long)n;
	}
	do
		got = read(c->fd, data, size);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Set-id bits are left out, as by cp and fork: on a mount the room may not set them. */
static uint32_t mode_of(const struct state_op *op)
{
	return op->mode == STATE_NO_MODE ? CLOCHE_FILES_KEEP_MODE : op->mode & 01777;
}

/* Add the entry to an error of what it asks for. */
static int replay_wrap(uint64_t number, enum state_op_kind kind, int r, struct cloche_err *err)
{
	return r < 0 ? err_wrap(err, r, "entry %llu, %s", (unsigned long long)number,
			       state_op_name(kind))
		     : r;
}

/* --- small files --- */

/* The operations that were done if the row is the first that was not. */
static uint64_t batch_done_before(const struct batch *b, size_t row)
{
	uint64_t done = 0;

	for (size_t i = 0; i < row; i++)
		done += !b->rows[i].later || b->rows[i].later < row;
	return done;
}

/* Wait for the answer to the batch that was sent. */
static int batch_wait(struct replaying *p, struct cloche_err *err)
{
	struct batch *b = p->batches[1];
	size_t row;
	int r;

	if (!p->is_sent)
		return 0;
	p->is_sent = false;
	r = files_finish(&b->run, err);
	/* If all were written, but are not on record, the first is named. */
	row = r == 0 ? b->n : b->row_of[b->sent.written < b->sent.n ? b->sent.written : 0];
	p->done.done += batch_done_before(b, row);
	return r < 0 ? replay_wrap(b->rows[row].number, STATE_FS_WRITE, r, err) : 0;
}

/* Send the batch. The worker writes it while the next one is filled. */
static int batch_send(struct replaying *p, struct cloche_err *err)
{
	struct batch *b = p->batches[0];
	int r = batch_wait(p, err);

	if (r < 0 || !b || b->n == 0)
		return r;
	HASH_CLEAR(hh, b->by_path);
	b->sent = (struct files_batch){.files = b->files};
	for (size_t i = 0; i < b->n; i++)
		if (!b->rows[i].later) {
			b->row_of[b->sent.n] = i;
			b->files[b->sent.n++] = b->rows[i].file;
		}
	b->run = (struct files_run){
		.f = p->files, .verb = "write", .path = "small files", .batch = &b->sent};
	r = files_batch_begin(&b->run, err);
	if (r < 0)
		return replay_wrap(b->rows[0].number, STATE_FS_WRITE, r, err);
	p->batches[0] = p->batches[1];
	p->batches[1] = b;
	p->is_sent = true;
	b = p->batches[0];
	if (b)
		b->n = b->used = b->sending = 0;
	return 0;
}

/* Do all that was put off. */
static int replay_settle(struct replaying *p, struct cloche_err *err)
{
	int r = batch_send(p, err);

	return r < 0 ? r : batch_wait(p, err);
}

static size_t batch_cost(const struct files_small *file)
{
	return FILES_SMALL_BYTES + file->path.n + file->data.n;
}

static struct str batch_copy(struct batch *b, struct str text)
{
	char *at = b->bytes + b->used;

	if (text.n > 0)
		memcpy(at, text.p, text.n);
	at[text.n] = '\0';
	b->used += text.n + 1;
	return str_make(at, text.n);
}

/* Put a write into the batch, in place of an earlier one of the same path. That one would be
 * overwritten, and its mode kept unless this one has another. */
static int batch_add(
	struct batch *b, const struct state_op *op, bool is_recorded, struct cloche_err *err)
{
	struct row *row = &b->rows[b->n], *before;
	uint32_t mode = files_mode(mode_of(op));

	*row = (struct row){.number = op->number,
		.file = {.mode = mode,
			.path = batch_copy(b, op->subject),
			.data = batch_copy(b, op->object)}};
	b->sending += batch_cost(&row->file);
	b->n++;
	if (is_recorded)
		return 0;
	HASH_FIND(hh, b->by_path, row->file.path.p, row->file.path.n, before);
	if (before) {
		HASH_DEL(b->by_path, before);
		b->sending -= batch_cost(&before->file);
		before->later = b->n - 1;
		if (mode == FILES_KEEP_MODE)
			row->file.mode = before->file.mode;
	}
	HASH_ADD_KEYPTR(hh, b->by_path, row->file.path.p, row->file.path.n, row);
	return row->hh.tbl ? 0 : err_nomem(err);
}

static bool is_small_write(const struct state_op *op)
{
	return op->kind == STATE_FS_WRITE && !op->is_ref && op->object.n <= FILES_MAX_SMALL;
}

static int replay_small(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	size_t bytes = op->subject.n + op->object.n + 2;
	struct batch *b = p->batches[0];
	int r = 0;

	if (b && (b->n == BATCH_ROWS || b->used + bytes > BATCH_BYTES ||
			 b->sending + FILES_SMALL_BYTES + bytes > FILES_CHUNK))
		r = batch_send(p, err);
	if (r == 0 && !p->batches[0]) {
		p->batches[0] = malloc(sizeof(*b));
		if (!p->batches[0])
			return err_nomem(err);
		p->batches[0]->by_path = NULL;
		p->batches[0]->n = p->batches[0]->used = p->batches[0]->sending = 0;
	}
	return r < 0 ? r : batch_add(p->batches[0], op, p->files->observer, err);
}

static void batches_done(struct replaying *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->batches); i++) {
		if (p->batches[i])
			HASH_CLEAR(hh, p->batches[i]->by_path);
		free(p->batches[i]);
	}
}

/* --- one operation --- */

/* A look finds links in a workspace whose own directory is not on record. */
static int do_link(
	struct replaying *p, const char *path, const char *target, struct cloche_err *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(freep) char *above = NULL;
	int r = cloche_files_symlink(p->files, target, path, err);

	if (r != -E_NOT_FOUND || !slash || slash == path)
		return r;
	err_clear(err);
	above = str_dup(str_make(path, (size_t)(slash - path)));
	if (!above)
		return err_nomem(err);
	r = cloche_files_mkdir(p->files, above, CLOCHE_FILES_KEEP_MODE, true, err);
	return r < 0 ? r : cloche_files_symlink(p->files, target, path, err);
}

/* The same directory may get a mode before anything is in it. */
static int do_mode(
	struct replaying *p, const struct state_op *op, const char *path, struct cloche_err *err)
{
	int r = cloche_files_chmod(p->files, path, mode_of(op), err);

	if (r != -E_NOT_FOUND || !op->exec)
		return r;
	err_clear(err);
	r = cloche_files_mkdir(p->files, path, CLOCHE_FILES_KEEP_MODE, true, err);
	return r < 0 ? r : cloche_files_chmod(p->files, path, mode_of(op), err);
}

/* Paths and targets contain no NUL: state_op_check() has made sure of that. */
static int do_names(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(freep) char *path = str_dup(op->subject), *other = str_dup(op->object);
	uint32_t mode = mode_of(op);

	if (!path || !other)
		return err_nomem(err);
	if (op->kind == STATE_FS_MKDIR)
		return cloche_files_mkdir(p->files, path, mode, true, err);
	if (op->kind == STATE_FS_RENAME)
		return cloche_files_rename(p->files, path, other, true, err);
	if (op->kind == STATE_FS_SYMLINK)
		return do_link(p, path, other, err);
	if (op->kind == STATE_FS_CHMOD)
		return do_mode(p, op, path, err);
	return cloche_files_remove(p->files, path, true, err);
}

static int do_contents_from(
	struct replaying *p, const struct state_op *op, int fd, struct cloche_err *err)
{
	_cleanup_(freep) char *path = str_dup(op->subject);
	struct content c = {.rest = op->object, .fd = fd};
	uint32_t mode = mode_of(op);
	unsigned flags = CLOCHE_FILES_PARENTS;

	if (!path)
		return err_nomem(err);
	if (op->kind == STATE_FS_UNPACK)
		return files_unpack(p->files, path, op->is_new ? FILES_IS_NEW : 0,
			cloche_from_fn(next_piece, &c), err);
	if (op->kind == STATE_FS_APPEND)
		flags |= CLOCHE_FILES_APPEND;
	return cloche_files_write(p->files, path, flags, mode,
		op->is_ref ? cloche_from_fn(next_piece, &c)
			   : cloche_from_data(op->object.p, op->object.n),
		err);
}

static int do_contents(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (!op->is_ref)
		return do_contents_from(p, op, -1, err);
	fd = oplog_open_content(p->log, op->object, err);
	if (fd < 0)
		return fd;
	if (p->files->observer)
		session_record_share(p->files->observer, fd, op->object);
	r = do_contents_from(p, op, fd, err);
	if (p->files->observer)
		session_record_share(p->files->observer, -1, STR_NULL);
	return r;
}

static int do_tables(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	enum cloche_state_part part =
		state_op_about(op->kind) == STATE_ENV ? CLOCHE_STATE_ENV : CLOCHE_STATE_STORAGE;
	int r;

	/* Release the lock now and then, so that others get their turn. */
	if (++p->changes % CHANGES_AT_ONCE == 0)
		state_let_go(p->state);
	r = state_hold(p->state, err);
	if (r < 0)
		return r;
	if (op->kind == STATE_STORAGE_CLEAR)
		return cloche_state_clear(p->state, err);
	if (op->kind == STATE_ENV_SET || op->kind == STATE_STORAGE_SET)
		return cloche_state_set(p->state, part, op->subject.p, op->subject.n, op->object.p,
			op->object.n, err);
	return cloche_state_remove(p->state, part, op->subject.p, op->subject.n, err);
}

static int replay_operation(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	int r = 0;

	if (is_small_write(op)) {
		state_let_go(p->state);
		return replay_small(p, op, err);
	}
	r = replay_settle(p, err);
	if (r < 0)
		return r;
	/* The session records files in the same log, so release its lock. */
	if (state_op_about(op->kind) == STATE_FILES)
		state_let_go(p->state);
	switch (op->kind) {
	case STATE_FS_WRITE:
	case STATE_FS_APPEND:
	case STATE_FS_UNPACK:
	case STATE_ASSETS_UPLOAD:
		r = do_contents(p, op, err);
		break;
	case STATE_FS_DELETE:
	case STATE_FS_MKDIR:
	case STATE_FS_RENAME:
	case STATE_FS_SYMLINK:
	case STATE_FS_CHMOD:
		r = do_names(p, op, err);
		break;
	case STATE_ENV_SET:
	case STATE_ENV_DELETE:
	case STATE_STORAGE_SET:
	case STATE_STORAGE_DELETE:
	case STATE_STORAGE_CLEAR:
		r = do_tables(p, op, err);
		break;
	case STATE_UNKNOWN:
		p->done.unknown++;
		return 0;
	case STATE_SANDBOX_START:
	case STATE_SANDBOX_END:
	case STATE_EXEC_START:
	case STATE_EXEC_END:
	case STATE_CODE_CALL:
	case STATE_AGENT_END:
	case STATE_FS_SKIP:
	case STATE_TABLES:
		return 0;
	}
	p->done.done += r == 0;
	return replay_wrap(op->number, op->kind, r, err);
}

static int replay_take_start(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	struct str root = json_str_at(json_object_get(op->args, "config"), "root");

	if (p->root || root.n == 0)
		return 0;
	p->root = str_dup(root);
	return p->root ? 0 : err_nomem(err);
}

static int replay_entry(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct replaying *p = user;
	int r = op->kind == STATE_SANDBOX_START ? replay_take_start(p, op, err) : 0;

	if (r == 0 && !(p->last && op->number > p->last))
		r = replay_operation(p, op, err);
	p->failed = r < 0;
	return r;
}

/* p->root is the caller's. */
static int replay_all(struct replaying *p, const cloche_instance *instance, struct cloche_err *err)
{
	const cloche_oplog *log = p->log;
	int r, ahead;

	if (log->id[0] && strcmp(log->id, instance->id) == 0)
		return err_set(err, E_USAGE, "that is the sandbox's own log");
	r = cloche_files_open(instance, 0, 0, &p->files, err);
	if (r == 0) {
		/* What is not there need not be removed. */
		cloche_files_set_lenient(p->files, true);
		r = cloche_state_open(instance, &p->state, err);
	}
	if (r == 0)
		r = oplog_read_all(p->log, replay_entry, p, err);
	/* What comes before an entry that cannot be read is done; nothing behind one that failed.
	 */
	ahead = p->failed ? batch_wait(p, NULL) : replay_settle(p, r == 0 ? err : NULL);
	r = r == 0 ? ahead : r;
	batches_done(p);
	if (p->state)
		state_let_go(p->state);
	cloche_state_close(p->state);
	cloche_files_close(p->files);
	return r;
}

int cloche_oplog_replay(cloche_oplog *log, const cloche_instance *instance, uint64_t last,
	cloche_replayed *ret, cloche_err *err)
{
	struct replaying p = {.log = log, .last = last};
	int r = replay_all(&p, instance, err);

	free(p.root);
	if (ret)
		*ret = p.done;
	return r;
}

/* What changed over one root makes little sense over another. */
static int replay_compare_roots(const char *root, const cloche_sandbox *sb, cloche_warning_fn fn,
	void *user, struct cloche_err *err)
{
	_cleanup_(freep) char *text = NULL;

	if (!root || !fn || strcmp(root, sandbox_root(sb)) == 0)
		return 0;
	if (asprintf(&text, "the log is of a sandbox with --root %s, and this one has --root %s",
		    root, sandbox_root(sb)) < 0)
		return err_nomem(err);
	fn(text, user);
	return 0;
}

int cloche_instance_create_from(const cloche_sandbox *sb, cloche_oplog *log, uint64_t last,
	cloche_warning_fn fn, void *user, cloche_replayed *replayed, cloche_instance **ret,
	cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;
	struct replaying p = {.log = log, .last = last};
	struct client *client;
	int r = instance_begin(sb, fn, user, &client, &instance, err);

	if (r < 0)
		return r;
	r = replay_all(&p, instance, err);
	if (r == 0)
		r = replay_compare_roots(p.root, sb, fn, user, err);
	free(p.root);
	if (replayed)
		*replayed = p.done;
	r = instance_complete(client, r, err);
	if (r == 0)
		*ret = TAKE_PTR(instance);
	return r;
}
