/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_NETWORK_LOG_H
#define CLOCHE_NETWORK_LOG_H
/* Reads a network log in either format (plain or JSON Lines). Each sandbox with a network keeps one
 * by itself, without being asked, which cloche_network_log_find() finds. What is returned is
 * escaped, because the file can hold hostile text. One thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_network_log cloche_network_log;

/* Open a log file for reading. */
CLOCHE_API int cloche_network_log_open(const char *path, cloche_network_log **ret, cloche_err *err);
CLOCHE_API void cloche_network_log_close(cloche_network_log *log);

/* Store the path of the log that a sandbox keeps in *ret, which the caller frees. sandbox is its
 * id, the beginning of that, or its name. It has at most the last 16 MiB of its events; of
 * sandboxes that have ended, the last 64 logs are there. CLOCHE_E_NOT_FOUND if there is none. */
CLOCHE_API int cloche_network_log_find(const char *sandbox, char **ret, cloche_err *err);
/* Leave out all entries that the log has now. */
CLOCHE_API int cloche_network_log_skip(cloche_network_log *log, cloche_err *err);
/* Wait until a log of cloche_network_log_find() has more entries, and return 1. Return 0 if there
 * are none and its sandbox has ended. */
CLOCHE_API int cloche_network_log_wait(cloche_network_log *log, cloche_err *err);

typedef struct cloche_network_entry {
	bool blocked;
	const char *line; /* for display, NUL-terminated; valid until the next call */
	const char *json; /* the same as one JSON object */
} cloche_network_entry;

/* Return 1 with the next entry, 0 at the end, negative on failure: CLOCHE_E_CONFIG at the end of a
 * file of which no line is a log line. */
CLOCHE_API int cloche_network_log_next(
	cloche_network_log *log, cloche_network_entry *ret, cloche_err *err);

typedef struct cloche_network_summary {
	uint64_t allowed, blocked, dns, errors, stripped, masked;
	uint64_t bytes_in, bytes_out;
} cloche_network_summary;

/* Return the counts of what was read so far. */
CLOCHE_API cloche_network_summary cloche_network_log_summary(const cloche_network_log *log);

/* An allowlist proposed from a log. The texts are freed with it. */
typedef struct cloche_network_suggestion {
	size_t size;      /* of this struct in the library: later versions append members */
	const char *yaml; /* the allowlist, for cloche_allowlist_add_text() */
	const char *json; /* the same and what was left out, as one document */
} cloche_network_suggestion;

/* Read a log and propose the smallest allowlist that its requests need (blocked_only: the blocked
 * requests), with the hosts, ports, paths and methods that were requested. Requests that no entry
 * can allow, or that were refused for other reasons than the rules, are listed in remarks.
 * CLOCHE_E_CONFIG if no line of the file is a log line. */
CLOCHE_API int cloche_network_log_suggest(
	const char *path, bool blocked_only, cloche_network_suggestion **ret, cloche_err *err);
CLOCHE_API void cloche_network_suggestion_free(cloche_network_suggestion *s);
#ifdef __cplusplus
}
#endif
#endif
