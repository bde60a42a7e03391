/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "far/room.h"
#include "far/script.h"
#include "fs/fs.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];

static void write_file(const char *name, const char *text)
{
	char path[TAP_DIR_BYTES + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	fd_close(fd);
}

/* What the other machine says it is names no other file. */
static void only_programs_are_opened(void)
{
	static const char *const names[] = {
		"", "x86_64/../secret", "../secret", "/etc/passwd", "mips"};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct utsname u;
	int fd;

	must(uname(&u) == 0);
	write_file("secret", "x");
	write_file("cloche-far-mips", "x");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check_int(script_open_program(names[i], &err), -E_PROTOCOL);
	fd = script_open_program(u.machine, &err);
	check(fd >= 0);
	fd_close(fd);
}

/* It goes through shells in single quotes, in one line, and names this machine's program by its
 * digest. */
static void scripts_can_be_quoted(void)
{
	static const char *const verbs[] = {"start", "attach", "reap"};
	struct cloche_err err = CLOCHE_ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		char *script = far_script(verbs[i], "sandbox-x", &err), end[64];

		must(script);
		snprintf(end, sizeof(end), "exec \"$f\" %s sandbox-x", verbs[i]);
		check(!strpbrk(script, "'\n"));
		check(strstr(script, end));
		/* SHA-256 of "far" */
		check(strstr(script,
			"s=512eea46ceb3921dff4363c7069d89d4964d1d9fccaa0f411851a7aa60a5c868; "
			"n=3;;"));
		free(script);
	}
}

struct start {
	pid_t pid;
	int in, out;
};

/* Run the script as in another place, up to the word that says what it needs. */
static struct start start_script(const char *script)
{
	int in[2], out[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct start ret;
	char c = 0;

	must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && null >= 0);
	ret = (struct start){.pid = fork(), .in = in[1], .out = out[0]};
	must(ret.pid >= 0);
	if (ret.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(null, 2);
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(1);
	}
	fd_close(in[0]);
	fd_close(out[1]);
	fd_close(null);
	while (c != '\n')
		must(read(ret.out, &c, 1) == 1);
	return ret;
}

static int count_entries(const char *path)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(AT_FDCWD, path);
	int n = 0;

	while (list && fs_list_next(list))
		n++;
	return n;
}

/* Send the program, and wait until what it became has ended. Return the file of programs there. */
static ino_t finish_script(const struct start *s, const char *path)
{
	struct stat st;
	int status;

	must(fd_write_all(s->in, "far", 3) == 0);
	fd_close(s->in);
	must(waitpid(s->pid, &status, 0) == s->pid);
	fd_close(s->out);
	must(stat(path, &st) == 0);
	return st.st_ino;
}

/* A program that runs already is not replaced by one that was on its way at the same time. */
static void the_first_copy_stays(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_(freep) char *script = far_script("start", "sandbox-x", &err);
	char path[TAP_DIR_BYTES + 128];
	struct start one, two;
	ino_t first;

	must(script && setenv("HOME", dir, 1) == 0);
	snprintf(path, sizeof(path),
		"%s/.cache/cloche-far/"
		"512eea46ceb3921dff4363c7069d89d4964d1d9fccaa0f411851a7aa60a5c868",
		dir);
	one = start_script(script);
	two = start_script(script);
	first = finish_script(&one, path);
	check(finish_script(&two, path) == first);
	*strrchr(path, '/') = '\0';
	check(count_entries(path) == 1);
}

int main(void)
{
	tap_dir(dir);
	write_file("cloche-far", "far");
	must(setenv("CLOCHE_LIBEXEC", dir, 1) == 0);
	run_test(only_programs_are_opened);
	run_test(scripts_can_be_quoted);
	run_test(the_first_copy_stays);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
