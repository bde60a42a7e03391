/* SPDX-License-Identifier: Apache-2.0 */
#include "torture.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool torture_failed;
unsigned long torture_countdown;

static bool torture_fails(void)
{
	if (torture_countdown == 0 || --torture_countdown > 0)
		return false;
	torture_failed = true;
	errno = ENOMEM;
	return true;
}

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...);

void *__wrap_malloc(size_t n)
{
	return torture_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return torture_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return torture_fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	size_t whole;

	if (__builtin_mul_overflow(n, size, &whole) || torture_fails())
		return NULL;
	return __real_realloc(p, whole);
}

char *__wrap_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = torture_fails() ? NULL : __real_malloc(len + 1);

	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, strlen(s));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (torture_fails())
		return -1;
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	if (torture_fails())
		return -1;
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}
#pragma GCC diagnostic pop

void torture(void (*fn)(void))
{
	for (unsigned long n = 1; n < 100000; n++) {
		torture_countdown = n;
		torture_failed = false;
		fn();
		if (torture_countdown > 0)
			break;
	}
	torture_countdown = 0;
	torture_failed = false;
}
