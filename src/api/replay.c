/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each operation is repeated with the ordinary functions, in a session with
 * the sandbox. So nothing outside of the sandbox can be reached, and a recorded sandbox has on
 * record what was done. Small files that are written one after the other do not wait for each
 * other's answer unless they are recorded. They are written in their order; if one fails, those
 * that were sent behind it may have been written, and nothing after them is done. */
#include "api/made.h"
#include "api/oplog.h"

#include <errno.h>
#include <unistd.h>

enum { CHANGES_AT_ONCE = 1000, AHEAD_MAX = 64, AHEAD_BYTES = 4096 };

/* A write that was sent. */
struct ahead {
	struct files_run run;
	char *path;
	uint64_t number; /* of its entry */
};

struct replaying {
	cloche_oplog *log;
	cloche_files *files;
	cloche_state *state;
	uint64_t last; /* 0: all */
	unsigned changes;
	struct ahead ahead[AHEAD_MAX];
	size_t ahead_n;
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

/* Wait for the answers to all writes that were sent. The first error counts. */
static int replay_settle(struct replaying *p, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->ahead_n; i++) {
		struct ahead *a = &p->ahead[i];
		int ended = files_finish(&a->run, r == 0 ? err : NULL);

		if (r == 0)
			r = replay_wrap(a->number, STATE_FS_WRITE, ended, err);
		p->done.done += r == 0;
		free(a->path);
	}
	p->ahead_n = 0;
	return r;
}

static bool is_small_write(const struct replaying *p, const struct state_op *op)
{
	return op->kind == STATE_FS_WRITE && !op->is_ref && op->object.n <= AHEAD_BYTES &&
	       !p->files->recorder;
}

static int replay_write_ahead(
	struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	struct ahead *a = &p->ahead[p->ahead_n];
	int r;

	*a = (struct ahead){.path = str_dup(op->subject), .number = op->number};
	a->run = (struct files_run){.f = p->files, .verb = "write", .path = a->path};
	if (!a->path)
		return err_nomem(err);
	r = files_write_begin(&a->run, CLOCHE_FILES_PARENTS, mode_of(op), op->object, err);
	if (r < 0) {
		free(a->path);
		return replay_wrap(op->number, op->kind, r, err);
	}
	return ++p->ahead_n == AHEAD_MAX ? replay_settle(p, err) : 0;
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
		return cloche_files_symlink(p->files, other, path, err);
	if (op->kind == STATE_FS_CHMOD)
		return cloche_files_chmod(p->files, path, mode, err);
	return cloche_files_remove(p->files, path, true, err);
}

static int do_contents(struct replaying *p, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_(freep) char *path = str_dup(op->subject);
	_cleanup_fd_ int fd = -1;
	struct content c = {.rest = op->object, .fd = -1};
	uint32_t mode = mode_of(op);
	unsigned flags = CLOCHE_FILES_PARENTS;

	if (!path)
		return err_nomem(err);
	if (op->is_ref) {
		fd = oplog_open_content(p->log, op->object, err);
		if (fd < 0)
			return fd;
		c.fd = fd;
	}
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

static int do_one(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct replaying *p = user;
	int r = 0;

	if (p->last && op->number > p->last)
		return 0;
	if (is_small_write(p, op)) {
		state_let_go(p->state);
		return replay_write_ahead(p, op, err);
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

int cloche_oplog_replay(cloche_oplog *log, const cloche_instance *instance, uint64_t last,
	cloche_replayed *ret, cloche_err *err)
{
	struct replaying p = {.log = log, .last = last};
	int r, ahead;

	if (log->id[0] && strcmp(log->id, instance->id) == 0)
		return err_set(err, E_USAGE, "that is the sandbox's own log");
	r = cloche_files_open(instance, 0, 0, &p.files, err);
	if (r == 0) {
		/* What is not there need not be removed. */
		cloche_files_set_lenient(p.files, true);
		r = cloche_state_open(instance, &p.state, err);
	}
	if (r == 0)
		r = oplog_read_all(log, do_one, &p, err);
	ahead = replay_settle(&p, r == 0 ? err : NULL);
	r = r == 0 ? ahead : r;
	if (p.state)
		state_let_go(p.state);
	cloche_state_close(p.state);
	cloche_files_close(p.files);
	if (ret)
		*ret = p.done;
	return r;
}

int cloche_instance_create_from(const cloche_sandbox *sb, cloche_oplog *log, uint64_t last,
	cloche_warning_fn fn, void *user, cloche_replayed *replayed, cloche_instance **ret,
	cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;
	struct client *client;
	int r = instance_begin(sb, fn, user, &client, &instance, err);

	if (r < 0)
		return r;
	r = cloche_oplog_replay(log, instance, last, replayed, err);
	r = instance_complete(client, r, err);
	if (r == 0)
		*ret = TAKE_PTR(instance);
	return r;
}
