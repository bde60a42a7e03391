/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by log, replay and create. */

#include <cloche/state.h>

/* Open a log from user input: a path, or a sandbox. */
int open_log(const char *name, cloche_oplog **ret, cloche_err *err);
/* Close the log (NULL is allowed), and warn if a part of it was ignored. */
void close_log(cloche_oplog *log);
static inline void close_logp(cloche_oplog **log)
{
	close_log(*log);
}
/* Fail if the log ends before the entry with that number. */
int log_check_entry(cloche_oplog *log, uint64_t number, cloche_err *err);
/* Parse --to: the number of the last entry to replay, or "start". NULL gives 0: all. */
int read_last(cloche_oplog *log, const char *text, uint64_t *ret, cloche_err *err);
/* The rest of an event's line. */
void event_print(const cloche_operation *op);
/* Tell the user of operations that were skipped. */
void tell_unknown(const cloche_replayed *done);

/* A bound for --from and --to: the number of an entry, or a time. */
struct bound {
	uint64_t number, time_us; /* one of the two; both 0: no bound */
};
int log_read_bound(const char *text, struct bound *ret, cloche_err *err);

/* Print the differences between two bounds (log_diff.c). */
int log_diff(const char *name, const char *from, const char *to, bool json, cloche_err *err);
