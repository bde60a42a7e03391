/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: no process runs all the time to look after logs, so a writer that finds its
 * log too long starts cloche-recorder to compact it. The recorder forks and its parent exits at
 * once, so the writer waits only for the start. The size of the log at that time, and what was left
 * of it, are kept in the file of the compaction lock, so that a failed attempt is not repeated with
 * each entry. */
#include "record/background.h"
#include "base/fd.h"
#include "base/program.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int lock_file(int dir, const char *name, bool wait)
{
	for (;;) {
		const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
		_cleanup_fd_ int fd = openat(dir, name, flags, 0600);
		struct stat ours, named;
		int r;

		if (fd < 0)
			return -errno;
		r = job_lock_within(fd, LOCK_EX, wait ? -1 : 0, -1);
		if (r < 0)
			return r;
		if (fstat(fd, &ours) < 0)
			return -errno;
		/* It may have been removed with the log while we waited. */
		if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
			ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
			return TAKE_FD(fd);
	}
}

int oplog_lock_compaction(const struct oplog *l, bool wait, struct cloche_err *err)
{
	_cleanup_(freep) char *name = NULL;
	int fd;

	if (asprintf(&name, "%s" OPLOG_LOCK_SUFFIX, l->file) < 0) {
		name = NULL;
		return err_nomem(err);
	}
	fd = lock_file(l->dir, name, wait);
	if (fd == -EWOULDBLOCK)
		return err_set(err, E_BUSY, "%s is being compacted", l->file);
	return fd < 0 ? err_sys(err, -fd, "lock %s", name) : fd;
}

/* What the last compaction left, and the log's size at an attempt that has not finished. */
struct note {
	uint64_t left, tried;
};

static struct note read_note(int fd)
{
	struct note n = {0};
	char text[64] = "", *end;

	if (pread(fd, text, sizeof(text) - 1, 0) > 0) {
		n.left = strtoull(text, &end, 10);
		n.tried = strtoull(end, NULL, 10);
	}
	return n;
}

static void write_note(int fd, struct note note)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%020llu %020llu\n", (unsigned long long)note.left,
		(unsigned long long)note.tried);

	/* The length is fixed, so that one write replaces the whole note. */
	if (pwrite(fd, text, (size_t)n, 0) != n)
		(void)errno;
}

void oplog_note_attempt(int lock, uint64_t bytes)
{
	write_note(lock, (struct note){.left = read_note(lock).left, .tried = bytes});
}

void oplog_note_left(int lock, uint64_t bytes)
{
	write_note(lock, (struct note){.left = bytes});
}

/* Return the size from which on compaction is due. */
static uint64_t find_due(const struct oplog *l)
{
	_cleanup_(freep) char *name = NULL;
	_cleanup_fd_ int fd = -1;
	struct note note;
	uint64_t due;

	if (asprintf(&name, "%s" OPLOG_LOCK_SUFFIX, l->file) < 0) {
		name = NULL;
		return l->compact_from;
	}
	fd = openat(l->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return l->compact_from;
	note = read_note(fd);
	due = note.tried ? note.tried + l->compact_from : l->compact_from;
	return MAX(due, 2 * note.left);
}

static void start(const struct oplog *l)
{
	static const char *const policies[] = {[OPLOG_SYNC_INTERVAL] = "interval",
		[OPLOG_SYNC_ALWAYS] = "always",
		[OPLOG_SYNC_NEVER] = "never"};
	_cleanup_(freep) char *name = strndup(l->file, strlen(l->file) - strlen(OPLOG_SUFFIX));
	/* Read-only: landlock may forbid the writer to open it for writing. */
	_cleanup_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const char *const argv[] = {"cloche-recorder", "compact", name, policies[l->sync], NULL};
	const struct program_fd fd = {l->dir, 3};
	const struct program_spawn spawn = {
		.argv = argv, .fds = &fd, .fds_n = 1, .stdio = {null, null, null}};
	int status;
	pid_t pid;

	if (!name || null < 0 || program_start(&spawn, &pid, NULL, NULL) < 0)
		return;
	/* Its first process ends at once. */
	job_hold_cancel();
	(void)!job_wait_child(pid, &status);
	job_release_cancel();
}

void oplog_compact_when_due(struct oplog *l)
{
	if (l->compact_from == 0 || l->size < MAX(l->compact_from, l->compact_at))
		return;
	l->compact_at = find_due(l);
	if (l->size < l->compact_at)
		return;
	/* Do not start it again with each entry while it runs. */
	l->compact_at = l->size + l->compact_from;
	start(l);
}
