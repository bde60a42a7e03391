/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A recorder of a directory, and what it has put on record. */

#include "base/fd.h"
#include "fs/fs.h"
#include "recorder/recorder.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int top = -1;
static unsigned made;

struct fixture {
	struct recorder r;
	int ws;
	char id[16];
};

static inline int make_dir(const char *name)
{
	int fd;

	must(mkdirat(top, name, 0755) == 0);
	fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0);
	return fd;
}

/* A recorder of one directory, /w inside. */
static inline void setup(struct fixture *f)
{
	char name[32];

	*f = (struct fixture){.r = {.lock = -1}};
	snprintf(f->id, sizeof(f->id), "%u", ++made);
	snprintf(name, sizeof(name), "logs-%u", made);
	f->r.logs = make_dir(name);
	snprintf(name, sizeof(name), "contents-%u", made);
	f->r.contents = make_dir(name);
	snprintf(name, sizeof(name), "ws-%u", made);
	f->ws = make_dir(name);
	must(recorder_open(&f->r, f->id, NULL) == 0);
	f->r.trees[0] = (struct recorder_tree){
		.fd = fcntl(f->ws, F_DUPFD_CLOEXEC, 3), .path = strdup("/w")};
	f->r.trees_n = 1;
}

static inline void teardown(struct fixture *f)
{
	recorder_done(&f->r);
	fd_close(f->r.logs);
	fd_close(f->r.contents);
	fd_close(f->ws);
}

static inline void put(int at, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static inline void look(struct fixture *f, uint32_t exec)
{
	f->r.exec = exec;
	check_int(recorder_take(&f->r, STATE_UNKNOWN, STR_NULL, -1, RECORDER_LOOK, NULL), 0);
}

struct listing {
	struct buf text;
	uint32_t exec;
};

static inline int list_one(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct listing *l = user;

	if (op->exec != l->exec)
		return 0;
	if (op->kind == STATE_FS_SKIP)
		return buf_printf(&l->text, "fs.skip %.*s: %.*s\n",
			STR_FMT(json_str_at(op->args, "path")),
			STR_FMT(json_str_at(op->args, "why")));
	return buf_printf(&l->text, "%s %.*s\n", state_op_name(op->kind), STR_FMT(op->subject));
}

/* The entries of one command, a line each. */
static inline void check_entries(struct fixture *f, uint32_t exec, const char *want)
{
	struct listing l = {.text = BUF_INIT(1 << 20), .exec = exec};
	_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;

	must(oplog_open(&log, f->r.logs, f->id, false, NULL) == 0);
	must(oplog_read(&log, list_one, &l, NULL, NULL) == 0);
	check_z(buf_len(&l.text) ? buf_cstr(&l.text) : "", want);
	buf_done(&l.text);
}

static inline void record_mode(struct fixture *f, enum state_op_kind kind, const char *path,
	const char *object, uint32_t mode)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	struct state_op op = {.kind = kind,
		.subject = str_from(path),
		.object = str_from(object),
		.is_ref = state_is_ref(str_from(object)),
		.mode = mode};

	must(state_open(&s, f->r.logs, f->id, true, NULL) == 0);
	must(state_change(&s, &op, NULL) == 0);
}

static inline void record(
	struct fixture *f, enum state_op_kind kind, const char *path, const char *object)
{
	record_mode(f, kind, path, object, STATE_NO_MODE);
}

static inline void testing_begin(void)
{
	tap_dir(dir);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top >= 0);
}

static inline int testing_end(void)
{
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
