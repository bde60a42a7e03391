/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_ERROR_H
#define CLOCHE_ERROR_H
/* Infrastructure errors. The expected endings of a run (exit codes, timeouts, out of memory) are
 * results, not errors. */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CLOCHE_API __attribute__((visibility("default")))
#else
#define CLOCHE_API
#endif

enum cloche_error_code {
	CLOCHE_OK = 0,
#define CLOCHE_ERROR(name, number, text, exit_status) CLOCHE_E_##name = number,
#include "errors.def"
#undef CLOCHE_ERROR
};

/* A struct that the caller fills for the library begins with its size, which its initializer
 * (CLOCHE_..._INIT) sets along with the defaults. Later versions append members; those that an
 * older program does not have keep their defaults. If a newer program sets a member that the
 * library does not know, the function fails with CLOCHE_E_UNSUPPORTED; with CLOCHE_E_USAGE if no
 * size is set. */

/* Describes a failure. The caller allocates it and sets it to zero (or CLOCHE_ERR_INIT) before the
 * first use; the function that fails fills it. Functions return 0 or the negated code. */
typedef struct cloche_err {
	int code;           /* enum cloche_error_code */
	int sys_errno;      /* errno if a system call failed, else 0 */
	char message[1024]; /* "create sandbox s-1: mount /workspace: No such file or directory" */
	char hint[512];     /* what to do next, or "" */
} cloche_err;

#define CLOCHE_ERR_INIT                                                                            \
	{                                                                                          \
		0, 0, "", ""                                                                       \
	}

/* Return the fixed English text of a code, never NULL. Thread-safe. */
CLOCHE_API const char *cloche_error_text(int code);

/* Return the exit status that the command line uses for a code. Thread-safe. */
CLOCHE_API int cloche_error_exit_status(int code);

#ifdef __cplusplus
}
#endif
#endif
