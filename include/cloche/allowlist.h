/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_ALLOWLIST_H
#define CLOCHE_ALLOWLIST_H
/* Allowlists: what a sandbox may reach. Rules come from YAML files, texts and shorthands, and a
 * request can be checked against them. See cloche(1), ALLOWLIST, for the format. An allowlist
 * may be used by one thread at a time. */

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_allowlist cloche_allowlist;

/* Return an empty allowlist, which blocks everything, or NULL if out of memory. */
CLOCHE_API cloche_allowlist *cloche_allowlist_new(void);
CLOCHE_API void cloche_allowlist_free(cloche_allowlist *list);

/* Add the rules of a YAML file, or of a YAML text (name stands for it in messages). name and text
 * are copied. On failure the list is unchanged and err names the line and column. */
CLOCHE_API int cloche_allowlist_add_file(cloche_allowlist *list, const char *path, cloche_err *err);
CLOCHE_API int cloche_allowlist_add_text(
	cloche_allowlist *list, const char *name, const char *text, size_t length, cloche_err *err);

/* Add HOST, HOST:PORT or SCHEME://HOST[:PORT][/PATH]. It is copied. */
CLOCHE_API int cloche_allowlist_add_host(
	cloche_allowlist *list, const char *shorthand, cloche_err *err);

/* Add the rules of a preset: a file of that name in ~/.config/cloche/presets, or one that comes
 * with cloche. name is copied. E_USAGE if there is none. */
CLOCHE_API int cloche_allowlist_add_preset(
	cloche_allowlist *list, const char *name, cloche_err *err);

/* Called with each preset in the order of their names; both texts are borrowed. */
typedef void (*cloche_preset_fn)(const char *name, const char *yaml, void *user);
/* List the presets, except those that cannot be read. Any thread. */
CLOCHE_API int cloche_preset_list(cloche_preset_fn fn, void *user, cloche_err *err);

/* Deny HOST or SCHEME://HOST[:PORT][/PATH], which closes what was added to the list before: every
 * port if none is named, and every spelling of the path. What is added later may open it again. */
CLOCHE_API int cloche_allowlist_deny_host(
	cloche_allowlist *list, const char *shorthand, cloche_err *err);

/* Return the number of rules; denials do not count. */
CLOCHE_API size_t cloche_allowlist_count(const cloche_allowlist *list);

/* Store the rules as a JSON text in *ret, which the caller frees: an object of the arrays "domains"
 * and "url_prefixes", with the keys of the YAML form except those that have their default. Denials
 * have no such form and are left out.
 * cloche_allowlist_add_text() reads it again. */
CLOCHE_API int cloche_allowlist_json(const cloche_allowlist *list, char **ret, cloche_err *err);

/* The answer of cloche_allowlist_check(). Every string is NUL-terminated and printable. */
typedef struct cloche_verdict {
	bool allowed;
	char reason[32];        /* "allowed", "host", "path", "method", ... */
	char explanation[1024]; /* one sentence */
	char rule[512];         /* the rule that decided or came closest, or "" */
	char suggestion[1024];  /* YAML that would allow the request, or "" */
} cloche_verdict;

/* Decide a request as the gateway would. For an absolute http or https URL: whether the method is
 * allowed. For a ws or wss URL: whether the request may become a WebSocket. For CONNECT with
 * HOST[:PORT]: whether TLS may pass undecrypted. Request bodies are not judged. Return 0 and fill
 * *ret (allowed or not), or a negated error code if url is not a URL. */
CLOCHE_API int cloche_allowlist_check(const cloche_allowlist *list, const char *method,
	const char *url, cloche_verdict *ret, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
