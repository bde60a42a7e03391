/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of any form, also from elsewhere, read from a descriptor. */
#include "base/fd.h"
#include "base/str.h"
#include "record/oplog.h"
#include "tap.h"

#include <sys/mman.h>

static int file_with(const char *text)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	return fd;
}

static int count(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	unsigned *n = user;

	check_int(op->kind, STATE_STORAGE_CLEAR);
	++*n;
	return 0;
}

static int take_two(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	unsigned *n = user;

	return ++*n == 2;
}

/* Of lines and of an array: who has enough is told no more. */
static void test_enough(void)
{
	static const char *const forms[] = {
		"{\"op\":\"storage.clear\",\"args\":{}}\n{\"op\":\"storage.clear\",\"args\":{}}\n"
		"{\"op\":\"storage.clear\",\"args\":{}}\n",
		"[{\"op\":\"storage.clear\",\"args\":{}},{\"op\":\"storage.clear\",\"args\":{}},"
		"{\"op\":\"storage.clear\",\"args\":{}}]"};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		_cleanup_fd_ int fd = file_with(forms[i]);
		unsigned n = 0;

		check_int(oplog_read_file(fd, NULL, take_two, &n, NULL), 1);
		check_int(n, 2);
	}
}

/* The end of a file from elsewhere is an entry, is said to be torn, or shows that the file is no
 * log. The end of a log of ours is passed over. */
static void test_ends_of_files(void)
{
#define ENTRY "{\"op\":\"storage.clear\",\"args\":{}}"
	static const struct {
		const char *text;
		int result;
		int entries, torn, ours; /* ours: of a log of ours, entries or a failure */
	} rows[] = {
		{"", 0, 0, 0, 0},
		{" \t", 0, 0, 0, 0},
		{"\n\n", 0, 0, 0, 0},
		{ENTRY, 0, 1, 0, 0},
		{ENTRY "\n" ENTRY, 0, 2, 0, 1},
		{ENTRY "\n" ENTRY " \r", 0, 2, 0, 1},
		{ENTRY "\n  ", 0, 1, 0, 1},
		{ENTRY "\n{\"op\":\"stor", 0, 1, 11, 1},
		{ENTRY "\n" ENTRY "{", 0, 1, 33, 1},
		{ENTRY "\n{\"op\":5}", -E_CORRUPT, 1, 0, 1},
		{"{\"a\":1}", -E_CORRUPT, 0, 0, 0},
		{"{\"op\":\"stor", -E_CORRUPT, 0, 0, 0},
		{"\n\nthis is not a log", -E_CORRUPT, 0, 0, 0},
		{"\xef\xbb\xbf[" ENTRY "]", -E_CORRUPT, 0, 0, 0},
		{"[" ENTRY "]", 0, 1, 0, 1},
		{"[" ENTRY "", -E_CORRUPT, 0, 0, -E_CORRUPT},
		{"\"[{\\\"op\\\":\\\"storage.clear\\\",\\\"args\\\":{}}]\"", 0, 1, 0, 1},
		{"\"[]\"", 0, 0, 0, 0},
		{"\"a text\"", -E_CORRUPT, 0, 0, -E_CORRUPT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_fd_ int fd = file_with(rows[i].text);
		uint64_t torn = 99;
		unsigned n = 0;
		int r;

		check_int(oplog_read_file(fd, &torn, count, &n, NULL), rows[i].result);
		check_int(n, rows[i].entries);
		check_int(torn, rows[i].torn);
		n = 0;
		r = oplog_read_file(fd, NULL, count, &n, NULL);
		check_int(r < 0 ? r : (int)n, rows[i].ours);
	}
#undef ENTRY
}

int main(void)
{
	run_test(test_enough);
	run_test(test_ends_of_files);
	return tap_done();
}
