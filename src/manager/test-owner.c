/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "manager/own.h"
#include "manager/owner.h"
#include "manager/sandboxes.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int base;
static char owners[TAP_DIR_BYTES + 16];

static size_t count_files(void)
{
	size_t n = 0;
	DIR *list = opendir(owners);
	const struct dirent *e;

	must(list != NULL);
	while ((e = readdir(list)))
		n += e->d_name[0] != '.' || e->d_name[1] > '.';
	closedir(list);
	return n;
}

static int promise(struct owner *o, uint64_t bytes, uint64_t most, uint64_t *ret_others,
	struct cloche_err *err)
{
	_cleanup_fd_ int promises = owner_lock(base, err);

	return promises < 0 ? promises
			    : owner_promise(base, promises, o, bytes, most, ret_others, err);
}

/* A process that is an owner until it is killed; its id in ret. */
static pid_t start_owner(uint64_t bytes, struct owner *ret)
{
	int pipes[2];
	pid_t pid;

	must(pipe2(pipes, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		uint64_t others;

		if (owner_make(base, ret, NULL) < 0 ||
			promise(ret, bytes, UINT64_MAX, &others, NULL) < 0 ||
			write(pipes[1], ret->id, sizeof(ret->id)) != sizeof(ret->id))
			_exit(1);
		pause();
		_exit(0);
	}
	must(pid > 0 && read(pipes[0], ret->id, sizeof(ret->id)) == sizeof(ret->id));
	fd_close(pipes[0]);
	fd_close(pipes[1]);
	return pid;
}

static void kill_it(pid_t pid)
{
	must(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void it_lives_until_it_is_dropped(void)
{
	struct owner o = OWNER_INIT;

	must(owner_make(base, &o, NULL) == 0);
	check(owner_is_live(base, o.id));
	check(owner_is_live(base, o.id));
	owner_done(base, &o);
	check(!owner_is_live(base, o.id));
	check_int(count_files(), 0);
}

static void a_killed_one_is_dead_and_leaves_nothing(void)
{
	struct owner o = OWNER_INIT;
	pid_t pid = start_owner(0, &o);

	check(owner_is_live(base, o.id));
	check_int(count_files(), 1);
	kill_it(pid);
	check(!owner_is_live(base, o.id));
	check_int(count_files(), 0);
}

static void what_is_no_id_is_nobody(void)
{
	check(!owner_is_live(base, ""));
	check(!owner_is_live(base, "../x"));
	check(!owner_is_live(base, "aaaaaaaaaaaaaaaaaaaaa"));
}

enum { MAKERS = 4, ROUNDS = 200 };

/* Those who look take what is not locked yet for a dead one's. */
static void lookers_do_not_take_what_is_made(void)
{
	pid_t looker = fork(), makers[MAKERS];
	int status;

	while (looker == 0) {
		struct owner o = OWNER_INIT;
		uint64_t others;

		if (owner_make(base, &o, NULL) < 0 || promise(&o, 1, UINT64_MAX, &others, NULL) < 0)
			_exit(1);
		owner_done(base, &o);
	}
	for (int i = 0; i < MAKERS; i++) {
		makers[i] = fork();
		for (int k = 0; makers[i] == 0 && k < ROUNDS; k++) {
			struct owner o = OWNER_INIT;

			if (owner_make(base, &o, NULL) < 0 || !owner_is_live(base, o.id))
				_exit(1);
			owner_done(base, &o);
		}
		if (makers[i] == 0)
			_exit(0);
	}
	for (int i = 0; i < MAKERS; i++) {
		must(waitpid(makers[i], &status, 0) == makers[i]);
		check_int(status, 0);
	}
	kill_it(looker);
}

static void promises_of_all_who_live_count(void)
{
	struct owner one = OWNER_INIT, two = OWNER_INIT, dead = OWNER_INIT;
	uint64_t others = 7;
	pid_t pid = start_owner(50, &dead);

	must(owner_make(base, &one, NULL) == 0 && owner_make(base, &two, NULL) == 0);
	check_int(promise(&one, 40, 100, &others, NULL), 0);
	check_int(others, 50);
	check_int(promise(&two, 11, 100, &others, NULL), -E_BUSY);
	check_int(others, 90);
	check_int(promise(&two, 10, 100, &others, NULL), 0);
	kill_it(pid);
	check_int(promise(&two, 60, 100, &others, NULL), 0);
	check_int(others, 40);
	check_int(promise(&one, 41, 100, &others, NULL), -E_BUSY);
	/* Less is always taken, whatever there is. */
	check_int(promise(&one, 39, 0, &others, NULL), 0);
	owner_done(base, &two);
	check_int(promise(&one, 100, 100, &others, NULL), 0);
	check_int(others, 0);
	owner_done(base, &one);
	check_int(count_files(), 0);
}

/* A sandbox that runs as long as *ret is open. */
static void make_sandbox(struct sandbox_dir *ret, const char *owner, const char *limit)
{
	char id[RUNDIR_ID_BYTES + 1], record[256];

	rundir_make_id(id);
	*ret = SANDBOX_DIR_INIT;
	snprintf(record, sizeof(record),
		"{\"state\":\"running\",\"labels\":{\"" OWNER_LABEL "\":\"%s\"},"
		"\"config\":{\"limits\":{\"memory_bytes\":%s}}}\n",
		owner, limit);
	must(sandbox_dir_make(ret, id, NULL) == 0 &&
		sandbox_dir_write_record(ret, str_from(record), NULL) == 0);
}

static void sandboxes_that_outlive_their_owner_count(void)
{
	struct owner one = OWNER_INIT, two = OWNER_INIT, dead = OWNER_INIT;
	pid_t pid = start_owner(50, &dead);
	struct sandbox_dir left, own, bad;
	uint64_t others = 7;

	must(owner_make(base, &one, NULL) == 0 && owner_make(base, &two, NULL) == 0);
	make_sandbox(&left, dead.id, "50");
	make_sandbox(&own, two.id, "40");
	/* No memory, and no record at all. */
	make_sandbox(&bad, dead.id, "\"all\"");
	check_int(promise(&two, 40, 100, &others, NULL), 0);
	check_int(others, 50);
	kill_it(pid);
	check_int(promise(&one, 11, 100, &others, NULL), -E_BUSY);
	check_int(others, 90);
	must(sandbox_dir_write_record(&bad, STR("{\"state\""), NULL) == 0);
	check_int(promise(&one, 10, 100, &others, NULL), 0);
	owner_done(base, &two);
	check_int(promise(&one, 11, 100, &others, NULL), -E_BUSY);
	sandbox_dir_remove(&left);
	check_int(promise(&one, 60, 100, &others, NULL), 0);
	check_int(others, 40);
	sandbox_dir_remove(&own);
	sandbox_dir_remove(&bad);
	owner_done(base, &one);
}

static bool is_told(int watch)
{
	struct pollfd p = {.fd = watch, .events = POLLIN};

	return poll(&p, 1, 20000) == 1;
}

static void who_watches_is_told(void)
{
	struct owner one = OWNER_INIT, dead = OWNER_INIT;
	uint64_t others;
	int watch;

	must(owner_make(base, &one, NULL) == 0);
	watch = owner_watch(base, NULL);
	must(watch >= 0);
	check_int(promise(&one, 10, 100, &others, NULL), 0);
	check(is_told(watch));
	owner_watch_take(base, watch);
	/* Nobody is told of what stays as it is. */
	check_int(promise(&one, 10, 100, &others, NULL), 0);
	check_int(promise(&one, 101, 100, &others, NULL), -E_BUSY);
	check_int(poll(&(struct pollfd){.fd = watch, .events = POLLIN}, 1, 0), 0);
	for (int i = 0; i < 100; i++) {
		pid_t pid = start_owner(5, &dead);

		owner_watch_take(base, watch);
		must(kill(pid, SIGKILL) == 0);
		must(is_told(watch));
		owner_watch_take(base, watch);
		check(!owner_is_live(base, dead.id));
		must(waitpid(pid, NULL, 0) == pid);
	}
	owner_done(base, &one);
	check(is_told(watch));
	fd_close(watch);
}

static void sums_do_not_wrap(void)
{
	struct owner one = OWNER_INIT, two = OWNER_INIT, three = OWNER_INIT;
	uint64_t others;

	must(owner_make(base, &one, NULL) == 0 && owner_make(base, &two, NULL) == 0 &&
		owner_make(base, &three, NULL) == 0);
	check_int(promise(&one, UINT64_MAX, UINT64_MAX, &others, NULL), 0);
	check_int(promise(&two, 1, UINT64_MAX, &others, NULL), -E_BUSY);
	check_int(promise(&two, 0, UINT64_MAX, &others, NULL), 0);
	check_int(promise(&three, 1, UINT64_MAX, &others, NULL), -E_BUSY);
	owner_done(base, &one);
	owner_done(base, &two);
	owner_done(base, &three);
}

int main(void)
{
	char path[TAP_DIR_BYTES];

	tap_dir(path);
	must(setenv("CLOCHE_RUNTIME_DIR", path, 1) == 0);
	base = rundir_open(NULL);
	must(base >= 0);
	snprintf(owners, sizeof(owners), "%s/.owners", path);
	run_test(it_lives_until_it_is_dropped);
	run_test(a_killed_one_is_dead_and_leaves_nothing);
	run_test(what_is_no_id_is_nobody);
	run_test(lookers_do_not_take_what_is_made);
	run_test(promises_of_all_who_live_count);
	run_test(sandboxes_that_outlive_their_owner_count);
	run_test(who_watches_is_told);
	run_test(sums_do_not_wrap);
	must(rmdir(owners) == 0 && rmdir(path) == 0);
	return tap_done();
}
