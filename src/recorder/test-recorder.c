/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/fs.h"
#include "recorder/recorder.h"
#include "state/compact.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char dir[] = "/tmp/test-recorder-XXXXXX";
static int top = -1;
static unsigned made;

struct fixture {
	struct recorder r;
	int ws;
	char id[16];
};

static int make_dir(const char *name)
{
	int fd;

	must(mkdirat(top, name, 0755) == 0);
	fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0);
	return fd;
}

/* A recorder of one directory, /w inside. */
static void setup(struct fixture *f)
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
	f->r.trees[0] = (struct tree){.fd = fcntl(f->ws, F_DUPFD_CLOEXEC, 3), .path = strdup("/w")};
	f->r.trees_n = 1;
}

static void teardown(struct fixture *f)
{
	recorder_done(&f->r);
	fd_close(f->r.logs);
	fd_close(f->r.contents);
	fd_close(f->ws);
}

static void put(int at, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static void look(struct fixture *f, uint32_t exec)
{
	f->r.exec = exec;
	check_int(recorder_take(&f->r, STATE_UNKNOWN, STR_NULL, -1, RECORDER_LOOK, NULL), 0);
}

struct listing {
	struct buf text;
	uint32_t exec;
};

static int list_one(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct listing *l = user;

	if (op->exec != l->exec)
		return 0;
	return buf_printf(&l->text, "%s %.*s\n", state_op_name(op->kind), STR_FMT(op->subject));
}

/* The entries of one command, a line each. */
static void check_entries(struct fixture *f, uint32_t exec, const char *want)
{
	struct listing l = {.text = BUF_INIT(1 << 20), .exec = exec};
	_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;

	must(oplog_open(&log, f->r.logs, f->id, false, NULL) == 0);
	must(oplog_read(&log, list_one, &l, NULL, NULL) == 0);
	check_z(buf_len(&l.text) ? buf_cstr(&l.text) : "", want);
	buf_done(&l.text);
}

static void test_changes(void)
{
	struct fixture f;

	setup(&f);
	must(mkdirat(f.ws, "d", 0755) == 0);
	look(&f, 0);
	check_entries(&f, 0, "fs.mkdir /w/d\n");
	look(&f, 1);
	check_entries(&f, 1, "");
	put(f.ws, "d/a", "one");
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/d/a\n");
	must(fchmodat(f.ws, "d/a", 0600, 0) == 0);
	look(&f, 3);
	check_entries(&f, 3, "fs.chmod /w/d/a\n");
	must(unlinkat(f.ws, "d/a", 0) == 0 && unlinkat(f.ws, "d", AT_REMOVEDIR) == 0);
	must(symlinkat("/", f.ws, "d") == 0);
	look(&f, 4);
	/* Not what is below, which a link might lead to. */
	check_entries(&f, 4, "fs.delete /w/d\nfs.delete /w/d\nfs.symlink /w/d\n");
	teardown(&f);
}

/* In the same tick, of the same length: no time tells. */
static void test_at_once(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	for (uint32_t i = 1; i <= 20; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%04u", i);
		put(f.ws, "a", text);
		look(&f, i);
		check_entries(&f, i, "fs.write /w/a\n");
	}
	teardown(&f);
}

#define REF_OF_SAME "sha256-0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"

static void record(struct fixture *f, enum state_op_kind kind, const char *path, const char *object)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	struct state_op op = {.kind = kind,
		.subject = str_from(path),
		.object = str_from(object),
		.is_ref = kind == STATE_ASSETS_UPLOAD,
		.mode = STATE_NO_MODE};

	must(state_open(&s, f->r.logs, f->id, true, NULL) == 0);
	must(state_change(&s, &op, NULL) == 0);
}

/* What somebody outside did and put on record is not found again; what came after is. */
static void test_from_outside(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	put(f.ws, "a", "same");
	record(&f, STATE_FS_WRITE, "/w/a", "same");
	put(f.ws, "b", "later");
	record(&f, STATE_FS_WRITE, "/w/b", "sooner");
	record(&f, STATE_FS_WRITE, "/w/c", "gone again");
	record(&f, STATE_FS_WRITE, "/tmp/c", "somewhere else");
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/b\nfs.delete /w/c\n");
	put(f.ws, "asset", "same");
	record(&f, STATE_ASSETS_UPLOAD, "/w/asset", REF_OF_SAME);
	look(&f, 2);
	check_entries(&f, 2, "");
	must(unlinkat(f.ws, "a", 0) == 0);
	record(&f, STATE_FS_DELETE, "/w/a", "");
	look(&f, 3);
	check_entries(&f, 3, "");
	teardown(&f);
}

static void compact(struct fixture *f)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	struct compaction done;

	must(oplog_open(&l, f->r.logs, f->id, true, NULL) == 0);
	must(oplog_compact(&l, true, &done, NULL) == 0);
}

/* What is known stays known when the compacted log takes the place of the one that was read. */
static void test_compacted(void)
{
	struct fixture f;

	setup(&f);
	put(f.ws, "a", "one");
	put(f.ws, "b", "one");
	look(&f, 0);
	put(f.ws, "a", "two");
	look(&f, 1);
	compact(&f);
	look(&f, 2);
	check_entries(&f, 2, "");
	/* with what it has not yet been told of */
	put(f.ws, "c", "outside");
	record(&f, STATE_FS_WRITE, "/w/c", "before");
	record(&f, STATE_FS_WRITE, "/w/c", "outside");
	compact(&f);
	put(f.ws, "b", "three");
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/b\n");
	teardown(&f);
}

static void test_too_large(void)
{
	struct fixture f;
	_cleanup_fd_ int fd = -1;

	setup(&f);
	f.r.limit = 100000;
	look(&f, 0);
	fd = openat(f.ws, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0);
	look(&f, 1);
	check_entries(&f, 0, "fs.skip \n");
	must(ftruncate(fd, 90000) == 0);
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/sparse\n");
	put(f.ws, "small", "is still on record");
	must(ftruncate(fd, 95000) == 0);
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/small\n");
	teardown(&f);
}

static void test_too_many(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct fixture f;

	setup(&f);
	look(&f, 0);
	for (unsigned i = 0; i < RECORDER_MAX_SEEN; i++) {
		char path[32];
		struct seen *s;

		snprintf(path, sizeof(path), "/elsewhere/%u", i);
		s = seen_add(&f.r, path);
		must(s);
		s->tree = RECORDER_MAX_TREES;
	}
	put(f.ws, "a", "one more");
	f.r.exec = 1;
	check_int(recorder_take(&f.r, STATE_UNKNOWN, STR_NULL, -1, RECORDER_LOOK, &err), -E_LIMIT);
	check(strstr(err.message, "more than 200000 files"));
	look(&f, 2);
	teardown(&f);
}

static void test_events(void)
{
	struct fixture f;

	setup(&f);
	check_int(recorder_take(
			  &f.r, STATE_EXEC_START, STR("{\"exec\":1}"), -1, RECORDER_NO_LOOK, NULL),
		0);
	f.r.exec = 1;
	check_int(
		recorder_take(&f.r, STATE_EXEC_END, STR("\"exec\":1"), -1, RECORDER_LOOK, NULL), 0);
	check_entries(&f, 0, "exec.start \nexec.end \n");
	teardown(&f);
}

int main(void)
{
	must(mkdtemp(dir) != NULL);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top >= 0);
	run_test(test_changes);
	run_test(test_at_once);
	run_test(test_from_outside);
	run_test(test_compacted);
	run_test(test_too_large);
	run_test(test_too_many);
	run_test(test_events);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
