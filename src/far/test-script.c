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
#include <sys/utsname.h>
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

int main(void)
{
	tap_dir(dir);
	write_file("cloche-far", "far");
	must(setenv("CLOCHE_LIBEXEC", dir, 1) == 0);
	run_test(only_programs_are_opened);
	run_test(scripts_can_be_quoted);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
