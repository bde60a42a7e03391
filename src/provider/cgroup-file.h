/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files of a control group: short texts of numbers and words. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the name of every group of a room begins with. */
#define CGROUP_PREFIX "cloche-"
/* Version 2: the group below it in which the room's processes are. */
#define CGROUP_INNER "room"

/* How deep the groups are that a room can make below its own. */
enum { CGROUP_DEPTH_MAX = 16 };

/* Writes to dir/file, which has to exist. 0 or -errno. */
_warn_unused_ int cgroup_write(const char *dir, const char *file, const char *value);
_warn_unused_ int cgroup_write_number(const char *dir, const char *file, uint64_t v);

/* The number after `key` and a space in dir/file (key NULL: the file is the number); 0 if it is
 * not there. dir may be NULL. */
uint64_t cgroup_read_number(const char *dir, const char *file, const char *key);

/* Adds up the numbers behind "key=" in every line of dir/file ("8:0 rbytes=1 wbytes=2 ..."). */
uint64_t cgroup_sum_numbers(const char *dir, const char *file, const char *key);

/* Whether the file is there. */
bool cgroup_has_file(const char *dir, const char *file);

/* Whether the first line of dir/file is a list of words with `word` among them. */
bool cgroup_file_has_word(const char *dir, const char *file, const char *word);

/* Calls fn for every process of the group that we can see (0, a process of another pid namespace,
 * is left out). Returns how many processes there are, the invisible ones too; negative if the
 * file cannot be read. */
_warn_unused_ int cgroup_each_process(
	const char *dir, void (*fn)(pid_t pid, void *user), void *user);
