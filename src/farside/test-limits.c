/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "farside/limits.h"
#include "fs/fs.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SWAPS "Filename Type Size Used Priority\n"
#define V1 "sys/fs/cgroup/"

struct row {
	const char *files[12]; /* path, text, ... */
	uint64_t memory, cpus, pids;
};

static void write_below(const char *dir, const char *path, const char *text)
{
	char full[TAP_DIR_BYTES + 128], *slash;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	slash = strrchr(full, '/');
	*slash = '\0';
	must(fs_mkdirs(full, 0700, NULL) == 0);
	*slash = '/';
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	fd_close(fd);
}

static void what_a_place_limits(void)
{
	static const struct row rows[] = {
		{{0}, 0, 0, 0},
		/* Version 2. */
		{{V1 "memory.max", "1048576\n", V1 "memory.swap.max", "0\n", V1 "cpu.max",
			 "150000 100000\n", V1 "pids.max", "64\n"},
			1048576, 1500, 64},
		{{V1 "memory.max", "max\n", V1 "cpu.max", "max 100000\n", V1 "pids.max", "max\n"},
			0, 0, 0},
		/* Swap counts, if there is any. */
		{{V1 "memory.max", "1048576\n", V1 "memory.swap.max", "4096\n"}, 1052672, 0, 0},
		{{V1 "memory.max", "1048576\n", V1 "memory.swap.max", "max\n"}, 0, 0, 0},
		{{V1 "memory.max", "1048576\n"}, 0, 0, 0},
		{{V1 "memory.max", "1048576\n", V1 "memory.swap.max", "max\n", "proc/swaps", SWAPS},
			1048576, 0, 0},
		{{V1 "memory.max", "1048576\n", V1 "memory.swap.max", "max\n", "proc/swaps",
			 SWAPS "/dev/x partition 1 0 -2\n"},
			0, 0, 0},
		/* Version 1. */
		{{V1 "memory/memory.limit_in_bytes", "1048576\n",
			 V1 "memory/memory.memsw.limit_in_bytes", "1048576\n",
			 V1 "cpu/cpu.cfs_quota_us", "33333\n", V1 "cpu/cpu.cfs_period_us",
			 "100000\n", V1 "pids/pids.max", "7\n"},
			1048576, 334, 7},
		{{V1 "memory/memory.limit_in_bytes", "9223372036854771712\n",
			 V1 "cpu/cpu.cfs_quota_us", "-1\n", V1 "cpu/cpu.cfs_period_us", "100000\n",
			 V1 "pids/pids.max", "max\n", "proc/swaps", SWAPS},
			0, 0, 0},
		{{V1 "memory/memory.limit_in_bytes", "1048576\n"}, 0, 0, 0},
		{{V1 "memory/memory.limit_in_bytes", "1048576\n", "proc/swaps", SWAPS}, 1048576, 0,
			0},
		/* What nobody would write. */
		{{V1 "cpu.max", "1 0\n", V1 "pids.max", "99999999999999999999999\n",
			 V1 "memory.max", "\n"},
			0, 0, 0},
		{{V1 "cpu.max", "4611686018427387903 1\n", V1 "pids.max", "-7\n"}, 0, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char dir[TAP_DIR_BYTES];
		struct room_limits got;
		int root;

		tap_dir(dir);
		for (size_t k = 0; rows[i].files[k]; k += 2)
			write_below(dir, rows[i].files[k], rows[i].files[k + 1]);
		root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		must(root >= 0);
		limits_of_place(root, &got);
		check_int(got.memory_bytes, rows[i].memory);
		check_int(got.cpus_milli, rows[i].cpus);
		check_int(got.pids, rows[i].pids);
		fd_close(root);
	}
}

static void what_is_in_force_is_asked_for_no_more(void)
{
	static const struct room_limits place = {
		.memory_bytes = 1000, .cpus_milli = 500, .pids = 0};
	struct room_limits l = {.memory_bytes = 1000, .cpus_milli = 499, .pids = 10, .nofile = 3};

	limits_drop_given(&place, &l);
	check_int(l.memory_bytes, 0);
	check_int(l.cpus_milli, 499);
	check_int(l.pids, 10);
	check_int(l.nofile, 3);
	l = (struct room_limits){.cpus_milli = 2000};
	limits_drop_given(&place, &l);
	check_int(l.cpus_milli, 0);
}

int main(void)
{
	run_test(what_a_place_limits);
	run_test(what_is_in_force_is_asked_for_no_more);
	return tap_done();
}
