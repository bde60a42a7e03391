/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files of a control group: short texts of numbers and words. */

#include "base/macro.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The prefix of the name of every room's group. */
#define CGROUP_PREFIX "cloche-"
/* Version 2: the group below it that holds the room's processes. */
#define CGROUP_INNER "room"

/* The most levels of groups that a room can make below its own. */
enum { CGROUP_DEPTH_MAX = 16 };

/* Write to dir/file, which has to exist. Return 0 or -errno. */
_warn_unused_ int cgroup_write(const char *dir, const char *file, const char *value);
_warn_unused_ int cgroup_write_number(const char *dir, const char *file, uint64_t v);

/* Return the number after `key` and a space in dir/file (key NULL: the file is the number), or 0 if
 * it is not there. dir may be NULL. */
uint64_t cgroup_read_number(const char *dir, const char *file, const char *key);

/* Add up the numbers after "key=" in every line of dir/file ("8:0 rbytes=1 wbytes=2 ..."). */
uint64_t cgroup_sum_numbers(const char *dir, const char *file, const char *key);

/* Return whether the file exists. */
bool cgroup_has_file(const char *dir, const char *file);

/* Return whether the first line of dir/file is a list of words with `word` among them. */
bool cgroup_file_has_word(const char *dir, const char *file, const char *word);

/* Call fn for every process of the group that we can see (0, a process of another pid namespace, is
 * left out). Return the number of processes, including the invisible ones, or a negative value if
 * the file cannot be read. */
_warn_unused_ int cgroup_each_process(
	const char *dir, void (*fn)(pid_t pid, void *user), void *user);
