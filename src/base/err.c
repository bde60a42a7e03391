/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLOCHE_ERROR(name, number, text, exit_status)                                              \
	_Static_assert((number) > 4095, "E_" #name " could be an errno");
#include <cloche/errors.def>
#undef CLOCHE_ERROR

/* The build chooses the call. glibc's strerrordesc_np neither allocates nor depends on the locale,
 * and nor does strerror of the other C libraries. */
const char *err_errno_text(int errnum)
{
	const char *text = CLOCHE_ERRNO_TEXT(errnum);

	return text ? text : "Unknown error";
}

_printf_(4, 0) static void err_vset(
	struct cloche_err *err, int code, int errnum, const char *fmt, va_list ap)
{
	int n;

	if (!err)
		return;
	err->code = code;
	err->sys_errno = errnum;
	err->hint[0] = '\0';
	n = vsnprintf(err->message, sizeof(err->message), fmt, ap);
	if (errnum != 0 && n >= 0 && (size_t)n < sizeof(err->message))
		snprintf(err->message + n, sizeof(err->message) - (size_t)n, ": %s",
			err_errno_text(errnum));
}

int err_set(struct cloche_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(err, code, 0, fmt, ap);
	va_end(ap);
	return -code;
}

int err_sys(struct cloche_err *err, int errnum, const char *fmt, ...)
{
	int code = errnum == ENOMEM ? E_NO_MEMORY : errnum == ECANCELED ? E_CANCELLED : E_SYSTEM;
	va_list ap;

	va_start(ap, fmt);
	err_vset(err, code, errnum, fmt, ap);
	va_end(ap);
	return -code;
}

int err_wrap(struct cloche_err *err, int code, const char *fmt, ...)
{
	char context[sizeof(err->message)], old[sizeof(err->message)];
	va_list ap;
	int n;

	if (!err)
		return code;
	va_start(ap, fmt);
	n = vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	memcpy(old, err->message, sizeof(old));
	if (n >= 0 && (size_t)n < sizeof(context) - 3)
		snprintf(err->message, sizeof(err->message), "%.*s: %.*s", n, context,
			(int)(sizeof(err->message) - 3) - n, old);
	return code;
}

void err_hint(struct cloche_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err || err->hint[0])
		return;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
}

int err_nomem(struct cloche_err *err)
{
	return err_set(err, E_NO_MEMORY, "out of memory");
}

void err_clear(struct cloche_err *err)
{
	if (err)
		memset(err, 0, sizeof(*err));
}

bool err_is_code(uint32_t code)
{
	switch (code) {
#define CLOCHE_ERROR(name, number, text, exit_status) case number:
#include <cloche/errors.def>
#undef CLOCHE_ERROR
		return true;
	default:
		return false;
	}
}
