/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_PROJECT_H
#define CLOCHE_PROJECT_H
/* The files of a project that are looked for rather than named: sandbox.yaml in .cloche, else in
 * .airut, and network-allowlist.yaml beside it. They lie where strangers and sandboxes write, so
 * they are proposals: what only narrows holds at once; what names something of the caller's or
 * widens anything holds when the person has consented to these very bytes in this directory.
 * (A file that the program names itself needs no consent: cloche_sandbox_load_config().)
 *
 * Consents are kept below the state directory, one a directory; nothing there is shown to a
 * sandbox. A project may be used by one thread at a time. Strings that are returned belong to the
 * project unless it says otherwise. */

#include <stdbool.h>
#include <stddef.h>

#include "allowlist.h"
#include "error.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_project cloche_project;

/* Reads the files of a directory, once: what is shown, consented to and obeyed is what was read
 * here. *ret is NULL if there are none; else the caller frees it. CLOCHE_E_DENIED if a file
 * or directory is a link, belongs to somebody else, or can be written by others; CLOCHE_E_CONFIG
 * if a file is wrong. */
CLOCHE_API int cloche_project_open(const char *dir, cloche_project **ret, cloche_err *err);
/* Frees it; NULL is fine. */
CLOCHE_API void cloche_project_free(cloche_project *project);

/* The directory as it really lies; any bytes but NUL. */
CLOCHE_API const char *cloche_project_dir(const cloche_project *project);
/* The files that were read, relative to it: i is 0 or 1; NULL at the end. */
CLOCHE_API const char *cloche_project_file(const cloche_project *project, size_t i);
/* SHA-256 of what was read, in hexadecimal. */
CLOCHE_API const char *cloche_project_hash(const cloche_project *project);

/* What the files ask for, in words, a line each, of printable ASCII and as long as they are; i from
 * 0, NULL at the end. None: they only narrow. */
CLOCHE_API const char *cloche_project_ask(const cloche_project *project, size_t i);
/* Whether they may be obeyed: nothing is asked for, or the person has consented to it. */
CLOCHE_API bool cloche_project_is_trusted(const cloche_project *project);
/* What is different from what the person consented to before, a line each: "+ " before what is new,
 * "- " before what is gone; NULL at the end. None if there was no consent, too: see since. */
CLOCHE_API const char *cloche_project_change(const cloche_project *project, size_t i);
/* When the person last consented to something in this directory ("2026-11-22T22:00:00Z"); NULL:
 * never. */
CLOCHE_API const char *cloche_project_since(const cloche_project *project);

/* Records the person's consent to what was read. */
CLOCHE_API int cloche_project_trust(cloche_project *project, cloche_err *err);

/* Puts the configuration into sandbox and adds the allowlist to allow (NULL: it is left out).
 * CLOCHE_E_DENIED if it is not trusted, with the command that asks the person. */
CLOCHE_API int cloche_project_apply(const cloche_project *project, cloche_sandbox *sandbox,
	cloche_allowlist *allow, cloche_err *err);

/* Takes back the consent for a directory, which need not exist any more. CLOCHE_E_NOT_FOUND if
 * there is none. */
CLOCHE_API int cloche_project_revoke(const char *dir, cloche_err *err);

/* One consent; strings are valid for the call. */
typedef struct cloche_consent {
	const char *dir; /* UTF-8; what was not is U+FFFD */
	const char *hash, *since;
} cloche_consent;

typedef void (*cloche_consent_fn)(const cloche_consent *consent, void *user);

/* Calls fn with every consent there is, sorted by directory. */
CLOCHE_API int cloche_project_list(cloche_consent_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
