/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/rest.h"
#include "base/str.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* A line of /proc/self/status, in KiB. */
static long resident(const char *field)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 16);
	long kib = -1;
	const char *at;

	must(fd_read_file(AT_FDCWD, "/proc/self/status", &b, NULL) == 0);
	at = strstr(buf_cstr(&b), field);
	if (at)
		kib = strtol(at + strlen(field), NULL, 10);
	return kib;
}

static const char constant[8192] = "what is read-only";
static char variable[8192] = "what was written";

static void everything_is_still_there(void)
{
	char *heap = strdup("on the heap"), *end;
	int (*volatile call)(const char *, const char *) = strcmp;

	if (!heap)
		abort();
	memcpy(variable, "changed", 8);
	for (int i = 0; i < 3; i++) {
		rest_memory();
		check_int(call(constant, "what is read-only"), 0);
		check_int(call(variable, "changed"), 0);
		check_int(call(heap, "on the heap"), 0);
		/* Through the tables that the linker filled in. */
		check_int((int)strtol("42", &end, 10), 42);
	}
	free(heap);
}

static void file_pages_are_dropped(void)
{
	long before, after;

	before = resident("RssFile:");
	rest_memory();
	after = resident("RssFile:");
	printf("# file pages: %ld KiB, then %ld KiB\n", before, after);
	check(before > 0 && after > 0);
	/* Reading the second figure brought some back, never all of it. */
	check(after < before);
}

static void heap_is_given_back(void)
{
	enum { N = 2000, BYTES = 4096 };
	static char *block[N];
	char *last;
	long before, after;

	for (int i = 0; i < N; i++) {
		block[i] = malloc(BYTES);
		if (!block[i])
			abort();
		memset(block[i], i, BYTES);
	}
	last = strdup("keeps the heap's end where it is");
	for (int i = 0; i < N; i++)
		free(block[i]);
	before = resident("RssAnon:");
	rest_memory();
	after = resident("RssAnon:");
	printf("# own pages: %ld KiB, then %ld KiB\n", before, after);
#ifndef SANITIZED
	check(after < before - N * BYTES / 1024 / 2);
#endif
	free(last);
}

int main(void)
{
	run_test(everything_is_still_there);
	run_test(file_pages_are_dropped);
	run_test(heap_is_given_back);
	return tap_done();
}
