/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: everything in a room descends from its process 1 (an orphan becomes its
 * child), so the lists of children that the kernel keeps for each thread lead to all of it, without
 * reading the other processes of the machine. Only counters are read, nothing that walks the memory
 * of a process or waits for a lock that a hostile process could hold. The number of processes is
 * limited. */
#include "room/proctree.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 65536, FILE_MAX_BYTES = 16384, CHILDREN_MAX_BYTES = 1 << 20 };

/* Fields of /proc/PID/stat after the name, counted from 0 = the state (field 3 of proc(5)). */
enum { STAT_UTIME = 11, STAT_STIME, STAT_CUTIME, STAT_CSTIME, STAT_THREADS = 17, STAT_N = 18 };

static bool read_stat(int dir, struct room_usage *sum)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	static uint64_t tick_usec;
	uint64_t ticks = 0, threads = 0, v;
	const char *end;
	struct str s;
	unsigned i;

	if (fd_read_file(dir, "stat", &text, NULL) < 0)
		return false;
	s = buf_str(&text);
	end = s.n ? memrchr(s.p, ')', s.n) : NULL;
	if (!end)
		return false;
	s = str_from_index(s, (size_t)(end - s.p) + 2);
	for (i = 0; i < STAT_N; i++) {
		struct str word = str_next(&s, ' ');

		if (i < STAT_UTIME || parse_u64(word, UINT64_MAX, &v) < 0)
			continue;
		if (i <= STAT_CSTIME)
			ticks += v;
		if (i == STAT_THREADS)
			threads = v;
	}
	if (!tick_usec)
		tick_usec = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	sum->cpu_usec += ticks * tick_usec;
	sum->pids += threads;
	return true;
}

/* "size resident shared ...", in pages; shared means files and shared memory. */
static void read_memory(int dir, struct room_usage *sum)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	unsigned long long resident, shared;

	if (fd_read_file(dir, "statm", &text, NULL) < 0 || !buf_cstr(&text) ||
		sscanf(buf_data(&text), "%*u %llu %llu", &resident, &shared) != 2 ||
		shared > resident)
		return;
	sum->memory_bytes += (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* When a process is waited for, the kernel adds its reads and writes to its parent's. */
static void add_io(struct str rest, struct room_usage *sum)
{
	static const struct str keys[] = {{"read_bytes: ", 12}, {"write_bytes: ", 13}};
	uint64_t *const into[] = {&sum->io_read_bytes, &sum->io_write_bytes};
	uint64_t v;

	while (rest.n) {
		struct str line = str_next_line(&rest);

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (str_starts(line, keys[i]) &&
				parse_u64(str_from_index(line, keys[i].n), UINT64_MAX, &v) == 0)
				*into[i] += v;
	}
}

static void read_io(int dir, struct room_usage *sum)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);

	if (fd_read_file(dir, "io", &text, NULL) == 0)
		add_io(buf_str(&text), sum);
}

void proctree_add_io(int fd, struct room_usage *sum)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(FILE_MAX_BYTES);

	if (lseek(fd, 0, SEEK_SET) == 0 && fd_read_to_end(fd, &text) == 0)
		add_io(buf_str(&text), sum);
}

/* Append the pids in a list "12 13 " to todo. */
static void add_children(int task, const char *thread, struct buf *todo)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(CHILDREN_MAX_BYTES);
	char path[64];
	struct str rest;
	uint64_t v;

	snprintf(path, sizeof(path), "%.20s/children", thread);
	if (fd_read_file(task, path, &text, NULL) < 0)
		return;
	for (rest = buf_str(&text); rest.n;) {
		pid_t pid;

		if (parse_u64(str_next(&rest, ' '), INT32_MAX, &v) < 0)
			continue;
		pid = (pid_t)v;
		if (buf_add(todo, &pid, sizeof(pid)) < 0)
			return;
	}
}

static void find_children(int dir, struct buf *todo)
{
	_cleanup_(fs_list_closep) DIR *threads = fs_list(dir, "task");
	struct dirent *e;

	while (threads && (e = fs_list_next(threads)))
		add_children(dirfd(threads), e->d_name, todo);
}

/* Use one descriptor, so that everything that is read belongs to one process. */
static bool visit_one(
	pid_t pid, bool (*visit)(void *user, pid_t pid, int dir), void *user, struct buf *todo)
{
	_cleanup_fd_ int dir = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return true;
	if (!visit(user, pid, dir))
		return false;
	find_children(dir, todo);
	return true;
}

void proctree_each(pid_t root, bool (*visit)(void *user, pid_t pid, int dir), void *user)
{
	_cleanup_(buf_donep) struct buf todo = BUF_INIT(PROCESSES_MAX * sizeof(pid_t));
	bool go_on = visit_one(root, visit, user, &todo);
	pid_t pid;
	int left = PROCESSES_MAX;

	while (go_on && buf_len(&todo) && left-- > 0) {
		memcpy(&pid, buf_data(&todo), sizeof(pid));
		buf_consume(&todo, sizeof(pid));
		go_on = visit_one(pid, visit, user, &todo);
	}
}

static bool add_up(void *user, pid_t pid, int dir)
{
	struct room_usage *sum = user;

	if (read_stat(dir, sum)) {
		read_memory(dir, sum);
		read_io(dir, sum);
	}
	return true;
}

bool proctree_read(pid_t root, struct room_usage *ret)
{
	struct room_usage sum = {0};

	proctree_each(root, add_up, &sum);
	if (sum.pids == 0) /* root is gone */
		return false;
	*ret = sum;
	return true;
}

void proctree_add_sample(struct room_usage *u, const struct room_usage *now)
{
	u->cpu_usec = MAX(u->cpu_usec, now->cpu_usec);
	u->memory_bytes = now->memory_bytes;
	u->memory_peak_bytes = MAX(u->memory_peak_bytes, now->memory_bytes);
	u->memory_peak_bytes = MAX(u->memory_peak_bytes, now->memory_peak_bytes);
	u->pids = now->pids;
	u->pids_peak = MAX(u->pids_peak, now->pids);
	u->pids_peak = MAX(u->pids_peak, now->pids_peak);
	u->io_read_bytes = MAX(u->io_read_bytes, now->io_read_bytes);
	u->io_write_bytes = MAX(u->io_write_bytes, now->io_write_bytes);
	u->oom_kills = MAX(u->oom_kills, now->oom_kills);
	u->pids_refused |= now->pids_refused;
	u->sampled = true;
}
