/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The error object that crosses folders. Functions return 0 or a negative code; the last parameter
 * `struct cloche_err *err` is set once where the failure happened and wrapped with context on the
 * way up. Every function here accepts err == NULL and still returns the right code. */

#include "base/macro.h"
#include <cloche/error.h>
#include <stdbool.h>
#include <stdint.h>

enum {
#define CLOCHE_ERROR(name, number, text, exit_status) E_##name = number,
#include <cloche/errors.def>
#undef CLOCHE_ERROR
};

/* Set err to code with a message; return -code. */
int err_set(struct cloche_err *err, int code, const char *fmt, ...) _printf_(3, 4);

/* Set err to E_SYSTEM (E_NO_MEMORY for ENOMEM, E_CANCELLED for ECANCELED) with "message:
 * strerror(errnum)"; return -code. */
int err_sys(struct cloche_err *err, int errnum, const char *fmt, ...) _printf_(3, 4);

/* Put "context: " before the message; return code, with which the function below has failed. */
int err_wrap(struct cloche_err *err, int code, const char *fmt, ...) _printf_(3, 4);

/* Set a hint that tells the user what to do next. An earlier hint is kept, as it is closer to the
 * cause. */
void err_hint(struct cloche_err *err, const char *fmt, ...) _printf_(2, 3);

/* Set E_NO_MEMORY; return -E_NO_MEMORY. */
int err_nomem(struct cloche_err *err);

/* Return whether a number from another process is a code of errors.def. */
bool err_is_code(uint32_t code);

/* Return the meaning of errnum in English, whatever the locale. */
const char *err_errno_text(int errnum);

/* Clear an error that was handled. */
void err_clear(struct cloche_err *err);
