/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Notices policy that a command made or changed: what lies in a workspace is the inside's to write,
 * but for .cloche and .airut, and the next run reads its policy from there. */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

enum { POLICY_FILES = 10 };

struct policy_file {
	char *path;
	bool existed;
	dev_t dev;
	ino_t ino;
	struct timespec changed;
};

struct policy_files {
	struct policy_file v[POLICY_FILES];
	size_t n;
};

/* Remembers those that a run here, or in workspace (NULL: none), would read, and those that were
 * named (NULL: not). What cannot be remembered for lack of memory is left out. */
void policy_files_note(
	struct policy_files *p, const char *workspace, const char *config, const char *allowlist);
/* Says on standard error which of them came to be or changed since. */
void policy_files_check(const struct policy_files *p);
void policy_files_done(struct policy_files *p);
