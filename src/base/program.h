/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Helper programs, cloche's own and others: how to find and start them. */

#include "base/err.h"
#include "base/str.h"
#include <stdbool.h>
#include <sys/types.h>

/* Where a room has the system's programs. */
#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Return whether this process has more rights than its caller (set-uid, capabilities of a file), so
 * that the environment and the place of the executable are the caller's choice: AT_SECURE. */
bool program_is_elevated(void);

/* Find a program of cloche: in $CLOCHE_LIBEXEC if that is set, else next to the running executable,
 * else in the installed libexec directory, else in the installed bin directory. With more rights
 * than the caller has: only in these two. Return a heap string, or NULL with err set. */
char *program_find(const char *name, struct cloche_err *err);

/* Find a program on the user's PATH, in absolute directories only. Return a heap string, or
 * NULL. */
char *program_on_path(const char *name);

struct program_fd {
	int from; /* borrowed */
	int to;   /* number in the program; ascending, above 2, preferably without gaps */
};

struct program_spawn {
	const char *path; /* NULL: a program of cloche's, argv[0] (program_find) */
	const char *const *argv;
	char *const *env; /* NULL: program_env() of ours */
	const struct program_fd *fds;
	size_t fds_n;
	int stdio[3];   /* -1: /dev/null */
	bool own_group; /* it becomes the leader of a new process group */
	bool service;   /* env is NULL: with what program_env_add_service() adds */
};

/* Start a program with exactly these descriptors, default signal dispositions and no blocked
 * signals. It is started as with vfork, so the cost does not grow with the caller's memory. The
 * process is a child of the caller, who has to reap it. ret_pidfd may be NULL. */
_warn_unused_ int program_start(
	const struct program_spawn *p, pid_t *ret_pid, int *ret_pidfd, struct cloche_err *err);

/* Return whether this variable is a setting of a container engine. */
bool program_is_engine_setting(struct str name);

/* Return the part of an environment that a helper program may see: settings of cloche, of the
 * session, of container engines and of sanitizers, never the rest (it may hold real secrets). With
 * more rights than the caller has: PATH alone, the system's. Heap array of heap strings
 * (strv_free), NULL on lack of memory. */
char **program_env(char *const *env);

/* Add what a program needs that asks a service over HTTPS: its key, and proxies. Only such a
 * program, and those that start it, have these. Return 0 or -ENOMEM. */
_warn_unused_ int program_env_add_service(char ***to, char *const *env);

/* Return when a process was started, in clock ticks since boot (field 22 of /proc/PID/stat).
 * Together with the pid this identifies a process within one boot. Return 0 if there is no such
 * process, or if it is a zombie. */
uint64_t program_start_time(pid_t pid);

enum { PROGRAM_BOOT_ID_MAX = 40 };
/* Get the kernel's id of this boot (random(4)); "" if it cannot be read. */
void program_boot_id(char ret[PROGRAM_BOOT_ID_MAX]);

/* Open a process that this boot still has, with the number and start time that were written down
 * together with the boot (NULL: not known). Return a pidfd, which becomes readable at its end, or
 * -errno: ESRCH if there is no such process. */
int program_open(pid_t pid, uint64_t start_time, const char *boot_id);

/* Kill a process that this boot still has, with the number and start time that were written down
 * together with the boot (NULL: not known). Return a pidfd, by which the caller can wait for its
 * end, or -1 if there is no such process. */
int program_end(pid_t pid, uint64_t start_time, const char *boot_id);
