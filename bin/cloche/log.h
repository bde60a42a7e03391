/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What replay and create share. */

#include <cloche/state.h>

/* A log by what a person wrote: a path, or a sandbox. */
int open_log(const char *name, cloche_oplog **ret, cloche_err *err);
/* The last entry to replay by what a person wrote; 0: all. */
int read_last(cloche_oplog *log, const char *text, uint64_t *ret, cloche_err *err);
/* As a page for a person, to a file or "-". */
int write_report(cloche_oplog *log, const char *path, bool force, cloche_err *err);
/* The rest of an event's line. */
void event_print(const cloche_operation *op);
/* Replays it up to an entry (0: all), and says what was passed over. */
int replay_log(cloche_oplog *log, const cloche_instance *instance, uint64_t last, cloche_err *err);

/* An entry's number or a time, as --from and --to take them. */
struct bound {
	uint64_t number, time_us; /* one of them; both 0: none */
};
int log_read_bound(const char *text, struct bound *ret, cloche_err *err);

/* Prints what differs between two such bounds (log_diff.c). */
int log_diff(const char *name, const char *from, const char *to, bool json, cloche_err *err);
