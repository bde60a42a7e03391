/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a log gives what all of it gives: logs are applied to directories of a real file
 * system, which are then compared. */
#include "base/fd.h"
#include "fs/fs.h"
#include "record/compact.h"
#include "seeded.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int dirfd_ = -1;

static void add(struct oplog *l, enum state_op_kind kind, const char *subject, const char *object,
	uint32_t mode)
{
	struct state_op op = {.kind = kind,
		.subject = str_from(subject),
		.object = str_from(object),
		.mode = mode};

	must(oplog_append(l, &op, 1, NULL) == 0);
}

/* Names of the operations that are left, each with a letter of its path or key. */
static int name_it(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	const char *name = state_op_name(op->kind);

	(void)offset;
	(void)err;
	return buf_printf(user, "%s:%.*s ", strchr(name, '.') + 1, STR_FMT(op->subject));
}

struct row {
	enum state_op_kind kind;
	const char *subject, *object;
	uint32_t mode;
};
#define ROW(kind, ...)                                                                             \
	{                                                                                          \
		STATE_##kind, __VA_ARGS__                                                          \
	}

static void check_left(const struct row *rows, size_t n, const char *want)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT, again = OPLOG_INIT;
	_cleanup_(buf_donep) struct buf got = BUF_INIT(4096);
	struct compaction done;

	(void)unlinkat(dirfd_, "rows.jsonl", 0);
	must(oplog_open(&l, dirfd_, "rows", true, NULL) == 0);
	must(oplog_lock(&l, NULL) == 0);
	for (size_t i = 0; i < n; i++)
		add(&l, rows[i].kind, rows[i].subject, rows[i].object,
			rows[i].mode ? rows[i].mode : STATE_NO_MODE);
	oplog_unlock(&l);
	must(oplog_compact(&l, true, &done, NULL) == 0);
	check_int(done.before, n);
	must(oplog_open(&again, dirfd_, "rows", false, NULL) == 0);
	must(oplog_read(&again, name_it, &got, NULL, NULL) == 0);
	must(buf_add_char(&got, '\0') == 0);
	check_z(buf_data(&got), want);
}
#define LEFT(want, ...)                                                                            \
	do {                                                                                       \
		const struct row rows_[] = {__VA_ARGS__};                                          \
		check_left(rows_, ARRAY_SIZE(rows_), want);                                        \
	} while (0)

static void test_as_the_original(void)
{
	LEFT("write:a ", ROW(FS_WRITE, "a", "1"), ROW(FS_WRITE, "a", "2"), ROW(FS_WRITE, "a", "3"));
	LEFT("delete:a ", ROW(FS_WRITE, "a", "1"), ROW(FS_DELETE, "a"));
	LEFT("set:K ", ROW(ENV_SET, "K", "1"), ROW(ENV_SET, "K", "2"), ROW(ENV_SET, "K", "3"));
	LEFT("set:K set:L set:K ", ROW(ENV_SET, "K", "1"), ROW(ENV_SET, "L", "2"),
		ROW(ENV_SET, "K", "3"));
	LEFT("set:L set:K ", ROW(ENV_SET, "K", "1"), ROW(ENV_SET, "L", "2"), ROW(ENV_DELETE, "K"),
		ROW(ENV_SET, "K", "3"));
	LEFT("clear: set:b ", ROW(STORAGE_SET, "a", "1"), ROW(STORAGE_CLEAR),
		ROW(STORAGE_SET, "b", "1"));
	LEFT("delete:K delete:K ", ROW(ENV_SET, "K", "1"), ROW(ENV_DELETE, "K"),
		ROW(STORAGE_DELETE, "K"));
}

/* What the original gets wrong: the file came back. */
static void test_deleted_directories(void)
{
	LEFT("delete:d ", ROW(FS_DELETE, "d"), ROW(FS_WRITE, "d/a", "1"), ROW(FS_DELETE, "d"));
	LEFT("delete:d write:d/a ", ROW(FS_WRITE, "d/a", "1"), ROW(FS_DELETE, "d"),
		ROW(FS_WRITE, "d/a", "2"));
	LEFT("delete:./d/ ", ROW(FS_WRITE, "d//a/./b", "1"), ROW(FS_DELETE, "./d/"));
	LEFT("write:da delete:d ", ROW(FS_WRITE, "da", "1"), ROW(FS_DELETE, "d"));
}

static void test_what_stays(void)
{
	/* the directory of what was deleted */
	LEFT("mkdir:d delete:d/a ", ROW(FS_WRITE, "d/a", "1"), ROW(FS_DELETE, "d/a"));
	/* a mode, and what is added to */
	LEFT("write:a write:a ", ROW(FS_WRITE, "a", "1", 0700), ROW(FS_WRITE, "a", "2"));
	LEFT("write:a ", ROW(FS_WRITE, "a", "1", 0700), ROW(FS_WRITE, "a", "2", 0600));
	LEFT("write:a append:a ", ROW(FS_WRITE, "a", "1"), ROW(FS_APPEND, "a", "2"));
	LEFT("write:a ", ROW(FS_WRITE, "a", "1"), ROW(FS_APPEND, "a", "2"),
		ROW(FS_WRITE, "a", "3"));
	LEFT("write:a chmod:a write:a ", ROW(FS_WRITE, "a", "1"), ROW(FS_CHMOD, "a", NULL, 0700),
		ROW(FS_WRITE, "a", "2"));
	LEFT("chmod:a write:a ", ROW(FS_CHMOD, "a", NULL, 0700), ROW(FS_WRITE, "a", "2"));
	/* known by two names */
	LEFT("write:a rename:a write:a ", ROW(FS_WRITE, "a", "1"), ROW(FS_RENAME, "a", "b"),
		ROW(FS_WRITE, "a", "2"));
	LEFT("write:d/a symlink:l delete:l ", ROW(FS_WRITE, "d/a", "1"), ROW(FS_SYMLINK, "l", "d"),
		ROW(FS_DELETE, "l"));
	LEFT("write:d/../a delete:a ", ROW(FS_WRITE, "d/../a", "1"), ROW(FS_DELETE, "a"));
}

/* --- applied to directories --- */

static void split(struct str path, char text[64])
{
	must(path.n < 64);
	if (path.n > 0)
		memcpy(text, path.p, path.n);
	text[path.n] = '\0';
}

static void make_parents(int root, const char *path)
{
	char part[64];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		memcpy(part, path, (size_t)(at - path));
		part[at - path] = '\0';
		(void)mkdirat(root, part, 0755);
	}
}

static bool write_it(int root, const char *path, const struct state_op *op, int flags)
{
	int fd;

	make_parents(root, path);
	fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
	if (fd < 0)
		return false;
	must(fd_write_all(fd, op->object.p, op->object.n) == 0);
	if (op->mode != STATE_NO_MODE)
		must(fchmod(fd, op->mode) == 0);
	fd_close(fd);
	return true;
}

/* As the file worker does it. */
static bool do_it(int root, const struct state_op *op)
{
	char path[64], other[64];
	struct stat st;

	split(op->subject, path);
	split(op->object, other);
	if (op->kind == STATE_FS_WRITE)
		return write_it(root, path, op, O_TRUNC);
	if (op->kind == STATE_FS_APPEND)
		return write_it(root, path, op, O_APPEND);
	if (op->kind == STATE_FS_DELETE)
		return faccessat(root, path, F_OK, 0) == 0 && fs_remove_tree(root, path) == 0;
	if (op->kind == STATE_FS_CHMOD)
		return fchmodat(root, path, op->mode, 0) == 0;
	if (op->kind == STATE_FS_RENAME)
		return renameat(root, path, root, other) == 0;
	make_parents(root, path);
	return mkdirat(root, path, 0755) == 0 ||
	       (fstatat(root, path, &st, 0) == 0 && S_ISDIR(st.st_mode));
}

static int apply(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	(void)offset;
	(void)err;
	/* What is deleted may be void already. */
	check(do_it(*(int *)user, op) || op->kind == STATE_FS_DELETE);
	return 0;
}

static struct buf listing = BUF_INIT(1 << 20);
static size_t root_n;

static int list_it(const char *path, const struct stat *st, int type, struct FTW *at)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);

	(void)at;
	if (type == FTW_F)
		must(fd_read_file(AT_FDCWD, path, &text, NULL) == 0);
	return buf_printf(
		&listing, "%s %o %.*s\n", path + root_n, st->st_mode, STR_FMT(buf_str(&text)));
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int open_root(char root[128])
{
	int fd;

	snprintf(root, 128, "%s/root", dir);
	must(mkdir(root, 0755) == 0);
	root_n = strlen(root);
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0);
	return fd;
}

/* What is in it, in lines that are sorted; and removes it. */
static char *close_root(const char *root, int fd)
{
	_cleanup_(buf_donep) struct buf sorted = BUF_INIT(1 << 20);
	char *lines[256], *text, *line;
	size_t n = 0;

	buf_clear(&listing);
	must(nftw(root, list_it, 16, FTW_PHYS) == 0);
	fd_close(fd);
	must(fs_remove_tree(dirfd_, "root") == 0);
	text = buf_cstr(&listing);
	must(text != NULL);
	while ((line = strsep(&text, "\n")))
		lines[n++] = line;
	qsort(lines, n, sizeof(lines[0]), compare_lines);
	for (size_t i = 0; i < n; i++)
		must(buf_printf(&sorted, "%s\n", lines[i]) == 0);
	return str_dup(buf_str(&sorted));
}

/* What a log makes of an empty directory. */
static char *replay(const char *log)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	char root[128];
	int fd = open_root(root);

	must(oplog_open(&l, dirfd_, log, false, NULL) == 0);
	must(oplog_read(&l, apply, &fd, NULL, NULL) == 0);
	return close_root(root, fd);
}

static uint64_t any(uint64_t below)
{
	return seeded_next() % below;
}

/* Does what comes to mind in a directory and records what could be done; what came of it. */
static char *live(struct oplog *l)
{
	static const char *const paths[] = {
		"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f/a", "g/a", "./d//a"};
	static const enum state_op_kind kinds[] = {STATE_FS_WRITE, STATE_FS_WRITE, STATE_FS_WRITE,
		STATE_FS_APPEND, STATE_FS_DELETE, STATE_FS_DELETE, STATE_FS_MKDIR, STATE_FS_CHMOD,
		STATE_FS_RENAME};
	static const uint32_t modes[] = {STATE_NO_MODE, STATE_NO_MODE, 0600, 0755};
	char data[24], root[128];
	uint64_t n = 1 + any(30);
	int fd = open_root(root);

	for (uint64_t i = 0; i < n; i++) {
		struct state_op op = {.kind = kinds[any(ARRAY_SIZE(kinds))],
			.subject = str_from(paths[any(ARRAY_SIZE(paths))]),
			.mode = STATE_NO_MODE};

		snprintf(data, sizeof(data), "%llu", (unsigned long long)i);
		if (op.kind == STATE_FS_WRITE || op.kind == STATE_FS_APPEND)
			op.object = str_from(data);
		else if (op.kind == STATE_FS_RENAME)
			op.object = str_from(paths[any(ARRAY_SIZE(paths))]);
		if (op.kind == STATE_FS_WRITE)
			op.mode = modes[any(ARRAY_SIZE(modes))];
		else if (op.kind == STATE_FS_CHMOD)
			op.mode = 0700;
		if (do_it(fd, &op))
			must(oplog_append(l, &op, 1, NULL) == 0);
	}
	return close_root(root, fd);
}

static void test_generated(void)
{
	uint64_t before = 0, after = 0;

	for (int round = 0; round < 1000 && tap_ok_now; round++) {
		_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
		_cleanup_(freep) char *want = NULL, *got = NULL, *left = NULL;
		struct compaction done;

		(void)unlinkat(dirfd_, "any.jsonl", 0);
		must(oplog_open(&l, dirfd_, "any", true, NULL) == 0);
		l.sync = OPLOG_SYNC_NEVER;
		must(oplog_lock(&l, NULL) == 0);
		want = live(&l);
		oplog_unlock(&l);
		got = replay("any");
		check_z(got, want);
		must(oplog_compact(&l, true, &done, NULL) == 0);
		left = replay("any");
		check_z(left, want);
		before += done.before;
		after += done.after;
	}
	printf("# %llu of %llu operations were left\n", (unsigned long long)after,
		(unsigned long long)before);
	check(after < before);
}

int main(void)
{
	seeded_begin();
	tap_fast_dir(dir);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd_ >= 0);
	run_test(test_as_the_original);
	run_test(test_deleted_directories);
	run_test(test_what_stays);
	run_test(test_generated);
	buf_done(&listing);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
