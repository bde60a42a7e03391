/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/fs.h"
#include "init/init.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];

static const char *at(const char *name)
{
	static char paths[2][128];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
	return path;
}

static void put(const char *name, const char *text, mode_t mode)
{
	struct cloche_err err;

	must(fs_write_atomic(AT_FDCWD, at(name), str_from(text), mode, false, &err) == 0);
	must(chmod(at(name), mode) == 0);
}

/* Looks for a command in a child: its exit status, or the failure that it found. */
static int look_up(const char *command, const char *path, struct start_failure *why)
{
	char name[128], variable[512];
	char *argv[] = {name, NULL}, *env[] = {path ? variable : NULL, NULL};
	int fds[2], status = 0;
	pid_t pid;

	snprintf(name, sizeof(name), "%s", command);
	snprintf(variable, sizeof(variable), "PATH=%s", path ? path : "");
	must(pipe(fds) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		must(fcntl(fds[1], F_SETFD, FD_CLOEXEC) == 0);
		lookup_exec(argv, env, why);
		(void)!write(fds[1], why, sizeof(*why));
		_exit(0);
	}
	close(fds[1]);
	must(waitpid(pid, &status, 0) == pid);
	if (read(fds[0], why, sizeof(*why)) == sizeof(*why))
		status = -1;
	close(fds[0]);
	return status < 0 ? -1 : WEXITSTATUS(status);
}

static void commands_are_found(void)
{
	char here[512];
	struct start_failure why;

	must(mkdir(at("a"), 0755) == 0 && mkdir(at("b"), 0755) == 0 &&
		mkdir(at("a/dir"), 0755) == 0);
	put("a/mine", "#!/bin/sh\nexit 5\n", 0755);
	put("b/mine", "#!/bin/sh\nexit 6\n", 0755);
	put("a/closed", "#!/bin/sh\nexit 5\n", 0644);
	put("b/closed", "#!/bin/sh\nexit 7\n", 0755);
	put("a/lost", "#!/no/such/shell\n", 0755);
	put("b/lost", "#!/bin/sh\nexit 8\n", 0755);
	put("a/words", "exit 9\n", 0755);
	snprintf(here, sizeof(here), "%s/none:%s/a:%s/b", top, top, top);
	check_int(look_up("mine", here, &why), 5);
	check_int(look_up(at("b/mine"), here, &why), 6);
	/* A file that cannot be executed hides none further on, a missing interpreter does. */
	check_int(look_up("closed", here, &why), 7);
	check_int(look_up("lost", here, &why), -1);
	check(why.stage == ROOM_STAGE_EXEC && why.sys_errno == ENOENT);
	/* No shell takes what has no interpreter line. */
	check_int(look_up("words", here, &why), -1);
	check(why.stage == ROOM_STAGE_EXEC && why.sys_errno == ENOEXEC);
	check_int(look_up("dir", here, &why), -1);
	check(why.stage == ROOM_STAGE_EXEC && why.sys_errno == EACCES);
	check_int(look_up("nowhere", here, &why), -1);
	check(why.stage == ROOM_STAGE_LOOKUP && why.sys_errno == ENOENT);
	check_int(look_up(at("a/mine/x"), here, &why), -1);
	check(why.stage == ROOM_STAGE_LOOKUP);
	/* Without a PATH there is the usual one; an empty element is the working directory. */
	check_int(look_up("true", NULL, &why), 0);
	must(chdir(at("b")) == 0);
	check_int(look_up("mine", ":/usr/bin", &why), 6);
	check_int(look_up("mine", "/usr/bin:", &why), 6);
	check_int(look_up("mine", "/usr/bin", &why), -1);
}

/* Sleeps until it is killed. */
static pid_t sleeper(int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)!write(ready, &(pid_t){getpid()}, sizeof(pid_t));
		for (;;)
			pause();
	}
	return pid;
}

/* When a process began, in ticks since the machine started; 0 if it has ended. Its number may be
 * another's then, even that of a process of this program in another run. */
static unsigned long long began(pid_t pid)
{
	char path[64], text[512] = "", state;
	unsigned long long at = 0;
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	name_end = n > 0 ? strrchr(text, ')') : NULL;
	if (!name_end ||
		sscanf(name_end + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %llu",
			&state, &at) != 2)
		return 0;
	/* One that is a zombie now may be shown as dead (X) before it has gone. */
	return strchr("ZXx", state) ? 0 : at;
}

struct member {
	pid_t pid;
	unsigned long long began;
};

static struct member next_member(int ready)
{
	struct member m;

	must(read(ready, &m.pid, sizeof(m.pid)) == sizeof(m.pid));
	m.began = began(m.pid);
	must(m.began);
	return m;
}

static bool is_alive(const struct member *m)
{
	return began(m->pid) == m->began;
}

/* The leader, a child of it, one that left the session and kept its parent; and a stranger. */
static void a_tree_is_its_session_and_descent(void)
{
	struct proc p = {0};
	struct member found[3], stranger;
	int fds[2];

	must(pipe(fds) == 0);
	fflush(stdout);
	must(sleeper(fds[1]) > 0);
	stranger = next_member(fds[0]);
	p.pid = fork();
	if (p.pid == 0) {
		setsid();
		sleeper(fds[1]);
		if (fork() == 0) {
			setsid();
			sleeper(fds[1]);
			for (;;)
				pause();
		}
		sleeper(fds[1]);
		for (;;)
			pause();
	}
	for (int i = 0; i < 3; i++)
		found[i] = next_member(fds[0]);
	tree_signal(&p, SIGKILL);
	must(waitpid(p.pid, NULL, 0) == p.pid);
	for (int i = 0; i < 3; i++) {
		for (int turn = 0; is_alive(&found[i]) && turn < 5000; turn++)
			usleep(1000);
		check(!is_alive(&found[i]));
	}
	check(is_alive(&stranger));
	kill(stranger.pid, SIGKILL);
	waitpid(stranger.pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

#ifdef __SANITIZE_ADDRESS__
enum { MANY = 300 }; /* each costs memory for the sanitizer */
#else
enum { MANY = 4300 };
#endif

/* However many there are. */
static void a_large_tree_ends(void)
{
	static struct member found[MANY];
	struct proc p = {0};
	int fds[2], alive = 0;

	must(pipe(fds) == 0);
	fflush(stdout);
	p.pid = fork();
	if (p.pid == 0) {
		setsid();
		for (int i = 0; i < MANY; i++)
			if (sleeper(fds[1]) < 0)
				_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	for (int i = 0; i < MANY; i++)
		found[i] = next_member(fds[0]);
	close(fds[0]);
	tree_signal(&p, SIGKILL);
	must(waitpid(p.pid, NULL, 0) == p.pid);
	for (int i = 0; i < MANY; i++) {
		for (int turn = 0; alive == 0 && is_alive(&found[i]) && turn < 60000; turn++)
			usleep(1000);
		if (is_alive(&found[i])) {
			kill(found[i].pid, SIGKILL);
			alive++;
		}
	}
	check_int(alive, 0);
}

int main(void)
{
	tap_dir(top);
	run_test(commands_are_found);
	run_test(a_tree_is_its_session_and_descent);
	run_test(a_large_tree_ends);
	must(chdir("/") == 0);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
