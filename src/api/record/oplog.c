/* SPDX-License-Identifier: Apache-2.0 */
/* Operation logs for users: reads, compacts, exports, removes and lists them. */
#include "api/record/oplog.h"
#include "api/start/logs.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "fileclient/session.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "ipc/statedir.h"
#include "job/job.h"
#include "record/compact.h"
#include "record/netlogs.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- finding --- */

static void log_file(const char *id, char ret[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)])
{
	snprintf(ret, OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX), "%s" OPLOG_SUFFIX, id);
}

/* Return whether the sandbox will have a log as soon as something is done to it. */
static bool is_recorded(const char *id)
{
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;
	struct state_home home = STATE_HOME_INIT;
	bool recorded;

	if (cloche_instance_open(id, &instance, NULL) < 0)
		return false;
	recorded = state_home_find(instance, &home, NULL) == 0 && home.recorded;
	state_home_done(&home);
	return recorded;
}

static int open_log(cloche_oplog *log, const char *sandbox, struct cloche_err *err)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	_cleanup_fd_ int logs = oplogs_open(err);
	char file[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)];

	if (logs < 0)
		return logs;
	log_file(log->id, file);
	log->fd = openat(logs, file, flags);
	if (log->fd < 0 && errno == ENOENT) {
		if (!is_recorded(log->id))
			return logs_have_none(sandbox, err);
		log->fd = openat(logs, file, flags | O_CREAT, 0600);
	}
	if (log->fd < 0)
		return err_sys(err, errno, "open %s", file);
	log->cassette_fd = oplog_open_cassette(logs, file);
	return 0;
}

static cloche_oplog *new_log(void)
{
	cloche_oplog *log = calloc(1, sizeof(*log));

	if (log)
		log->fd = log->blobs[0] = log->blobs[1] = log->cassette_fd = -1;
	return log;
}

int cloche_oplog_open(const char *sandbox, cloche_oplog **ret, cloche_err *err)
{
	_cleanup_(cloche_oplog_freep) cloche_oplog *log = new_log();
	int r;

	if (!log)
		return err_nomem(err);
	r = logs_find(sandbox, log->id, err);
	if (r == 0)
		r = open_log(log, sandbox, err);
	if (r < 0)
		return r;
	log->blobs[0] = oplogs_open_blobs(err);
	if (log->blobs[0] < 0)
		return log->blobs[0];
	*ret = TAKE_PTR(log);
	return 0;
}

/* Contents lie beside the log, or beside its directory. */
static void open_blobs_of(cloche_oplog *log, const char *path)
{
	static const char *const where[] = {"blobs", "../blobs"};
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		_cleanup_(freep) char *dir = NULL;

		if (asprintf(&dir, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, where[i]) <
			0)
			dir = NULL;
		if (dir)
			log->blobs[i] = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
}

int cloche_oplog_open_file(const char *path, cloche_oplog **ret, cloche_err *err)
{
	_cleanup_(cloche_oplog_freep) cloche_oplog *log = new_log();
	struct stat st;

	if (!log)
		return err_nomem(err);
	log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (log->fd < 0 && errno == ENOENT)
		return err_set(err, E_NOT_FOUND, "there is no file %s", path);
	if (log->fd < 0)
		return err_sys(err, errno, "open %s", path);
	if (fstat(log->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, E_USAGE, "%s is not a regular file", path);
	open_blobs_of(log, path);
	log->cassette_fd = oplog_open_cassette(AT_FDCWD, path);
	*ret = TAKE_PTR(log);
	return 0;
}

void cloche_oplog_free(cloche_oplog *log)
{
	if (!log)
		return;
	cassette_done(&log->cassette);
	fd_close(log->fd);
	fd_close(log->cassette_fd);
	fd_close(log->blobs[0]);
	fd_close(log->blobs[1]);
	strset_done(&log->right);
	strset_done(&log->wrong);
	free(log);
}

static int check_once(cloche_oplog *log, int fd, struct str ref, struct cloche_err *err)
{
	char text[STATE_REF_BYTES + 128];
	struct stat st;
	struct str file;
	int r;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %.*s", STR_FMT(ref));
	snprintf(text, sizeof(text), "%.*s %llx %llx %llx %llx.%lx", STR_FMT(ref),
		(unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		(unsigned long long)st.st_size, (unsigned long long)st.st_ctim.tv_sec,
		(unsigned long)st.st_ctim.tv_nsec);
	file = str_from(text);
	if (strset_has(&log->right, file))
		return 0;
	if (strset_has(&log->wrong, file))
		return err_set(err, E_CORRUPT, "%.*s was found to be wrong before", STR_FMT(ref));
	r = blob_check(fd, ref, err);
	if ((r == 0 || r == -E_CORRUPT) && strset_add(r == 0 ? &log->right : &log->wrong, file) < 0)
		return err_nomem(err);
	return r;
}

int oplog_open_content(cloche_oplog *log, struct str ref, struct cloche_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(log->blobs); i++) {
		_cleanup_fd_ int fd = -1;
		int r;

		if (log->blobs[i] < 0)
			continue;
		fd = blob_open(log->blobs[i], ref, err);
		if (fd == -E_NOT_FOUND) {
			err_clear(err);
			continue;
		}
		r = fd < 0 ? fd : check_once(log, fd, ref, err);
		return r < 0 ? r : TAKE_FD(fd);
	}
	return err_set(err, E_NOT_FOUND, "the contents %.*s are not beside the log", STR_FMT(ref));
}

/* --- reading --- */

struct reading {
	cloche_operation_fn fn;
	void *user;
	struct buf line;
};

JOB_ASK1(call_operation_fn, cloche_operation_fn, bool, false, const cloche_operation *)

static int oplog_pass_on(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct reading *q = user;
	cloche_operation o = {.number = op->number,
		.time_us = op->usec,
		.name = state_op_name(op->kind),
		.subject = op->subject.p,
		.object = op->object.p,
		.subject_length = op->subject.n,
		.object_length = op->object.n,
		.is_reference = op->is_ref,
		.mode = op->mode,
		.exec = op->exec};
	int r;

	if (op->kind == STATE_TABLES)
		return 0;
	buf_clear(&q->line);
	r = state_op_write(&q->line, op);
	o.json = r < 0 ? NULL : buf_cstr(&q->line);
	if (!o.json)
		return err_nomem(err);
	q->line.mem[q->line.tail - 1] = '\0';
	return call_operation_fn(q->fn, &o, q->user) ? 0 : 1;
}

int oplog_read_all(cloche_oplog *log, oplog_fn fn, void *user, struct cloche_err *err)
{
	return oplog_read_file(log->fd, log->id[0] ? NULL : &log->torn, fn, user, err);
}

uint64_t cloche_oplog_torn(const cloche_oplog *log)
{
	return log->torn;
}

int cloche_oplog_read(cloche_oplog *log, cloche_operation_fn fn, void *user, cloche_err *err)
{
	struct reading q = {fn, user, BUF_INIT((size_t)2 * STATE_LINE_MAX)};
	int r = oplog_read_all(log, oplog_pass_on, &q, err);

	buf_done(&q.line);
	return r < 0 ? r : 0;
}

int cloche_oplog_compact(const char *sandbox, cloche_compacted *ret, cloche_err *err)
{
	_cleanup_(cloche_oplog_freep) cloche_oplog *log = NULL;
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	_cleanup_fd_ int logs = -1, blobs = -1;
	struct compaction c;
	cloche_compacted own;
	int r = cloche_oplog_open(sandbox, &log, err);

	if (r == 0)
		r = oplogs_open_both(&logs, &blobs, err);
	if (r == 0)
		r = oplog_open(&l, logs, log->id, true, err);
	if (r == 0)
		r = oplog_compact(&l, true, &c, err);
	if (r < 0)
		return r;
	own = (cloche_compacted){c.before, c.after, c.bytes_before, c.bytes_after};
	r = oplogs_collect(logs, blobs, &own.contents_removed, &own.contents_bytes, err);
	if (r == 0 && ret)
		*ret = own;
	return r;
}

int cloche_oplog_remove(const char *sandbox, cloche_err *err)
{
	_cleanup_(cloche_oplog_freep) cloche_oplog *log = NULL;
	_cleanup_(cloche_instance_freep) cloche_instance *instance = NULL;
	_cleanup_fd_ int logs = -1, blobs = -1;
	uint64_t removed, bytes;
	int r = cloche_oplog_open(sandbox, &log, err);

	if (r < 0)
		return r;
	if (cloche_instance_open(log->id, &instance, NULL) == 0 &&
		cloche_instance_refresh(instance, NULL) == 0 && instance->life == SANDBOX_LIVE) {
		err_set(err, E_BUSY, "sandbox %s runs, and writes its log", log->id);
		err_hint(err, "stop it first: cloche stop %s", log->id);
		return -E_BUSY;
	}
	r = oplogs_open_both(&logs, &blobs, err);
	if (r == 0)
		r = oplog_remove(logs, log->id, err);
	if (r < 0)
		return r;
	netlogs_remove(log->id);
	r = oplogs_collect(logs, blobs, &removed, &bytes, err);
	return r < 0 ? err_wrap(err, r, "the log was removed, but not contents that it alone named")
		     : 0;
}

/* --- exporting --- */

/* SandboX knows no references to files' contents, so a text takes the place of its reference. The
 * bound is for logs that name the same large file very often. */
enum { TEXTS_MAX = 256 << 20 };

struct exporting {
	cloche_oplog *log;
	int blobs, out;
	struct buf line, text;
	size_t texts; /* bytes of the lines that have a text in place of a reference; TEXTS_MAX:
		       * no more of them */
};

static int copy_content(struct exporting *x, struct str ref, struct cloche_err *err)
{
	_cleanup_(blob_donep) struct blob_writer w = BLOB_WRITER_INIT;
	_cleanup_fd_ int fd = -1;
	char chunk[16384], name[STATE_REF_BYTES + 1];
	int r;

	snprintf(name, sizeof(name), "%.*s", STR_FMT(ref));
	if (faccessat(x->blobs, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	fd = oplog_open_content(x->log, ref, err);
	if (fd < 0)
		return fd;
	r = blob_begin(&w, x->blobs, err);
	while (r == 0) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "read %s", name);
		if (n == 0)
			return blob_finish(&w, false, name, err);
		if (n > 0)
			r = blob_add(&w, str_make(chunk, (size_t)n), err);
	}
	return r;
}

/* Write the line with the contents in place of their reference. Return 1, or 0 if they are no text,
 * or if the texts become too long. */
static int line_with_text(struct exporting *x, const struct state_op *op, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	struct state_op own = *op;
	int r;

	if (x->texts == TEXTS_MAX || !op->is_ref ||
		(op->kind != STATE_FS_WRITE && op->kind != STATE_FS_APPEND))
		return 0;
	fd = oplog_open_content(x->log, op->object, err);
	if (fd < 0)
		return fd;
	buf_clear(&x->text);
	r = fd_read_to_end(fd, &x->text);
	own.is_ref = false;
	own.object = buf_str(&x->text);
	if (r == 0 && !utf8_is_valid(own.object))
		return 0;
	if (r == 0)
		r = state_op_write(&x->line, &own);
	if (r == -E2BIG)
		return 0;
	if (r < 0)
		return err_sys(err, -r, "read %.*s", STR_FMT(op->object));
	/* The first that does not fit is the end, so the rest is not read in vain. */
	if (buf_len(&x->line) > TEXTS_MAX - x->texts) {
		x->texts = TEXTS_MAX;
		return 0;
	}
	x->texts += buf_len(&x->line);
	return 1;
}

static int line_as_it_is(struct exporting *x, const struct state_op *op, struct cloche_err *err)
{
	struct str ref;
	int r = 0;

	for (unsigned i = 0; r == 0 && state_op_ref(op, i, &ref); i++)
		r = copy_content(x, ref, err);
	buf_clear(&x->line);
	if (r == 0 && state_op_write(&x->line, op) < 0)
		return err_nomem(err);
	return r;
}

static int export_one(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct exporting *x = user;
	int r;

	if (op->kind == STATE_TABLES)
		return 0;
	buf_clear(&x->line);
	r = line_with_text(x, op, err);
	if (r == 0)
		r = line_as_it_is(x, op, err);
	if (r < 0)
		return r;
	r = fd_write_all(x->out, buf_data(&x->line), buf_len(&x->line));
	return r < 0 ? err_sys(err, -r, "write the log") : 0;
}

static int make_dir_at(int dir, const char *name, struct cloche_err *err)
{
	int fd;

	if (mkdirat(dir, name, 0700) < 0)
		return err_sys(err, errno, "make the directory %s", name);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(err, errno, "open %s", name) : fd;
}

static int export_to(struct exporting *x, int dir, struct cloche_err *err)
{
	_cleanup_fd_ int logs = make_dir_at(dir, STATEDIR_LOGS, err), blobs = -1, out = -1;
	char file[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)];
	int r;

	if (logs < 0)
		return logs;
	blobs = make_dir_at(dir, STATEDIR_BLOBS, err);
	if (blobs < 0)
		return blobs;
	log_file(x->log->id[0] ? x->log->id : "log", file);
	out = openat(logs, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(err, errno, "create %s", file);
	x->blobs = blobs;
	x->out = out;
	r = oplog_read_all(x->log, export_one, x, err);
	return r < 0 ? r : oplog_export_cassette(x->log, logs, err);
}

int cloche_oplog_export(cloche_oplog *log, const char *directory, cloche_err *err)
{
	struct exporting x = {.log = log,
		.line = BUF_INIT((size_t)STATE_LINE_MAX),
		.text = BUF_INIT((size_t)STATE_LINE_MAX)};
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_fd_ int dir = -1;
	int r = files_host_find(directory, "export to", &at, err);

	if (r == 0)
		r = dir = make_dir_at(at.dir, at.name[0] ? at.name : ".", err);
	if (dir < 0 && r < 0 && at.dir >= 0)
		err_wrap(err, r, "export to %s", directory);
	if (r >= 0)
		r = export_to(&x, dir, err);
	buf_done(&x.line);
	buf_done(&x.text);
	/* All of it, or nothing. */
	if (dir >= 0 && r < 0)
		(void)fs_remove_tree(at.dir, at.name);
	return r;
}

uint64_t cloche_oplog_size(const cloche_oplog *log)
{
	uint64_t size = 0;
	struct stat st;

	if (fstat(log->fd, &st) == 0)
		size += (uint64_t)st.st_size;
	if (log->cassette_fd >= 0 && fstat(log->cassette_fd, &st) == 0)
		size += (uint64_t)st.st_size;
	return size;
}

int cloche_oplog_report(cloche_oplog *log, int fd, cloche_err *err)
{
	_cleanup_(freep) char *homes = NULL;
	struct report_source source = {.log = log->fd,
		.torn = log->id[0] ? NULL : &log->torn,
		.id = log->id,
		.user = log,
		.open = oplog_open_content,
		.requests = cloche_oplog_requests,
		.body = cloche_oplog_read_body};
	struct cloche_err own = CLOCHE_ERR_INIT;

	if (statedir_path("homes", &homes, NULL) == 0)
		source.homes = homes;
	return report_write(&source, fd, err ? err : &own);
}

/* --- listing --- */

struct listing {
	cloche_oplog_fn fn;
	void *user;
};

JOB_ASK3(call_oplog_fn, cloche_oplog_fn, bool, false, const char *, uint64_t, uint64_t)

static int list_one(int logs, const char *id, void *user, struct cloche_err *err)
{
	const struct listing *l = user;
	char file[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)];
	struct stat st;

	log_file(id, file);
	if (fstatat(logs, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return call_oplog_fn(l->fn, id, (uint64_t)st.st_size,
		       (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC +
			       (uint64_t)st.st_mtim.tv_nsec / 1000,
		       l->user)
		       ? 0
		       : 1;
}

int cloche_oplog_list(cloche_oplog_fn fn, void *user, cloche_err *err)
{
	struct listing l = {fn, user};
	_cleanup_fd_ int logs = oplogs_open(err);

	return logs < 0 ? logs : oplogs_each(logs, list_one, &l, err);
}
