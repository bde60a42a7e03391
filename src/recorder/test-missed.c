/* SPDX-License-Identifier: Apache-2.0 */
/* What is too much for a record, or cannot be looked at. */
#include "jail/caps.h"
#include "manager/execlog.h"
#include "recorder/test-recorder.h"

#include <sys/resource.h>

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
	check_entries(&f, 0, "fs.skip /w/sparse: it is too large\n");
	must(ftruncate(fd, 90000) == 0);
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/sparse\n");
	put(f.ws, "small", "is still on record");
	must(ftruncate(fd, 95000) == 0);
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/small\n");
	teardown(&f);
}

/* A file that was too large for a while is on record again, with its mode, even if its contents are
 * the old ones. */
static void test_large_for_a_while(void)
{
	struct fixture f;
	_cleanup_fd_ int fd = -1;

	setup(&f);
	put(f.ws, "a", "one");
	look(&f, 0);
	fd = openat(f.ws, "a", O_WRONLY | O_CLOEXEC);
	must(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0 && fchmod(fd, 0600) == 0);
	look(&f, 1);
	check_entries(&f, 0, "fs.write /w/a\nfs.skip /w/a: it is too large\n");
	must(ftruncate(fd, 3) == 0);
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/a\n");
	teardown(&f);
}

/* A file that is looked at again, and has not changed, does not count again. */
static void test_unchanged_counts_once(void)
{
	struct fixture f;
	uint64_t used;
	_cleanup_fd_ int fd = -1;

	setup(&f);
	f.r.limit = 100000;
	fd = openat(f.ws, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && ftruncate(fd, 90000) == 0);
	look(&f, 0);
	used = f.r.used;
	must(fchmod(fd, 0600) == 0 && used > 90000);
	look(&f, 1);
	look(&f, 2);
	check_int(f.r.used < used + 1000, 1);
	check_entries(&f, 1, "fs.chmod /w/a\n");
	check_entries(&f, 2, "");
	teardown(&f);
}

/* What small files take in the log itself counts, too: a zero byte takes six there. */
static void test_small_files_count(void)
{
	struct fixture f;
	_cleanup_fd_ int fd = -1;

	setup(&f);
	f.r.limit = 100000;
	look(&f, 0);
	fd = openat(f.ws, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && ftruncate(fd, 30000) == 0);
	look(&f, 1);
	check_entries(&f, 1, "fs.write /w/a\n");
	put(f.ws, "b", "beyond the limit");
	must(fchmodat(f.ws, "a", 0600, 0) == 0);
	look(&f, 2);
	check_entries(&f, 2, "fs.chmod /w/a\n");
	check_entries(&f, 0, "state.tables \nfs.skip /w/b: the limit of the record is reached\n");
	teardown(&f);
}

/* A look that misses something. It says so, the first time. */
static void look_and_miss(struct fixture *f, uint32_t exec)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	f->r.exec = exec;
	check_int(recorder_take(&f->r, STATE_UNKNOWN, STR_NULL, -1, RECORDER_LOOK, &err), -E_LIMIT);
	check(strstr(err.message, "fs.skip"));
}

#define UNREADABLE ": it cannot be read\n"

/* What root of an ordinary user's room closes to that user, it can still read itself. */
static void test_unreadable_file(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	put(f.ws, "a", "one");
	must(fchmodat(f.ws, "a", 0, 0) == 0);
	look_and_miss(&f, 1);
	look(&f, 2);
	check_entries(&f, 0, "fs.skip /w/a" UNREADABLE);
	check_entries(&f, 1, "");
	must(fchmodat(f.ws, "a", 0600, 0) == 0);
	look(&f, 3);
	check_entries(&f, 3, "fs.write /w/a\n");
	must(fchmodat(f.ws, "a", 0, 0) == 0);
	look(&f, 4);
	check_entries(&f, 4, "fs.chmod /w/a\n");
	/* Once more after somebody outside has put its contents on record. */
	record(&f, STATE_FS_WRITE, "/w/a", "two");
	look(&f, 5);
	look(&f, 6);
	check_entries(&f, 0,
		"fs.skip /w/a" UNREADABLE "fs.skip /w/a" UNREADABLE
		"fs.write /w/a\nfs.skip /w/a" UNREADABLE);
	check_entries(&f, 5, "");
	check_entries(&f, 6, "");
	teardown(&f);
}

/* Neither are its names gone. */
static void test_unreadable_directory(void)
{
	static const mode_t modes[] = {0, 0400, 0300};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct fixture f;

		setup(&f);
		must(mkdirat(f.ws, "d", 0700) == 0);
		put(f.ws, "d/a", "one");
		look(&f, 0);
		must(fchmodat(f.ws, "d", modes[i], 0) == 0);
		look_and_miss(&f, 1);
		look(&f, 2);
		must(fchmodat(f.ws, "d", 0700, 0) == 0 && unlinkat(f.ws, "d/a", 0) == 0);
		look(&f, 3);
		check_entries(&f, 0, "fs.mkdir /w/d\nfs.write /w/d/a\nfs.skip /w/d" UNREADABLE);
		check_entries(&f, 1, "fs.chmod /w/d\n");
		check_entries(&f, 2, "");
		check_entries(&f, 3, "fs.chmod /w/d\nfs.delete /w/d/a\n");
		teardown(&f);
	}
}

static void test_unreadable_top(void)
{
	struct fixture f;

	setup(&f);
	put(f.ws, "a", "one");
	look(&f, 0);
	must(fchmod(f.ws, 0) == 0);
	look_and_miss(&f, 1);
	look(&f, 2);
	must(fchmod(f.ws, 0700) == 0 && unlinkat(f.ws, "a", 0) == 0);
	look(&f, 3);
	check_entries(&f, 0, "fs.write /w/a\nfs.skip /w" UNREADABLE);
	check_entries(&f, 1, "fs.chmod /w\n");
	check_entries(&f, 2, "");
	check_entries(&f, 3, "fs.chmod /w\nfs.delete /w/a\n");
	teardown(&f);
}

/* Make directories of this name in each other, with a file in each. */
static void make_chain(int ws, const char *name, unsigned n)
{
	int at = fcntl(ws, F_DUPFD_CLOEXEC, 3);

	for (; n > 0; n--) {
		int next;

		must(mkdirat(at, name, 0755) == 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(next >= 0);
		fd_close(at);
		at = next;
		put(at, "f", "deep");
	}
	fd_close(at);
}

static void remove_chain(int ws, const char *name, unsigned n)
{
	_cleanup_fd_ int at = openat(ws, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(at >= 0 && unlinkat(at, "f", 0) == 0);
	if (n > 1)
		remove_chain(at, name, n - 1);
	must(unlinkat(ws, name, AT_REMOVEDIR) == 0);
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* What is no file, directory or link has an entry when it comes, gets another mode, or becomes
 * something else. */
static void test_special(void)
{
#define SPECIAL "fs.skip /w/a: it is no file, directory or link\n"
	struct fixture f;

	setup(&f);
	must(mkfifoat(f.ws, "a", 0644) == 0);
	look(&f, 0);
	look(&f, 1);
	check_entries(&f, 0, SPECIAL);
	must(fchmodat(f.ws, "a", 0600, 0) == 0);
	look(&f, 2);
	look(&f, 2);
	check_entries(&f, 0, SPECIAL SPECIAL);
	must(unlinkat(f.ws, "a", 0) == 0 && mkdirat(f.ws, "a", 0700) == 0);
	look(&f, 3);
	check_entries(&f, 3, "fs.delete /w/a\nfs.mkdir /w/a\n");
	must(unlinkat(f.ws, "a", AT_REMOVEDIR) == 0 && mkfifoat(f.ws, "a", 0600) == 0);
	look(&f, 4);
	check_entries(&f, 4, "fs.delete /w/a\n");
	must(unlinkat(f.ws, "a", 0) == 0 && mknodat(f.ws, "a", S_IFSOCK | 0600, 0) == 0);
	look(&f, 5);
	check_entries(&f, 5, "fs.delete /w/a\n");
	check_entries(&f, 0, SPECIAL SPECIAL SPECIAL SPECIAL);
	must(unlinkat(f.ws, "a", 0) == 0);
	look(&f, 6);
	check_entries(&f, 6, "fs.delete /w/a\n");
	teardown(&f);
}

/* What lies deeper than a look goes, or has too long a path, has one entry. */
static void test_too_deep(void)
{
	char name[251];
	const struct {
		const char *name, *why;
		unsigned n, found;
	} rows[] = {{"d", ": it is too deep\n", RECORDER_MAX_DEPTH + 20, RECORDER_MAX_DEPTH},
		{name, ": a path in it is too long\n", 20, STATE_PATH_MAX / sizeof(name)}};

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct listing l = {.text = BUF_INIT(1 << 20)};
		_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;
		struct fixture f;

		setup(&f);
		make_chain(f.ws, rows[i].name, rows[i].n);
		look_and_miss(&f, 0);
		look(&f, 0);
		must(oplog_open(&log, f.r.logs, f.id, false, NULL) == 0);
		must(oplog_read(&log, list_one, &l, NULL, NULL) == 0);
		check_int(count_of(buf_cstr(&l.text), "fs.mkdir"), rows[i].found);
		check_int(count_of(buf_cstr(&l.text), "fs.skip"), 1);
		check_int(count_of(buf_cstr(&l.text), rows[i].why), 1);
		buf_done(&l.text);
		remove_chain(f.ws, rows[i].name, rows[i].n);
		teardown(&f);
	}
}

static void print(struct execlog *l, int stream, char c, size_t n)
{
	char text[1000];

	must(n <= sizeof(text));
	memset(text, c, n);
	execlog_write(l, stream, text, n);
}

static int get_last(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct buf *text = user;

	buf_clear(text);
	return op->kind == STATE_EXEC_END ? json_text_write(text, op->args, JSON_TEXT_COMPACT) : 0;
}

/* Record the output as that of a command; get the entry's arguments. */
static void end_command(struct fixture *f, int exec, struct buf *ret)
{
	_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;

	check_int(recorder_take(
			  &f->r, STATE_EXEC_END, STR("\"exec\":1"), exec, RECORDER_NO_LOOK, NULL),
		0);
	must(oplog_open(&log, f->r.logs, f->id, false, NULL) == 0);
	must(oplog_read(&log, get_last, ret, NULL, NULL) == 0);
}

/* Output counts like files, and what fits is kept. */
static void test_too_much_output(void)
{
	_cleanup_(buf_donep) struct buf args = BUF_INIT(1 << 20);
	struct execlog l = EXECLOG_INIT;
	struct fixture f;
	int exec;

	setup(&f);
	f.r.limit = 1000;
	exec = make_dir("exec");
	must(execlog_make(&l, exec, EXECLOG_MIN_BYTES) == 0);
	print(&l, 1, 'a', 300);
	print(&l, 2, 'b', 400);
	print(&l, 1, 'c', 400);
	print(&l, 2, 'd', 400);
	end_command(&f, exec, &args);
	check(strstr(buf_cstr(&args), "\"order\":[300,400,300],\"cut\":true"));
	check(strstr(buf_cstr(&args), "aaccc") && strstr(buf_cstr(&args), "ccc\""));
	check(strstr(buf_cstr(&args), "bbb\"") && !strstr(buf_cstr(&args), "dd"));
	check_int(f.r.used > 1000, 1);
	end_command(&f, exec, &args);
	check_z(buf_cstr(&args), "{\"exec\":1,\"stdout\":\"\",\"stderr\":\"\",\"cut\":true}");
	execlog_done(&l);
	fd_close(exec);
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
	check_entries(&f, 0, "fs.skip /w: there are too many files to know all\n");
	teardown(&f);
}

/* Make so many directories "d" below each other, and return the lowest. */
static int make_deep(int at, int levels)
{
	int fd = fcntl(at, F_DUPFD_CLOEXEC, 3);

	for (int i = 0; i < levels; i++) {
		int next;

		must(mkdirat(fd, "d", 0755) == 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(next >= 0);
		close(fd);
		fd = next;
	}
	return fd;
}

static void test_deep_with_few_descriptors(void)
{
	struct fixture f;
	struct rlimit before, few;

	setup(&f);
	close(make_deep(f.ws, RECORDER_MAX_DEPTH - 1));
	must(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){64, before.rlim_max};
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	look(&f, 0);
	/* Also where the names are known. */
	usleep(60 * 1000);
	look(&f, 1);
	look(&f, 2);
	check_entries(&f, 1, "");
	check_entries(&f, 2, "");
	must(setrlimit(RLIMIT_NOFILE, &before) == 0);
	teardown(&f);
}

static int no_secret(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	check(str_find(op->subject, STR("secret")) == op->subject.n);
	return 0;
}

/* Somebody exchanges a directory, on a long way down, and a link that leads out all the time. */
static void test_exchanged_all_the_time(void)
{
	_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;
	_cleanup_fd_ int deep = -1, outside = make_dir("outside");
	struct fixture f;
	pid_t pid;

	setup(&f);
	put(outside, "secret", "x");
	deep = make_deep(f.ws, 10);
	close(make_deep(deep, 20));
	must(symlinkat("../../../../../../../../../../../outside", deep, "link") == 0);
	must(faccessat(deep, "link/secret", F_OK, 0) == 0);
	pid = tap_exchange(deep, "d", "link");
	for (uint32_t i = 0; i < 100; i++)
		look(&f, i);
	tap_exchange_end(pid);
	must(oplog_open(&log, f.r.logs, f.id, false, NULL) == 0);
	check_int(oplog_read(&log, no_secret, NULL, NULL, NULL), 0);
	teardown(&f);
}

int main(void)
{
	/* Root could read everything. */
	must(caps_set(0, NULL) == 0);
	testing_begin();
	run_test(test_too_large);
	run_test(test_large_for_a_while);
	run_test(test_unchanged_counts_once);
	run_test(test_small_files_count);
	run_test(test_too_much_output);
	run_test(test_unreadable_file);
	run_test(test_unreadable_directory);
	run_test(test_unreadable_top);
	run_test(test_special);
	run_test(test_too_deep);
	run_test(test_too_many);
	run_test(test_deep_with_few_descriptors);
	run_test(test_exchanged_all_the_time);
	return testing_end();
}
