/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: in a container, /sys/fs/cgroup shows the container's own group: with version
 * 2 as the root of the only hierarchy, with version 1 as the root of each. On a machine, the same
 * paths lead to the root of everything, which has no limits. The room's processes are in that group
 * or below it, so they are never less limited than what is read here. */
#include "farside/limits.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#include <string.h>

#define GROUPS "sys/fs/cgroup/"

enum { LIMITS_FILE_MAX = 64 * 1024 };
/* What version 1 says if there is none is more than this. */
#define LIMITS_NONE (UINT64_C(1) << 62)

/* Take a word off the front. What is no number ("max", "-1") limits nothing. */
static uint64_t limits_word(struct str *rest)
{
	struct str word = str_trim(str_next(rest, ' '));
	uint64_t n;

	return parse_u64(word, LIMITS_NONE, &n) < 0 ? LIMITS_NONE : n;
}

/* Read up to two numbers of a file into ret. Return whether the file is there. */
static bool limits_read(int root_fd, const char *path, uint64_t ret[2])
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(LIMITS_FILE_MAX);
	struct str rest, line;

	ret[0] = ret[1] = LIMITS_NONE;
	if (fd_read_file(root_fd, path, &text, NULL) < 0)
		return false;
	rest = buf_str(&text);
	line = str_next_line(&rest);
	ret[0] = limits_word(&line);
	ret[1] = limits_word(&line);
	return true;
}

/* Return whether the machine has no swap: one line of headings, then one for each swap area. */
static bool limits_swap_is_off(int root_fd)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(LIMITS_FILE_MAX);
	struct str rest;

	if (fd_read_file(root_fd, "proc/swaps", &text, NULL) < 0)
		return false;
	rest = buf_str(&text);
	(void)str_next_line(&rest);
	return rest.n == 0;
}

static uint64_t limits_memory(int root_fd)
{
	bool no_swap = limits_swap_is_off(root_fd);
	uint64_t most[2], swap[2];

	if (limits_read(root_fd, GROUPS "memory.max", most)) {
		(void)limits_read(root_fd, GROUPS "memory.swap.max", swap);
		return no_swap ? most[0] : MIN(most[0] + swap[0], LIMITS_NONE);
	}
	(void)limits_read(root_fd, GROUPS "memory/memory.limit_in_bytes", most);
	/* This one is of both together. */
	(void)limits_read(root_fd, GROUPS "memory/memory.memsw.limit_in_bytes", swap);
	return no_swap ? most[0] : swap[0];
}

static uint64_t limits_cpus(int root_fd)
{
	uint64_t quota[2], period[2];

	if (!limits_read(root_fd, GROUPS "cpu.max", quota)) {
		(void)limits_read(root_fd, GROUPS "cpu/cpu.cfs_quota_us", quota);
		(void)limits_read(root_fd, GROUPS "cpu/cpu.cfs_period_us", period);
		quota[1] = period[0];
	}
	if (quota[0] >= LIMITS_NONE / 1000 || quota[1] == 0 || quota[1] >= LIMITS_NONE)
		return LIMITS_NONE;
	return (quota[0] * 1000 + quota[1] - 1) / quota[1];
}

static uint64_t limits_pids(int root_fd)
{
	uint64_t most[2];

	if (!limits_read(root_fd, GROUPS "pids.max", most))
		(void)limits_read(root_fd, GROUPS "pids/pids.max", most);
	return most[0];
}

/* As a member of struct room_limits. */
static uint64_t limits_as_asked(uint64_t n)
{
	return n >= LIMITS_NONE ? 0 : n;
}

void limits_of_place(int root_fd, struct room_limits *ret)
{
	*ret = (struct room_limits){
		.memory_bytes = limits_as_asked(limits_memory(root_fd)),
		.cpus_milli = limits_as_asked(limits_cpus(root_fd)),
		.pids = limits_as_asked(limits_pids(root_fd)),
	};
}

/* Drop one that is in force. */
static void limits_drop(uint64_t given, uint64_t *asked)
{
	if (given && given <= *asked)
		*asked = 0;
}

void limits_drop_given(const struct room_limits *place, struct room_limits *l)
{
	limits_drop(place->memory_bytes, &l->memory_bytes);
	limits_drop(place->cpus_milli, &l->cpus_milli);
	limits_drop(place->pids, &l->pids);
}
