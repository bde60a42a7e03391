/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "manager/execlog.h"
#include "seeded.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];
static int dirfd_ = -1;

static void fresh(void)
{
	if (dir[0])
		fs_remove_tree(AT_FDCWD, dir);
	tap_dir(dir);
	fd_close(dirfd_);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd_ >= 0);
}

static uint64_t on_disk(const char *name)
{
	struct stat st;

	must(fstatat(dirfd_, name, &st, 0) == 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Byte n of the output, so that what is read can be judged by where it is. */
static char byte_at(uint64_t n)
{
	return (char)((n * 2654435761U >> 7) & 0xff);
}

static void write_bytes(struct execlog *l, int stream, uint64_t n)
{
	char chunk[4096];

	while (n > 0) {
		uint64_t some = MIN(n, (uint64_t)sizeof(chunk));

		for (uint64_t i = 0; i < some; i++)
			chunk[i] = byte_at(l->end + i);
		execlog_write(l, stream, chunk, some);
		n -= some;
	}
}

static void both_streams_at_every_offset(void)
{
	struct execlog l;
	struct execlog_reader r;
	char want[5000], chunk[64];
	int streams[5000];
	uint64_t at = 0;

	fresh();
	must(execlog_make(&l, dirfd_, 0) == 0);
	while (at < sizeof(want)) {
		uint64_t n = MIN(sizeof(want) - at, (uint64_t)rand_below(40) + 1);
		int stream = (int)rand_below(2) + 1;

		for (uint64_t i = 0; i < n; i++) {
			want[at + i] = byte_at(at + i);
			streams[at + i] = stream;
		}
		execlog_write(&l, stream, want + at, n);
		at += n;
	}
	must(execlog_reader_open(&r, dirfd_, NULL) == 0);
	for (uint64_t from = 0; from < sizeof(want); from++) {
		uint64_t offset = from;
		int stream = 0;
		int64_t n = execlog_read(&r, &offset, chunk, sizeof(chunk), &stream);

		if (n <= 0 || offset != from || memcmp(chunk, want + from, (size_t)n) != 0) {
			tap_fail("at %llu", (unsigned long long)from);
			break;
		}
		for (int64_t i = 0; i < n; i++)
			if (streams[from + (uint64_t)i] != stream)
				tap_fail("stream at %llu", (unsigned long long)from + (uint64_t)i);
	}
	at = sizeof(want);
	check_int(execlog_read(&r, &at, chunk, sizeof(chunk), streams), 0);
	execlog_reader_done(&r);
	execlog_done(&l);
}

static void pipes_are_emptied_into_it(void)
{
	struct execlog l;
	struct execlog_reader r;
	int pair[2], stream;
	uint64_t offset = 0;
	char got[16];

	fresh();
	must(fd_pipe(pair) == 0 && fd_set_nonblock(pair[0], true) == 0);
	must(execlog_make(&l, dirfd_, 0) == 0);
	must(write(pair[1], "hello", 5) == 5);
	check_int(execlog_splice(&l, 2, pair[0], 5), 5);
	/* More than is there: a process inside took it back. */
	must(write(pair[1], "x", 1) == 1);
	check_int(execlog_splice(&l, 2, pair[0], 100), 1);
	must(execlog_reader_open(&r, dirfd_, NULL) == 0);
	check_int(execlog_read(&r, &offset, got, sizeof(got), &stream), 6);
	check_int(stream, 2);
	check(memcmp(got, "hellox", 6) == 0);
	execlog_reader_done(&r);
	execlog_done(&l);
	close(pair[0]);
	close(pair[1]);
}

static void the_oldest_is_given_up(void)
{
	const uint64_t total = 5 * EXECLOG_MIN_BYTES + 12345;
	struct execlog l;
	struct execlog_reader r;
	uint64_t start, end, offset = 0;
	char chunk[1000];
	int stream;
	int64_t n;

	fresh();
	must(execlog_make(&l, dirfd_, 1) == 0); /* raised to the least */
	write_bytes(&l, 1, total);
	check(on_disk(RUNDIR_OUT) <= EXECLOG_MIN_BYTES + 8192);
	must(execlog_reader_open(&r, dirfd_, NULL) == 0);
	must(execlog_extent(&r, &start, &end) == 0);
	check_int((long long)end, (long long)total);
	check(end - start <= EXECLOG_MIN_BYTES && end - start >= EXECLOG_MIN_BYTES / 2);
	n = execlog_read(&r, &offset, chunk, sizeof(chunk), &stream);
	check(n > 0);
	check_int((long long)offset, (long long)start);
	for (int64_t i = 0; i < n; i++)
		if (chunk[i] != byte_at(start + (uint64_t)i)) {
			tap_fail("wrong byte");
			break;
		}
	execlog_reader_done(&r);
	execlog_done(&l);
}

static void an_index_is_bounded_too(void)
{
	struct execlog l;
	struct execlog_reader r;
	uint64_t start, end;
	int wrong = 0, stream = 0;
	char byte;

	fresh();
	must(execlog_make(&l, dirfd_, 0) == 0);
	l.max = EXECLOG_MIN_BYTES;
	for (int i = 0; i < 200000; i++) {
		byte = byte_at(l.end);
		execlog_write(&l, i % 2 + 1, &byte, 1);
	}
	check(on_disk(RUNDIR_INDEX) <= 5 * 65536);
	check_int(l.sys_errno, 0);
	must(execlog_reader_open(&r, dirfd_, NULL) == 0);
	must(execlog_extent(&r, &start, &end) == 0);
	check_int((long long)end, 200000);
	check(end - start > 10000 && end - start < 66000);
	for (uint64_t at = start; at < end; at += 97) {
		uint64_t offset = at;

		if (execlog_read(&r, &offset, &byte, 1, &stream) != 1 || offset != at ||
			byte != byte_at(at) || stream != (int)(at % 2) + 1)
			wrong++;
	}
	check_int(wrong, 0);
	execlog_reader_done(&r);
	execlog_done(&l);
}

/* A reader beside a writer that gives up what it reads: never a wrong byte, never a wrong stream.
 */
static void readers_never_see_holes(void)
{
	struct execlog l;
	struct execlog_reader r;
	uint64_t offset = 0, seen = 0;
	char chunk[3000];
	pid_t pid;
	int wrong = 0, status, stream;

	fresh();
	must(execlog_make(&l, dirfd_, 1) == 0);
	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		/* Each block of 100 bytes belongs to one stream, by its number. */
		while (l.end < 3000000 && !l.sys_errno) {
			for (int i = 0; i < 100; i++)
				chunk[i] = byte_at(l.end + (uint64_t)i);
			execlog_write(&l, (int)(l.end / 100 % 3 == 0) + 1, chunk, 100);
		}
		_exit(l.sys_errno ? 1 : 0);
	}
	must(execlog_reader_open(&r, dirfd_, NULL) == 0);
	for (;;) {
		bool over = waitpid(pid, &status, WNOHANG) == pid;
		int64_t n;

		while ((n = execlog_read(&r, &offset, chunk, sizeof(chunk), &stream)) > 0) {
			for (int64_t i = 0; i < n; i++, offset++) {
				wrong += chunk[i] != byte_at(offset);
				wrong += stream != (int)(offset / 100 % 3 == 0) + 1;
			}
			seen += (uint64_t)n;
		}
		check(n == 0 || n == -EAGAIN);
		if (over)
			break;
	}
	check_int(wrong, 0);
	check_int(status, 0);
	check_int((long long)offset, 3000000);
	check(seen >= EXECLOG_MIN_BYTES / 2);
	execlog_reader_done(&r);
	execlog_done(&l);
}

static void a_full_disk_ends_the_log_alone(void)
{
	const struct rlimit least = {100000, RLIM_INFINITY}, most = {RLIM_INFINITY, RLIM_INFINITY};
	struct execlog l;
	int pair[2];
	char chunk[4096] = {0};

	fresh();
	must(fd_pipe(pair) == 0 && fd_set_nonblock(pair[0], true) == 0);
	must(execlog_make(&l, dirfd_, 0) == 0);
	must(setrlimit(RLIMIT_FSIZE, &least) == 0);
	for (int i = 0; i < 40; i++) {
		must(write(pair[1], chunk, sizeof(chunk)) == sizeof(chunk));
		check_int(execlog_splice(&l, 1, pair[0], sizeof(chunk)), sizeof(chunk));
	}
	execlog_write(&l, 1, chunk, 10);
	must(setrlimit(RLIMIT_FSIZE, &most) == 0);
	check_int(l.sys_errno, EFBIG);
	check_int((long long)(l.end + l.lost), 40 * 4096 + 10);
	check(l.lost > 0 && l.end <= 100000);
	execlog_done(&l);
	close(pair[0]);
	close(pair[1]);
}

static void without_files_everything_is_counted(void)
{
	struct execlog l;
	struct execlog_reader r;

	fresh();
	must(mkdirat(dirfd_, RUNDIR_OUT, 0700) == 0);
	check(execlog_make(&l, dirfd_, 0) < 0);
	execlog_write(&l, 1, "abc", 3);
	check_int((long long)l.lost, 3);
	execlog_done(&l);
	fresh();
	check_int(execlog_reader_open(&r, dirfd_, NULL), -E_NOT_FOUND);
}

int main(void)
{
	seeded_begin();
	signal(SIGXFSZ, SIG_IGN);
	run_test(both_streams_at_every_offset);
	run_test(pipes_are_emptied_into_it);
	run_test(the_oldest_is_given_up);
	run_test(an_index_is_bounded_too);
	run_test(readers_never_see_holes);
	run_test(a_full_disk_ends_the_log_alone);
	run_test(without_files_everything_is_counted);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
