/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_NETWORK_LOG_H
#define CLOCHE_NETWORK_LOG_H
/* Reads a network log in either format (plain or JSON Lines). What is returned is escaped, because
 * the file can hold hostile text. One thread at a time. */

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

typedef struct cloche_network_entry {
	bool blocked;
	const char *line; /* for display, NUL-terminated; valid until the next call */
	const char *json; /* the same as one JSON object */
} cloche_network_entry;

/* Return 1 with the next entry, 0 at the end, negative on failure. */
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
