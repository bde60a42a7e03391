/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_ALLOWLIST_H
#define CLOCHE_ALLOWLIST_H
/* What a sandbox may reach: rules from YAML files and shorthands, and the question what they would
 * decide. See cloche-run(1), ALLOWLIST, for the format. One thread at a time. */

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_allowlist cloche_allowlist;

/* An empty allowlist, which blocks everything. NULL on lack of memory. */
CLOCHE_API cloche_allowlist *cloche_allowlist_new(void);
CLOCHE_API void cloche_allowlist_free(cloche_allowlist *list);

/* Adds the rules of a YAML file, or of a text (name appears in messages; both copied). On failure
 * the list is unchanged and err names line and column. */
CLOCHE_API int cloche_allowlist_add_file(cloche_allowlist *list, const char *path, cloche_err *err);
CLOCHE_API int cloche_allowlist_add_text(
	cloche_allowlist *list, const char *name, const char *text, size_t length, cloche_err *err);

/* Adds HOST, HOST:PORT or SCHEME://HOST[:PORT][/PATH]. Copied. */
CLOCHE_API int cloche_allowlist_add_host(
	cloche_allowlist *list, const char *shorthand, cloche_err *err);

/* How many rules there are. */
CLOCHE_API size_t cloche_allowlist_count(const cloche_allowlist *list);

/* An answer of cloche_allowlist_check(). Every string is terminated and printable. */
typedef struct cloche_verdict {
	bool allowed;
	char reason[32];        /* "allowed", "host", "path", "method", ... */
	char explanation[1024]; /* one sentence */
	char rule[512];         /* the rule that decided or came nearest, or "" */
	char suggestion[1024];  /* YAML that would allow the request, or "" */
} cloche_verdict;

/* Decides METHOD on an absolute http or https URL as the gateway would; on a ws or wss URL, whether
 * it may become a WebSocket; of CONNECT and HOST[:PORT], whether TLS may pass undecrypted. What a
 * body asks for is not judged. Returns 0 with *ret filled (allowed or not), or negative if url
 * is not one. */
CLOCHE_API int cloche_allowlist_check(const cloche_allowlist *list, const char *method,
	const char *url, cloche_verdict *ret, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
