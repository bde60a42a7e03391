/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: as execvp, but it tells "not found" from "found but cannot be executed" (127
 * and 126 in a shell), searches the PATH of the new process's environment, and never hands a file
 * without an interpreter line to a shell. execve reports ENOENT for both a missing file and a
 * missing interpreter; whether the file itself exists tells them apart. */
#include "base/program.h"
#include "init/init.h"
#include "ipc/roomctl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *find_path(char *const *env)
{
	for (; env && *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return SYSTEM_PATH;
}

/* Return true if the search should go on; otherwise why is final. */
static bool try_exec(
	const char *path, char *const *argv, char *const *env, struct start_failure *why)
{
	execve(path, argv, env);
	if (errno == ENOENT || errno == ENOTDIR) {
		if (errno == ENOTDIR || access(path, F_OK) < 0)
			return true;
		*why = (struct start_failure){ROOM_STAGE_EXEC, ENOENT};
		return false;
	}
	*why = (struct start_failure){ROOM_STAGE_EXEC, errno};
	/* A directory that cannot be entered, or a file that is not a program, does not hide a
	 * program of the same name later in the PATH. */
	return errno == EACCES;
}

/* Return only on failure. */
static struct start_failure search(char *const *argv, char *const *env)
{
	struct start_failure why = {ROOM_STAGE_LOOKUP, ENOENT};
	const char *path = find_path(env), *name = argv[0];
	size_t name_n = strlen(name);
	char full[EXEC_MAX_PATH + 1];

	/* Execute this program itself, whatever root of the room has put at that path. */
	if (strcmp(name, ROOMCTL_INIT_PATH) == 0) {
		(void)try_exec("/proc/self/exe", argv, env, &why);
		return why;
	}
	if (strchr(name, '/')) {
		(void)try_exec(name, argv, env, &why);
		return why;
	}
	for (;;) {
		size_t n = strcspn(path, ":");

		if (n + 1 + name_n < sizeof(full)) {
			char *at = full;

			/* An empty element is the working directory. */
			if (n > 0) {
				memcpy(at, path, n);
				at += n;
				*at++ = '/';
			}
			memcpy(at, name, name_n + 1);
			if (!try_exec(full, argv, env, &why))
				return why;
		}
		if (path[n] == '\0')
			return why;
		path += n + 1;
	}
}

void lookup_exec(char *const *argv, char *const *env, struct start_failure *why)
{
	*why = search(argv, env);
}
