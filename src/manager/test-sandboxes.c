/* SPDX-License-Identifier: Apache-2.0 */
/* INV-NOTHING-OUTLIVES, as far as directories go: who is live, who is not, who removes what, and
 * that two who do it at the same time do not both win. */
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "manager/cleanup.h"
#include "manager/looks.h"
#include "manager/own.h"
#include "manager/sandboxes.h"
#include "tap.h"

#include <cloche/job.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int base = -1;

static void fresh(void)
{
	tap_dir(dir);
	setenv("CLOCHE_RUNTIME_DIR", dir, 1);
	fd_close(base);
	base = rundir_open(NULL);
	must(base >= 0);
}

static void clear(void)
{
	fs_remove_tree(AT_FDCWD, dir);
}

static size_t count(void)
{
	_cleanup_(strv_freep) char **ids = NULL;

	must(sandboxes_list(base, &ids, NULL) == 0);
	return strv_count(ids);
}

static int life(const char *id)
{
	struct sandbox_entry e;
	int l = sandbox_open(base, id, &e, NULL) < 0 ? -1 : (int)e.life;

	sandbox_entry_done(&e);
	return l;
}

static struct sandbox_dir make(char id[RUNDIR_ID_BYTES + 1])
{
	struct sandbox_dir d = SANDBOX_DIR_INIT;

	rundir_make_id(id);
	must(sandbox_dir_make(&d, id, NULL) == 0);
	return d;
}

/* As if its process had been killed: the lock goes, nothing else does. */
static void crash(struct sandbox_dir *d)
{
	d->lock = fd_close(d->lock);
	d->fd = fd_close(d->fd);
	d->base = fd_close(d->base);
	d->listen = fd_close(d->listen);
	free(d->id);
	free(d->name);
}

static void end_in_order(struct sandbox_dir *d)
{
	must(sandbox_dir_write_record(d, STR(RECORD_ENDED ",\"x\":1}\n"), NULL) == 0);
	sandbox_dir_leave(d);
}

static void the_lock_alone_says_who_lives(void)
{
	char a[RUNDIR_ID_BYTES + 1], b[RUNDIR_ID_BYTES + 1], c[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir da = make(a), db = make(b), dc = make(c);

	check_int(life(a), SANDBOX_LIVE);
	/* A record that lies, from before the last boot perhaps. */
	must(sandbox_dir_write_record(&db, STR("{\"state\":\"running\",\"pid\":1}\n"), NULL) == 0);
	crash(&db);
	check_int(life(b), SANDBOX_CRASHED);
	end_in_order(&dc);
	check_int(life(c), SANDBOX_ENDED);
	/* Nor does a record that says "stopped" make a live one an ended one. */
	must(sandbox_dir_write_record(&da, STR(RECORD_ENDED "}\n"), NULL) == 0);
	check_int(life(a), SANDBOX_LIVE);
	sandboxes_sweep(base, NULL, NULL);
	check_int(life(a), SANDBOX_LIVE);
	check_int(life(b), -1);
	check_int(life(c), SANDBOX_ENDED);
	check_int(sandbox_remove(base, c, NULL), 0);
	check_int(sandbox_remove(base, c, NULL), 0);
	sandbox_dir_remove(&da);
	check_int(count(), 0);
}

static void with_few_descriptors(rlim_t n, void (*fn)(const char *id), const char *id)
{
	struct rlimit old, few;

	must(getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = (struct rlimit){n, old.rlim_max};
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	fn(id);
	must(setrlimit(RLIMIT_NOFILE, &old) == 0);
}

static int seen;

static void sweep_and_look(const char *id)
{
	struct sandbox_entry entry;

	sandboxes_sweep(base, NULL, NULL);
	seen = sandbox_open(base, id, &entry, NULL);
	if (seen == 0)
		seen = entry.life;
	sandbox_entry_done(&entry);
}

static void try_to_remove(const char *id)
{
	seen = sandbox_remove(base, id, NULL);
}

/* Without descriptors nobody can see who lives. That is an error: nothing is gone because of it. */
static void without_descriptors_nothing_is_gone(void)
{
	char live[RUNDIR_ID_BYTES + 1], ended[RUNDIR_ID_BYTES + 1], id[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d = make(live), e = make(ended);
	rlim_t first = (rlim_t)dup(base), n;

	must(close((int)first) == 0 && sandbox_dir_take_name(&d, "name", NULL) == 0);
	end_in_order(&e);
	for (n = first; n < first + 12; n++) {
		with_few_descriptors(n, sweep_and_look, live);
		check(seen == SANDBOX_LIVE || seen == -E_SYSTEM);
		check_int(life(live), SANDBOX_LIVE);
		check_int(life(ended), SANDBOX_ENDED);
	}
	check_int(seen, SANDBOX_LIVE);
	check_int(sandbox_resolve(base, "name", id, NULL), 0);
	for (n = first, seen = -1; seen < 0 && n < first + 12; n++) {
		with_few_descriptors(n, try_to_remove, ended);
		check((seen == 0) == (life(ended) == -1));
	}
	check_int(seen, 0);
	sandbox_dir_remove(&d);
}

static void what_runs_is_not_removed(void)
{
	char a[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d = make(a);

	check_int(sandbox_remove(base, a, NULL), -E_BUSY);
	check_int(life(a), SANDBOX_LIVE);
	sandbox_dir_remove(&d);
	check_int(life(a), -1);
}

static void half_made_and_foreign_things_are_left_or_swept(void)
{
	char a[RUNDIR_ID_BYTES + 1];
	struct stat st;

	rundir_make_id(a);
	must(mkdirat(base, ".new-abc", 0700) == 0);
	must(mkdirat(base, ".new-def", 0700) == 0);
	close(openat(base, ".new-def/lock", O_CREAT | O_WRONLY, 0600));
	must(mkdirat(base, a, 0700) == 0);
	must(mkdirat(base, "somebody's", 0700) == 0);
	close(openat(base, "a-file", O_CREAT | O_WRONLY, 0600));
	must(symlinkat("/etc", base, "sandbox-aaaaaaaaaaaaaaaaaaaaa") == 0);
	sandboxes_sweep(base, NULL, NULL);
	check(fstatat(base, ".new-abc", &st, 0) < 0);
	check(fstatat(base, ".new-def", &st, 0) < 0);
	check(fstatat(base, a, &st, 0) < 0);
	check_int(fstatat(base, "somebody's", &st, 0), 0);
	check_int(fstatat(base, "a-file", &st, 0), 0);
	check_int(life("sandbox-aaaaaaaaaaaaaaaaaaaaa"), -1);
	check_int(life("../../etc"), -1);
	check_int(stat("/etc/passwd", &st), 0);
	unlinkat(base, "sandbox-aaaaaaaaaaaaaaaaaaaaa", 0);
}

/* A power cut may leave files empty. */
static void what_a_power_cut_emptied_is_swept(void)
{
	char id[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d = make(id);

	must(fs_write_atomic(d.fd, RUNDIR_OWNED, STR(""), 0600, false, NULL) == 0);
	crash(&d);
	check_int(life(id), SANDBOX_CRASHED);
	sandboxes_sweep(base, NULL, NULL);
	check_int(life(id), -1);
}

static void another_users_directory_is_not_touched(void)
{
	char a[RUNDIR_ID_BYTES + 1], b[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d = make(a);
	struct stat st;

	crash(&d);
	if (geteuid() != 0) {
		sandboxes_sweep(base, NULL, NULL);
		return;
	}
	must(fchownat(base, a, 54321, 54321, 0) == 0);
	sandboxes_sweep(base, NULL, NULL);
	check_int(fstatat(base, a, &st, 0), 0);
	check_int(life(a), -1);
	check_int(sandbox_resolve(base, a, b, NULL), -E_NOT_FOUND);
	fs_remove_tree(base, a);
}

static void a_squatted_or_open_directory_is_refused(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/open", dir);
	must(mkdir(path, 0777) == 0 && chmod(path, 0777) == 0);
	setenv("CLOCHE_RUNTIME_DIR", path, 1);
	check_int(rundir_open(NULL), -E_DENIED);
	if (geteuid() == 0) {
		must(chmod(path, 0700) == 0 && chown(path, 54321, 54321) == 0);
		check_int(rundir_open(NULL), -E_DENIED);
	}
	setenv("CLOCHE_RUNTIME_DIR", dir, 1);
	rmdir(path);
}

/* As left in the environment by su. Of an ordinary user, and what belongs to root. */
static void a_runtime_directory_of_somebody_else_is_not_used(void)
{
	char path[PATH_MAX] = "";
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		must(geteuid() != 0 || setresuid(54321, 54321, 54321) == 0);
		setenv("XDG_RUNTIME_DIR", "/tmp", 1);
		must(fd_path(rundir_open_usual(NULL), path) == 0);
		rmdir(path); /* if nobody uses it */
		_exit(strcmp(path, "/tmp/cloche") == 0);
	}
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

static void what_a_person_writes_finds_one(void)
{
	struct sandbox_dir d[3] = {SANDBOX_DIR_INIT, SANDBOX_DIR_INIT, SANDBOX_DIR_INIT};
	static const char *const ids[] = {"sandbox-aab000000000000000000",
		"sandbox-aac000000000000000000", "sandbox-bcd000000000000000000"};
	struct cloche_err err = CLOCHE_ERR_INIT;
	char id[RUNDIR_ID_BYTES + 1];

	for (int i = 0; i < 3; i++)
		must(sandbox_dir_make(&d[i], ids[i], NULL) == 0);
	must(sandbox_dir_take_name(&d[2], "aab", NULL) == 0);
	check_int(sandbox_resolve(base, ids[1], id, NULL), 0);
	check_str(str_from(id), ids[1]);
	check_int(sandbox_resolve(base, "aab", id, NULL), 0);
	check_str(str_from(id), ids[2]); /* a name wins */
	check_int(sandbox_resolve(base, "aac", id, NULL), 0);
	check_str(str_from(id), ids[1]);
	check_int(sandbox_resolve(base, "sandbox-b", id, NULL), 0);
	check_str(str_from(id), ids[2]);
	check_int(sandbox_resolve(base, "aa", id, &err), -E_USAGE);
	check(strstr(err.message, ids[0]) && strstr(err.message, ids[1]));
	check_int(sandbox_resolve(base, "sandbox-", id, NULL), -E_NOT_FOUND);
	check_int(sandbox_resolve(base, "", id, NULL), -E_USAGE);
	check_int(sandbox_resolve(base, "zz", id, NULL), -E_NOT_FOUND);
	check_int(sandbox_resolve(base, "../x", id, NULL), -E_NOT_FOUND);
	for (int i = 0; i < 3; i++)
		sandbox_dir_remove(&d[i]);
}

static void names_have_rules_and_dead_holders_are_replaced(void)
{
	static const char *const bad[] = {"", ".x", "-x", "a/b", "a b", "sandbox-x", "\xc3\xa9",
		"0123456789012345678901234567890123456789012345678901234567890123"};
	char a[RUNDIR_ID_BYTES + 1], b[RUNDIR_ID_BYTES + 1], found[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir da = make(a), db = make(b);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_int(sandbox_dir_take_name(&da, bad[i], NULL), -E_USAGE);
	check_int(sandbox_dir_take_name(&da, "web", NULL), 0);
	check_int(sandbox_dir_take_name(&db, "web", &err), -E_EXISTS);
	check(strstr(err.message, a) != NULL);
	crash(&da);
	check_int(sandbox_dir_take_name(&db, "web", NULL), 0);
	check_int(sandbox_resolve(base, "web", found, NULL), 0);
	check_str(str_from(found), b);
	/* The sweep of the dead one does not take the name of the living. */
	sandboxes_sweep(base, NULL, NULL);
	check_int(sandbox_resolve(base, "web", found, NULL), 0);
	end_in_order(&db);
	check_int(sandbox_resolve(base, "web", found, NULL), 0);
	check_int(sandbox_remove(base, b, NULL), 0);
	check_int(sandbox_resolve(base, "web", found, NULL), -E_NOT_FOUND);
	check(fstatat(base, ".names", &st, 0) < 0);
}

/* --- several processes --- */

enum { PROCESSES = 6, ROUNDS = 40 };

/* As when a remover is killed between the directory and its name. */
static void names_of_nobody_are_swept(void)
{
	char id[RUNDIR_ID_BYTES + 1], other[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d, live;

	clear();
	fresh();
	d = make(id);
	live = make(other);
	must(sandbox_dir_take_name(&d, "gone", NULL) == 0);
	must(sandbox_dir_take_name(&live, "there", NULL) == 0);
	must(fs_remove_tree(base, id) == 0);
	sandboxes_sweep(base, NULL, NULL);
	check(faccessat(base, ".names/gone", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	check(faccessat(base, ".names/there", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	sandbox_dir_remove(&live);
	sandboxes_sweep(base, NULL, NULL);
	check(faccessat(base, ".names", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	sandbox_dir_remove(&d);
	clear();
}

/* A crashed sandbox that left something in a granted directory, which cannot be kept. */
static void crash_with_a_finding(char id[RUNDIR_ID_BYTES + 1], const char *granted)
{
	_cleanup_(look_donep) struct look l = {0};
	struct sandbox_dir d = make(id);
	int fd = open(granted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	look_begin(&l);
	must(look_add_mount(&l, fd, granted, "/workspace") == 0);
	must(looks_note(&l, &d, id, 0, NULL) == 0);
	unlinkat(fd, ".envrc", 0);
	close(openat(fd, ".envrc", O_CREAT | O_WRONLY, 0600));
	fd_close(fd);
	crash(&d);
}

static void on_failed(void *user, const char *id, const char *why)
{
	struct buf *b = user;

	must(buf_printf(b, "%s: %s", id, why) == 0);
}

/* The caller is told; the library itself says nothing. */
static void findings_that_cannot_be_kept(void)
{
	_cleanup_(buf_donep) struct buf told = BUF_INIT(4096);
	char granted[TAP_DIR_BYTES], id[RUNDIR_ID_BYTES + 1];
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct cleanup c;
	int output[2], saved = dup(STDERR_FILENO);
	char byte;

	tap_dir(granted);
	must(pipe2(output, O_CLOEXEC | O_NONBLOCK) == 0);
	close(openat(base, ".planted", O_CREAT | O_WRONLY, 0600));
	must(dup2(output[1], STDERR_FILENO) >= 0);
	crash_with_a_finding(id, granted);
	sandboxes_look(base, on_failed, &told);
	check(strstr(buf_cstr(&told), id) && strstr(buf_cstr(&told), "1 things that"));
	crash_with_a_finding(id, granted);
	sandboxes_sweep(base, NULL, NULL);
	cleanup_read(base, &c);
	check(strstr(c.error, id) && strstr(c.error, "cannot be reported"));
	crash_with_a_finding(id, granted);
	check_int(sandbox_remove(base, id, &err), -E_SYSTEM);
	check(strstr(err.message, "cannot be reported") != NULL);
	check_int(life(id), -1);
	must(dup2(saved, STDERR_FILENO) >= 0);
	check(read(output[0], &byte, 1) < 0 && errno == EAGAIN);
	fd_close(saved);
	fd_close(output[0]);
	fd_close(output[1]);
	unlinkat(base, ".planted", 0);
	fs_remove_tree(AT_FDCWD, granted);
}

static void in_many_processes(int (*work)(int which), int ret[PROCESSES])
{
	pid_t pids[PROCESSES];

	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		must(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(work(i));
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		must(waitpid(pids[i], &status, 0) == pids[i]);
		ret[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	}
}

static int makes_and_sweeps(int which)
{
	for (int i = 0; i < ROUNDS; i++) {
		char id[RUNDIR_ID_BYTES + 1];
		struct sandbox_dir d = SANDBOX_DIR_INIT;

		if (which == 0) {
			sandboxes_sweep(base, NULL, NULL);
			continue;
		}
		rundir_make_id(id);
		if (sandbox_dir_make(&d, id, NULL) < 0)
			return 1;
		if (which == 1)
			sandboxes_sweep(base, NULL, NULL);
		if (life(id) != SANDBOX_LIVE)
			return 2;
		if (i % 2)
			crash(&d);
		else
			sandbox_dir_remove(&d);
	}
	return 0;
}

static void sweeps_never_take_what_lives(void)
{
	int results[PROCESSES];

	in_many_processes(makes_and_sweeps, results);
	for (int i = 0; i < PROCESSES; i++)
		check_int(results[i], 0);
	sandboxes_sweep(base, NULL, NULL);
	check_int(count(), 0);
}

static int takes_the_name(int which)
{
	char id[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d = make(id);
	int r = sandbox_dir_take_name(&d, "only", NULL);

	/* Long enough that all have tried while the winner lives. */
	usleep(r == 0 ? 400000 : 0);
	sandbox_dir_remove(&d);
	return r == 0 ? 1 : r == -E_EXISTS ? 0 : 99;
}

static void one_of_many_takes_a_name(void)
{
	char id[RUNDIR_ID_BYTES + 1];
	int results[PROCESSES], winners = 0;
	struct sandbox_dir dead = make(id);

	/* With a dead holder, whom all of them find. */
	must(sandbox_dir_take_name(&dead, "only", NULL) == 0);
	crash(&dead);
	in_many_processes(takes_the_name, results);
	for (int i = 0; i < PROCESSES; i++) {
		check(results[i] <= 1);
		winners += results[i];
	}
	check_int(winners, 1);
	sandboxes_sweep(base, NULL, NULL);
}

static int removes_all(int which)
{
	_cleanup_(strv_freep) char **ids = NULL;

	if (sandboxes_list(base, &ids, NULL) < 0)
		return 1;
	for (size_t i = 0; ids && ids[i]; i++)
		if (sandbox_remove(base, ids[i], NULL) < 0)
			return 2;
	return 0;
}

static void many_may_remove_the_same(void)
{
	int results[PROCESSES];

	for (int i = 0; i < 20; i++) {
		char id[RUNDIR_ID_BYTES + 1];
		struct sandbox_dir d = make(id);

		must(mkdirat(d.fd, RUNDIR_EXECS, 0700) == 0);
		end_in_order(&d);
	}
	in_many_processes(removes_all, results);
	for (int i = 0; i < PROCESSES; i++)
		check_int(results[i], 0);
	check_int(count(), 0);
}

#ifdef CLOCHE_HAS_JOBS
static int sweep_when_cancelled(void *user, cloche_err *err)
{
	cloche_job *const *job = user;

	cloche_job_cancel(*job);
	sandboxes_sweep(base, NULL, NULL);
	return 0;
}

static void a_cancelled_job_waits_before_it_drops_a_name(void)
{
	char id[RUNDIR_ID_BYTES + 1];
	struct sandbox_dir d;
	cloche_job *job = NULL;
	struct pollfd p = {.events = POLLIN};
	int lock, r;

	clear();
	fresh();
	d = make(id);
	must(sandbox_dir_take_name(&d, "gone", NULL) == 0);
	must(fs_remove_tree(base, id) == 0);
	lock = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(lock >= 0 && flock(lock, LOCK_EX) == 0);
	must(cloche_job_start(sweep_when_cancelled, &job, &job, NULL) == 0);
	check_int(cloche_job_dispatch(job, NULL), 1);
	check(faccessat(base, ".names/gone", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	close(lock);
	p.fd = cloche_job_fd(job);
	while ((r = cloche_job_dispatch(job, NULL)) > 0)
		must(poll(&p, 1, -1) == 1);
	check_int(r, 0);
	check(faccessat(base, ".names/gone", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	cloche_job_free(job);
	sandbox_dir_remove(&d);
	clear();
}

static int remove_it(void *user, cloche_err *err)
{
	sandbox_dir_remove(user);
	return 0;
}

/* Who sees that a sandbox is gone may take its name at once. */
static void a_name_is_free_before_its_sandbox_is_gone(void)
{
	char id[RUNDIR_ID_BYTES + 1], path[PATH_MAX];
	struct sandbox_dir d;
	cloche_job *job = NULL;
	struct pollfd p = {.events = POLLIN};
	int lock, r;

	clear();
	fresh();
	d = make(id);
	must(sandbox_dir_take_name(&d, "gone", NULL) == 0);
	must(sandbox_dir_write_record(&d, STR("{}\n"), NULL) == 0);
	snprintf(path, sizeof(path), "%s/" RUNDIR_RECORD, id);
	lock = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(lock >= 0 && flock(lock, LOCK_EX) == 0);
	must(cloche_job_start(remove_it, &d, &job, NULL) == 0);
	check_int(cloche_job_dispatch(job, NULL), 1);
	check(faccessat(base, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	close(lock);
	p.fd = cloche_job_fd(job);
	while ((r = cloche_job_dispatch(job, NULL)) > 0)
		must(poll(&p, 1, -1) == 1);
	check_int(r, 0);
	check(faccessat(base, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	check(faccessat(base, ".names", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	cloche_job_free(job);
	clear();
}
#endif

int main(void)
{
	fresh();
	run_test(the_lock_alone_says_who_lives);
	run_test(what_runs_is_not_removed);
	run_test(without_descriptors_nothing_is_gone);
	run_test(half_made_and_foreign_things_are_left_or_swept);
	run_test(what_a_power_cut_emptied_is_swept);
	run_test(another_users_directory_is_not_touched);
	run_test(a_squatted_or_open_directory_is_refused);
	run_test(a_runtime_directory_of_somebody_else_is_not_used);
	run_test(what_a_person_writes_finds_one);
	run_test(names_have_rules_and_dead_holders_are_replaced);
	run_test(findings_that_cannot_be_kept);
	run_test(sweeps_never_take_what_lives);
	run_test(one_of_many_takes_a_name);
	run_test(many_may_remove_the_same);
	run_test(names_of_nobody_are_swept);
#ifdef CLOCHE_HAS_JOBS
	run_test(a_cancelled_job_waits_before_it_drops_a_name);
	run_test(a_name_is_free_before_its_sandbox_is_gone);
#endif
	clear();
	return tap_done();
}
