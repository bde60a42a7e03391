/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "record/compact.h"
#include "record/state.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int dirfd_ = -1;

static struct state_op set_op(const char *key, const char *value)
{
	return (struct state_op){.kind = STATE_ENV_SET,
		.subject = str_from(key),
		.object = str_from(value),
		.mode = STATE_NO_MODE};
}

static void set(struct state *s, const char *key, const char *value)
{
	struct state_op op = set_op(key, value);

	must(state_change(s, &op, NULL) == 0);
}

static void open_state(struct state *s, const char *name)
{
	must(state_open(s, dirfd_, name, true, NULL) == 0);
}

static void raw_write(const char *name, struct str text, int flags)
{
	int fd = openat(dirfd_, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	must(fd >= 0 && fd_write_all(fd, text.p, text.n) == 0);
	fd_close(fd);
}

static void check_value(struct state *s, const char *key, const char *want)
{
	const struct state_pair *p = state_find(&s->env, str_from(key));

	if (want && p)
		check_z(p->value, want);
	else
		check((want != NULL) == (p != NULL));
}

static void test_two_handles(void)
{
	_cleanup_(state_closep) struct state a = STATE_INIT, b = STATE_INIT;

	open_state(&a, "two");
	open_state(&b, "two");
	check_int(faccessat(dirfd_, "two.jsonl", F_OK, 0), -1);
	set(&a, "A", "1");
	set(&b, "A", "2");
	set(&b, "B", "3");
	check_int(b.log.number, 3);
	check_value(&a, "A", "1");
	must(state_refresh(&a, NULL) == 0);
	check_value(&a, "A", "2");
	check_value(&a, "B", "3");
	check_int(a.log.number, 3);
	check(a.env.pairs && strcmp(a.env.pairs->key, "A") == 0);
}

static void test_torn_end(void)
{
	_cleanup_(state_closep) struct state a = STATE_INIT, b = STATE_INIT;

	open_state(&a, "torn");
	set(&a, "A", "1");
	raw_write("torn.jsonl", STR("{\"op\":\"env.set\",\"args\":{\"key\":\"A\",\"va"), O_APPEND);
	open_state(&b, "torn");
	check_int(state_refresh(&b, NULL), 0);
	check_value(&b, "A", "1");
	set(&b, "B", "2");
	must(state_refresh(&a, NULL) == 0);
	check_value(&a, "B", "2");
	check_int(a.log.number, 2);
	/* what a power cut leaves: the length, without the bytes */
	raw_write("torn.jsonl", str_make((char[9000]){0}, 9000), O_APPEND);
	set(&a, "C", "3");
	must(state_refresh(&b, NULL) == 0);
	check_value(&b, "C", "3");
}

static int count(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	unsigned *n = user;

	check_int(op->kind, STATE_STORAGE_CLEAR);
	++*n;
	return 0;
}

/* That is no end: nobody reads it as empty, and nobody writes over it. */
static void test_lost(void)
{
	static const char zeros[9000];
	_cleanup_(state_closep) struct state a = STATE_INIT, b = STATE_INIT;
	struct cloche_err err = CLOCHE_ERR_INIT;
	uint64_t torn;
	unsigned n = 0;
	struct stat st;

	raw_write("lost.jsonl", str_make(zeros, sizeof(zeros)), O_TRUNC);
	open_state(&a, "lost");
	check_int(state_refresh(&a, &err), -E_CORRUPT);
	check(strstr(err.message, "zeros") != NULL);
	open_state(&b, "lost");
	check_int(state_begin(&b, NULL), -E_CORRUPT);
	check(fstatat(dirfd_, "lost.jsonl", &st, 0) == 0 && st.st_size == sizeof(zeros));
	check_int(oplog_read_file(a.log.fd, NULL, count, &n, NULL), -E_CORRUPT);
	check_int(oplog_read_file(a.log.fd, &torn, count, &n, NULL), -E_CORRUPT);
}

static void test_damaged_in_the_middle(void)
{
#define CLEAR "{\"op\":\"storage.clear\",\"args\":{}"
	static const struct {
		const char *log, *says;
	} rows[] = {{CLEAR "}\nrubbish\n" CLEAR "}\n", "entry 2"},
		{CLEAR ",\"n\":5}\n" CLEAR ",\"n\":5}\n", "number 5 is not above"},
		{CLEAR ",\"n\":9223372036854775807}\n" CLEAR "}\n", "there is no number above"}};
#undef CLEAR

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(state_closep) struct state s = STATE_INIT;
		struct cloche_err err = CLOCHE_ERR_INIT;

		raw_write("damaged.jsonl", str_from(rows[i].log), O_TRUNC);
		open_state(&s, "damaged");
		check_int(state_refresh(&s, &err), -E_CORRUPT);
		check(strstr(err.message, rows[i].says) != NULL);
	}
}

/* One that the original wrote: no numbers, no times. */
static void test_of_the_original(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;

	raw_write("original.jsonl",
		STR("{\"op\":\"env.set\",\"args\":{\"key\":\"A\",\"value\":\"1\"}}\n"
		    "{\"op\":\"storage.set\",\"args\":{\"key\":\"k\",\"value\":\"v\"}}\n\n"
		    "{\"op\":\"assets.list\",\"args\":{}}\n"),
		O_TRUNC);
	open_state(&s, "original");
	must(state_refresh(&s, NULL) == 0);
	check_int(s.log.number, 3);
	set(&s, "B", "2");
	check_int(s.log.number, 4);
}

/* Let no file grow above 50,000 bytes. Return an operation that does not fit. */
static struct state_op full_disk_begin(struct rlimit *old)
{
	static char much[60000];
	struct rlimit small = {.rlim_cur = 50000};

	memset(much, 'x', sizeof(much) - 1);
	must(getrlimit(RLIMIT_FSIZE, old) == 0);
	small.rlim_max = old->rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	must(setrlimit(RLIMIT_FSIZE, &small) == 0);
	return set_op("A", much);
}

/* A file that cannot grow: nothing half-done is left, neither in the log nor in the tables. */
static void test_full_disk(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	struct state_op op;
	struct rlimit old;
	struct stat st;

	open_state(&s, "full");
	set(&s, "A", "1");
	op = full_disk_begin(&old);
	check(state_change(&s, &op, NULL) < 0);
	must(setrlimit(RLIMIT_FSIZE, &old) == 0);
	must(state_refresh(&s, NULL) == 0);
	check_value(&s, "A", "1");
	must(fstatat(dirfd_, "full.jsonl", &st, 0) == 0);
	check_int(st.st_size, (long long)s.log.size);
	set(&s, "A", "2");
	check_int(s.log.number, 2);
}

/* A second operation under the same lock continues the log as it is. */
static void test_after_a_failure(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT, again = STATE_INIT;
	struct state_op large, op = set_op("A", "2");
	struct rlimit old;

	open_state(&s, "failed");
	set(&s, "B", "1");
	large = full_disk_begin(&old);
	must(state_begin(&s, NULL) == 0);
	check(state_record(&s, &large, NULL) < 0);
	check(state_record(&s, &large, NULL) < 0);
	check_int(state_record(&s, &op, NULL), 0);
	state_end(&s);
	must(setrlimit(RLIMIT_FSIZE, &old) == 0);
	open_state(&again, "failed");
	check_int(state_refresh(&again, NULL), 0);
	check_int(again.log.number, 2);
	check_value(&again, "A", "2");
	check_value(&again, "B", "1");
}

/* The largest value, in the form that takes most: escapes, and all of it once more in base64. */
static void test_largest_value(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT, again = STATE_INIT;
	char *much = malloc(STATE_VALUE_MAX);
	struct state_op op = {.kind = STATE_STORAGE_SET,
		.subject = STR("k"),
		.object = str_make(much, STATE_VALUE_MAX),
		.mode = STATE_NO_MODE};
	const struct state_pair *p;

	must(much != NULL);
	memset(much, 'x', STATE_VALUE_MAX);
	/* What takes most room in an entry, and time. */
	memset(much, 1, tap_rounds(STATE_VALUE_MAX));
	much[STATE_VALUE_MAX - 1] = '\xff';
	open_state(&s, "largest");
	check_int(state_change(&s, &op, NULL), 0);
	open_state(&again, "largest");
	must(state_refresh(&again, NULL) == 0);
	p = state_find(&again.storage, STR("k"));
	check(p && p->value_n == STATE_VALUE_MAX && memcmp(p->value, much, p->value_n) == 0);
	free(much);
}

static void test_limits_of_the_tables(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	static char much[STATE_ENV_MAX - 3];
	int i = 0, r = 0;

	memset(much, 'x', sizeof(much) - 1);
	open_state(&s, "limits");
	for (; r == 0 && i < 100; i++) {
		char key[16];
		struct state_op op;

		snprintf(key, sizeof(key), "K%d", i);
		op = set_op(key, much);
		r = state_change(&s, &op, NULL);
	}
	check_int(r, -E_LIMIT);
	check_int(s.log.number, i - 1);
	must(state_refresh(&s, NULL) == 0);
}

static int unset(struct state *s, const char *key)
{
	struct state_op op = {
		.kind = STATE_ENV_DELETE, .subject = str_from(key), .mode = STATE_NO_MODE};

	return state_change(s, &op, NULL);
}

/* Whatever is unset is known, also to who begins in the middle of a log, until it is set again. */
static void test_unset(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT, late = STATE_INIT;
	char key[STATE_KEY_MAX];
	int r = 0;

	open_state(&s, "unset");
	must(unset(&s, "OF CREATE") == 0 && unset(&s, "A") == 0 && unset(&s, "A") == 0);
	set(&s, "A", "1");
	for (int i = 0; i < 3000; i++)
		set(&s, "B", "much that puts the tables into the log");
	open_state(&late, "unset");
	must(state_refresh(&late, NULL) == 0);
	check(late.log.number == s.log.number && late.tables_at > 0);
	check(state_find(&late.unset, STR("OF CREATE")) && !state_find(&late.unset, STR("A")));
	check_value(&late, "A", "1");
	memset(key, 'x', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	for (int i = 0; i < 26 && r == 0; i++) {
		key[0] = (char)('a' + i);
		r = unset(&s, key);
	}
	check_int(r, -E_LIMIT);
	check(s.unset.bytes <= STATE_UNSET_TOTAL);
	check_int(unset(&s, "OF CREATE"), 0);
}

/* Whoever comes late reads the end alone, and finds the same. */
static void test_long_log(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT, late = STATE_INIT, again = STATE_INIT;
	_cleanup_(state_closep) struct state torn = STATE_INIT;
	struct compaction done;
	char key[16], value[16];
	struct stat st;

	open_state(&s, "long");
	for (int i = 0; i < 3000; i++) {
		snprintf(key, sizeof(key), "K%d\xff", i % 7);
		snprintf(value, sizeof(value), "%d\xfe", i);
		set(&s, key, value);
	}
	open_state(&late, "long");
	must(oplog_find(&late.log, STATE_TABLES_BEGIN, NULL) == 0);
	must(fstatat(dirfd_, "long.jsonl", &st, 0) == 0);
	check((uint64_t)st.st_size - late.log.size < 40000);
	late.log.size = 0;
	must(state_refresh(&late, NULL) == 0);
	check_int(late.log.number, 3000);
	check_int(late.log.size, st.st_size);
	check_value(&late, "K3\xff", "2999\xfe");
	check_value(&late, "K4\xff", "2993\xfe");
	check(strcmp(late.env.pairs->key, "K0\xff") == 0);
	/* one that is torn is none */
	raw_write("long.jsonl", STATE_TABLES_BEGIN, O_APPEND);
	open_state(&torn, "long");
	must(state_refresh(&torn, NULL) == 0);
	check_value(&torn, "K3\xff", "2999\xfe");
	/* what comes then is seen by all */
	set(&late, "NEW", "x");
	set(&s, "NEWER", "y");
	must(state_refresh(&late, NULL) == 0);
	check_value(&late, "NEWER", "y");
	check_int(s.log.number, 3002);
	must(oplog_compact(&s.log, true, &done, NULL) == 0);
	check_int(done.before, 3002);
	check_int(done.after, 9);
	open_state(&again, "long");
	must(state_refresh(&again, NULL) == 0);
	check_value(&again, "K3\xff", "2999\xfe");
	check_value(&again, "NEWER", "y");
}

/* Processes that append at the same time: each finds its own order, and no number is missing. */
static void test_many_writers(void)
{
	enum { WRITERS = 4, EACH = 200 };
	_cleanup_(state_closep) struct state s = STATE_INIT;
	pid_t pids[WRITERS];

	for (int w = 0; w < WRITERS; w++) {
		pids[w] = fork();
		must(pids[w] >= 0);
		if (pids[w] == 0) {
			struct state own = STATE_INIT;
			char key[8], value[8];

			open_state(&own, "many");
			snprintf(key, sizeof(key), "W%d", w);
			for (int i = 0; i < EACH; i++) {
				snprintf(value, sizeof(value), "%d", i);
				set(&own, key, value);
			}
			_exit(state_close(&own, NULL) < 0);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		must(waitpid(pids[w], &status, 0) == pids[w]);
		check_int(status, 0);
	}
	open_state(&s, "many");
	must(state_refresh(&s, NULL) == 0);
	check_int(s.log.number, WRITERS * EACH);
	for (int w = 0; w < WRITERS; w++) {
		char key[16];

		snprintf(key, sizeof(key), "W%d", w);
		check_value(&s, key, "199");
	}
}

static struct state_op write_op(struct str path, const char *data)
{
	return (struct state_op){.kind = STATE_FS_WRITE,
		.subject = path,
		.object = str_from(data),
		.mode = STATE_NO_MODE};
}

/* Operations that are recorded together: each has its number, and all are there or none. */
static void test_together(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT, late = STATE_INIT;
	struct state_op ops[] = {
		write_op(STR("a"), "1"), write_op(STR("b"), "2"), write_op(STR("c"), "3")};
	struct stat before, after;

	open_state(&s, "together");
	set(&s, "A", "1");
	must(state_begin(&s, NULL) == 0);
	check_int(state_record_files(&s, ops, ARRAY_SIZE(ops), NULL), 0);
	check_int((long long)ops[2].number, 4);
	must(fstatat(dirfd_, "together.jsonl", &before, 0) == 0);
	ops[1] = write_op(STR("nul\0"), "2");
	check_int(state_record_files(&s, ops, ARRAY_SIZE(ops), NULL), -E_USAGE);
	must(fstatat(dirfd_, "together.jsonl", &after, 0) == 0);
	check_int(after.st_size, before.st_size);
	ops[1] = write_op(STR("b"), "2");
	check_int(state_record_files(&s, ops, ARRAY_SIZE(ops), NULL), 0);
	state_end(&s);
	set(&s, "A", "2");
	open_state(&late, "together");
	must(state_refresh(&late, NULL) == 0);
	check_int(late.log.number, 8);
	check_value(&late, "A", "2");
}

/* Whoever holds the old file goes on with the new one. */
static void test_compacted_meanwhile(void)
{
	_cleanup_(state_closep) struct state a = STATE_INIT, b = STATE_INIT;
	struct compaction done;

	open_state(&a, "anew");
	open_state(&b, "anew");
	set(&a, "A", "1");
	set(&a, "B", "1");
	set(&b, "A", "2");
	set(&b, "A", "3");
	must(oplog_compact(&b.log, true, &done, NULL) == 0);
	check_int(done.before, 4);
	check_int(done.after, 3);
	must(state_refresh(&a, NULL) == 0);
	check_value(&a, "A", "3");
	check_value(&a, "B", "1");
	check_int(a.log.number, 4);
	set(&a, "C", "4");
	set(&b, "D", "5");
	check_int(b.log.number, 6);
	must(state_refresh(&a, NULL) == 0);
	check_value(&a, "D", "5");
	/* removed, and made again */
	must(unlinkat(dirfd_, "anew.jsonl", 0) == 0);
	must(state_refresh(&b, NULL) == 0);
	check_value(&b, "D", NULL);
	set(&a, "E", "6");
	check_int(a.log.number, 1);
	check_value(&a, "D", NULL);
}

/* Entry N sets "N" to N - 1. Tables, which are written now and then, have no number. */
static int is_next(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	uint64_t *n = user;
	char want[24];

	if (op->kind == STATE_TABLES)
		return 0;
	snprintf(want, sizeof(want), "%llu", (unsigned long long)(*n)++);
	check_int(op->kind, STATE_ENV_SET);
	check_int(op->number, *n);
	check(str_eq(op->object, str_from(want)));
	return 0;
}

/* Writes one entry after the other, and tells of each that is acknowledged. */
static void write_for_ever(int fd)
{
	struct state s = STATE_INIT;
	char value[24];

	open_state(&s, "killed");
	s.log.sync = OPLOG_SYNC_ALWAYS;
	must(state_refresh(&s, NULL) == 0);
	for (uint64_t n = s.log.number;; n++) {
		snprintf(value, sizeof(value), "%llu", (unsigned long long)n);
		set(&s, "N", value);
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

/* The number of the last entry that was acknowledged before the writer was killed. */
static uint64_t killed_after(unsigned acknowledged)
{
	uint64_t last = 0;
	int fds[2];
	pid_t pid;

	must(pipe(fds) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		write_for_ever(fds[1]);
	close(fds[1]);
	for (unsigned i = 0; i < acknowledged; i++)
		must(read(fds[0], &last, sizeof(last)) == sizeof(last));
	must(kill(pid, SIGKILL) == 0);
	must(waitpid(pid, NULL, 0) == pid);
	while (read(fds[0], &last, sizeof(last)) == sizeof(last))
		;
	close(fds[0]);
	return last + 1;
}

/* Killed at random moments, again and again: the log has what was acknowledged, in order, and at
 * most the entry that was in flight besides. With CLOCHE_TEST_ALL there are some 20,000 entries. */
static void test_killed(void)
{
	int rounds = (int)tap_rounds(getenv("CLOCHE_TEST_ALL") ? 200 : 20);
	uint64_t all = 0;

	for (int round = 0; round < rounds; round++) {
		_cleanup_(state_closep) struct state s = STATE_INIT;
		_cleanup_fd_ int fd = -1;
		uint64_t last = killed_after(1 + (unsigned)(rand_u64() % 200));

		open_state(&s, "killed");
		must(state_refresh(&s, NULL) == 0);
		check(s.log.number == last || s.log.number == last + 1);
		all = 0;
		fd = openat(dirfd_, "killed.jsonl", O_RDONLY | O_CLOEXEC);
		must(fd >= 0);
		must(oplog_read_file(fd, NULL, is_next, &all, NULL) == 0);
		check_int(all, s.log.number);
	}
	printf("# %llu entries, killed %d times\n", (unsigned long long)all, rounds);
}

/* Who needs the tables alone passes over the rest, and counts it. */
static void test_tables_only(void)
{
	_cleanup_(state_closep) struct state s = STATE_INIT, reader = STATE_INIT;
	struct state_op event = {
		.kind = STATE_EXEC_START, .object = STR("{\"exec\":1}"), .mode = STATE_NO_MODE};

	open_state(&s, "only");
	set(&s, "A", "1");
	must(state_change(&s, &event, NULL) == 0);
	set(&s, "B", "2");
	open_state(&reader, "only");
	reader.log.tables_only = true;
	must(state_refresh(&reader, NULL) == 0);
	check_value(&reader, "A", "1");
	check_value(&reader, "B", "2");
	check_int(reader.log.number, 3);
}

int main(void)
{
	tap_fast_dir(dir);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd_ >= 0);
	run_test(test_two_handles);
	run_test(test_torn_end);
	run_test(test_lost);
	run_test(test_damaged_in_the_middle);
	run_test(test_of_the_original);
	run_test(test_full_disk);
	run_test(test_after_a_failure);
	run_test(test_largest_value);
	run_test(test_limits_of_the_tables);
	run_test(test_unset);
	run_test(test_long_log);
	run_test(test_many_writers);
	run_test(test_together);
	run_test(test_compacted_meanwhile);
	run_test(test_tables_only);
	run_test(test_killed);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
