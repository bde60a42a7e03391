/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Managers and what they make, for tests. What cannot be has failed, or ends the test. */

#include <cloche/manager.h>

#define SECONDS(n) ((uint64_t)(n)*1000)

extern cloche_err err; /* of the last call that failed */

/* Without a bound on runs and without a thread; its sandboxes have little memory. */
cloche_manager *open_manager(void);
void set_max_runs(cloche_manager *m, unsigned runs);
void set_memory(cloche_sandbox *sb, uint64_t bytes);
void set_interval(cloche_manager *m, uint64_t milliseconds);
void set_lifetime(cloche_manager *m, uint64_t milliseconds);
void clean_up_at_exit(cloche_manager *m);
/* Make a sandbox of its defaults. Its id, in memory of the caller's. */
const char *create(cloche_manager *m, const char *run_id, char ret[64]);
/* Start a command that stays. */
void occupy(const char *id);

bool runs(const char *id);
bool is_gone(const char *id);
bool becomes_gone(const char *id);
/* Of those that the manager knows. */
size_t count(cloche_manager *m);
