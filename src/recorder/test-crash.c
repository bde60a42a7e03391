/* SPDX-License-Identifier: Apache-2.0 */
/* A child does operations on a log that is synced always and compacted by itself, says of each when
 * it is done, and is killed at a random moment, again and again; sometimes so is whoever compacts.
 * After each kill the log must load and have what was acknowledged, in order, and at most the one
 * operation more that was under way (INV-CRASH-SAFE). */
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "record/background.h"
#include "record/compact.h"
#include "record/state.h"
#include "recorder/program.h"
#include "tap.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPERATIONS = 20000, KILLS = 200, KEYS = 40, EVENT_EACH = 20, DELETE_EACH = 97 };
#define FROM ((uint64_t)64 << 10)

/* In memory if that is possible: no disk is under test. */
static char dir[TAP_DIR_BYTES], libexec[80];
static int dirfd_ = -1;

/* What the first n operations have left: which one set each key, 0 if it is not there. */
struct model {
	unsigned n, keys[KEYS], events;
};

static unsigned key_of(unsigned i)
{
	return i * 7 % KEYS;
}

static bool is_event(unsigned i)
{
	return i % EVENT_EACH == 0;
}

static void go_on(struct model *m)
{
	unsigned i = ++m->n;

	if (is_event(i))
		m->events++;
	else
		m->keys[key_of(i)] = i % DELETE_EACH == 0 ? 0 : i;
}

static int do_one(struct state *s, unsigned i)
{
	char key[16], value[900];
	int n;
	struct state_op op = {.kind = STATE_STORAGE_SET, .mode = STATE_NO_MODE};

	snprintf(key, sizeof(key), "k%u", key_of(i));
	memset(value, 'x', sizeof(value));
	if (is_event(i)) {
		op.kind = STATE_EXEC_START;
		n = snprintf(value, sizeof(value), "{\"exec\":%u}", i);
		op.object = str_make(value, (size_t)n);
	} else if (i % DELETE_EACH == 0) {
		op.kind = STATE_STORAGE_DELETE;
		op.subject = str_from(key);
	} else {
		n = snprintf(value, sizeof(value), "%u ", i);
		value[n] = 'x';
		op.subject = str_from(key);
		op.object = str_make(value, 20 + i * 31 % 800);
	}
	return state_change(s, &op, NULL);
}

static _noreturn_ void write_on(unsigned from, int acknowledge)
{
	struct state s = STATE_INIT;

	must(state_open(&s, dirfd_, "crash", true, NULL) == 0);
	s.log.sync = OPLOG_SYNC_ALWAYS;
	s.log.compact_from = FROM;
	for (unsigned i = from;; i++) {
		must(do_one(&s, i) == 0);
		must(write(acknowledge, &i, sizeof(i)) == sizeof(i));
	}
}

/* --- what the log has --- */

struct found {
	struct model m;
	uint64_t last;
	bool in_order;
};

static int take(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct found *f = user;
	unsigned key;

	(void)offset;
	(void)err;
	if (op->kind == STATE_TABLES)
		return 0;
	f->in_order &= op->number > f->last;
	f->last = op->number;
	if (op->kind == STATE_EXEC_START) {
		unsigned i = (unsigned)json_integer_value(json_object_get(op->args, "exec"));

		f->in_order &= i == ++f->m.events * EVENT_EACH;
		return 0;
	}
	key = (unsigned)strtoul(op->subject.p + 1, NULL, 10);
	f->m.keys[key] =
		op->kind == STATE_STORAGE_SET ? (unsigned)strtoul(op->object.p, NULL, 10) : 0;
	return 0;
}

static bool is_same(const struct found *f, const struct model *m)
{
	return f->m.events == m->events && memcmp(f->m.keys, m->keys, sizeof(m->keys)) == 0;
}

/* Whoever reads the tables begins with the last entry that has them all. */
static void check_tables(const struct model *m)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	unsigned keys[KEYS] = {0};

	must(state_open(&s, dirfd_, "crash", false, NULL) == 0);
	if (state_refresh(&s, NULL) < 0)
		tap_fail("the tables do not load");
	for (const struct state_pair *p = s.storage.pairs; p; p = p->hh.next)
		keys[strtoul(p->key + 1, NULL, 10)] = (unsigned)strtoul(p->value, NULL, 10);
	check(memcmp(keys, m->keys, sizeof(keys)) == 0);
}

/* m: what was acknowledged; becomes what there is. */
static void check_log(struct model *m)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	struct found f = {.in_order = true};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct model more = *m;

	go_on(&more);
	must(oplog_open(&l, dirfd_, "crash", false, NULL) == 0);
	if (oplog_read(&l, take, &f, NULL, &err) < 0)
		tap_fail("after %u operations: %s", m->n, err.message);
	if (!f.in_order)
		tap_fail("after %u operations: not in order", m->n);
	if (is_same(&f, &more))
		*m = more;
	else if (!is_same(&f, m))
		tap_fail("after %u operations: not what was acknowledged", m->n);
	check_tables(m);
}

/* --- rounds --- */

/* Those who compact belong to nobody, and so come to us. */
static unsigned kill_compactors(void)
{
	char path[64], text[4096] = "", *at = text, *end;
	unsigned n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	fd_close(fd);
	for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
		n += kill((pid_t)pid, SIGKILL) == 0;
	return n;
}

static ino_t inode(void)
{
	struct stat st;

	return fstatat(dirfd_, "crash.jsonl", &st, 0) == 0 ? st.st_ino : 0;
}

static void one_round(struct model *m)
{
	unsigned wanted = m->n + 1 + (unsigned)rand_below(200), i;
	struct timespec moment = {.tv_nsec = (long)rand_below(300) * 1000};
	int pipe_[2], status;
	pid_t pid;

	must(pipe2(pipe_, O_CLOEXEC) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		write_on(m->n + 1, pipe_[1]);
	fd_close(pipe_[1]);
	while (m->n < wanted && read(pipe_[0], &i, sizeof(i)) == sizeof(i))
		go_on(m);
	nanosleep(&moment, NULL);
	kill(pid, SIGKILL);
	must(waitpid(pid, &status, 0) == pid);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (read(pipe_[0], &i, sizeof(i)) == sizeof(i))
		go_on(m);
	fd_close(pipe_[0]);
	check_int(i, m->n);
}

static void test_killed_at_any_moment(void)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	unsigned kills = 0, killed = 0, replaced = 0;
	unsigned operations = tap_rounds(OPERATIONS), wanted = tap_rounds(KILLS);
	struct model m = {0};
	struct compaction done;
	ino_t was = 0;

	while (kills < wanted || m.n < operations) {
		ino_t now;

		one_round(&m);
		if (kills++ % 3 == 0)
			killed += kill_compactors();
		check_log(&m);
		now = inode();
		replaced += was && now != was;
		was = now;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!tap_ok_now)
			return;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	check_log(&m);
	printf("# %u operations, %u kills; %u compactions seen, %u killed\n", m.n, kills, replaced,
		killed);
	check(replaced > 0);
	must(oplog_open(&l, dirfd_, "crash", true, NULL) == 0);
	check_int(oplog_compact(&l, true, &done, NULL), 0);
	check(done.bytes_after <= done.bytes_before);
	check_log(&m);
}

int main(int argc, char **argv)
{
	char self[PATH_MAX] = "", link[128];

	/* We are also what is started to compact. */
	if (argc == 4 && strcmp(argv[1], "compact") == 0)
		return compactor_program(argv[2], argv[3]);
	tap_fast_dir(dir);
	must((dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
	snprintf(libexec, sizeof(libexec), "%s/libexec", dir);
	must(mkdir(libexec, 0700) == 0);
	snprintf(link, sizeof(link), "%s/cloche-recorder", libexec);
	must(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 && symlink(self, link) == 0);
	must(setenv("CLOCHE_LIBEXEC", libexec, 1) == 0);
	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	run_test(test_killed_at_any_moment);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
