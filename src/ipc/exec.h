/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A process that is to be started in a room: plain data, the same in the client's request and in
 * the one to init. Every pointer is heap memory that the spec owns; exec_spec_done frees it. */

#include "base/err.h"
#include "ipc/message.h"
#include <stdbool.h>

enum {
	EXEC_MAX_ARGS = 65536,
	EXEC_MAX_ARG = 128 * 1024,        /* MAX_ARG_STRLEN of the kernel */
	EXEC_MAX_BYTES = 2 * 1024 * 1024, /* of all arguments and variables together */
	EXEC_MAX_PATH = 4095,
	EXEC_MAX_DIMENSION = 4096, /* rows or columns of a terminal */
};

#define EXEC_SPEC_FIELDS(F)                                                                        \
	/* at least the command; searched in the PATH of env if it has no '/' */                   \
	F(STRV, argv, .max_n = EXEC_MAX_ARGS, .max = EXEC_MAX_ARG - 1)                             \
	/* the environment, "NAME=VALUE"; NULL is none. Unless it is NULL, the room adds HOME,     \
	 * USER and LOGNAME of the user if they are not set. */                                    \
	F(STRV, env, .max_n = EXEC_MAX_ARGS, .max = EXEC_MAX_ARG - 1)                              \
	/* of a client, with CTL_EXEC_INHERIT: names of the sandbox's variables to leave out */    \
	F(STRV, unset, .max_n = EXEC_MAX_ARGS, .max = EXEC_MAX_ARG - 1)                            \
	/* the same: variables for a sandbox that has none of that name */                         \
	F(STRV, defaults, .max_n = EXEC_MAX_ARGS, .max = EXEC_MAX_ARG - 1)                         \
	F(OPTIONAL, cwd, .max = EXEC_MAX_PATH) /* absolute path in the room; NULL is "/" */        \
	/* of a client: uid and gid hold; else the process runs as the sandbox's own user */       \
	F(BOOL, has_user)                                                                          \
	F(U32, uid, .max = UINT32_MAX - 1) /* inside the room */                                   \
	F(U32, gid, .max = UINT32_MAX - 1)                                                         \
	F(U16, umask, .max = 0777)                                                                 \
	F(BOOL, tty) /* a new terminal of the room on 0, 1 and 2 */                                \
	F(U16, rows, .max = EXEC_MAX_DIMENSION)                                                    \
	F(U16, cols, .max = EXEC_MAX_DIMENSION)                                                    \
	F(U64, timeout_usec) /* from its start; 0: none */
MESSAGE_STRUCT(exec_spec, EXEC_SPEC_FIELDS);

/* Set all members to empty, umask 022, 24 rows, 80 columns. */
void exec_spec_init(struct exec_spec *s);
void exec_spec_done(struct exec_spec *s);

/* Copy argv and env (NULL-terminated, borrowed; env may be NULL) into s. */
_warn_unused_ int exec_spec_set(struct exec_spec *s, char *const *argv, char *const *env,
	const char *cwd, struct cloche_err *err);

/* Add to env each of defaults ("NAME=VALUE") whose name it has not. If env (but for LANG=C.UTF-8,
 * which every sandbox has) names a locale itself (LANG, LC_*), nothing of the locale is added,
 * which might override it. Return 0 or -ENOMEM. */
_warn_unused_ int exec_env_default(char ***env, char *const *defaults);

/* Check ranges, and that every variable has a name; the error says which one is wrong. */
_warn_unused_ int exec_spec_check(const struct exec_spec *s, struct cloche_err *err);

static inline void exec_spec_donep(struct exec_spec *s)
{
	exec_spec_done(s);
}
