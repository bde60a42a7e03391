/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: only for programs linked with musl. The system's static libraries (jansson,
 * libyaml) were compiled for glibc, whose headers turn some calls into checked variants. musl keeps
 * glibc's binary interface for everything else that these libraries use; what is missing is here,
 * with the same checks. A library that needs more does not link, and the build falls back to
 * glibc. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __vsnprintf_chk(char *p, size_t n, int flag, size_t size, const char *fmt, va_list ap);
int __snprintf_chk(char *p, size_t n, int flag, size_t size, const char *fmt, ...);
int __sprintf_chk(char *p, int flag, size_t size, const char *fmt, ...);
char *__strncpy_chk(char *p, const char *from, size_t n, size_t size);

int __vsnprintf_chk(char *p, size_t n, int flag, size_t size, const char *fmt, va_list ap)
{
	if (n > size)
		abort();
	return vsnprintf(p, n, fmt, ap);
}

int __snprintf_chk(char *p, size_t n, int flag, size_t size, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = __vsnprintf_chk(p, n, flag, size, fmt, ap);
	va_end(ap);
	return r;
}

int __sprintf_chk(char *p, int flag, size_t size, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(p, size, fmt, ap);
	va_end(ap);
	if (r >= 0 && (size_t)r >= size)
		abort();
	return r;
}

char *__strncpy_chk(char *p, const char *from, size_t n, size_t size)
{
	size_t len = strnlen(from, n);

	if (n > size)
		abort();
	memcpy(p, from, len);
	memset(p + len, 0, n - len);
	return p;
}
