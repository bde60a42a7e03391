/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_PROJECT_H
#define CLOCHE_PROJECT_H
/* The configuration files of a project that are searched for rather than named: sandbox.yaml in
 * .cloche, or else in .airut, and network-allowlist.yaml next to it. Strangers and sandboxes can
 * write there, so the files are only proposals. Settings that only restrict the sandbox apply at
 * once. Settings that use something of the caller's, or that allow more, apply only if the user has
 * consented to exactly these bytes in this directory. (A file that the program names itself needs
 * no consent: cloche_sandbox_load_config().)
 *
 * Consents are stored below the state directory, one per directory, and never shown to a sandbox. A
 * project may be used by one thread at a time. Returned strings belong to the project unless stated
 * otherwise. */

#include <stdbool.h>
#include <stddef.h>

#include "allowlist.h"
#include "error.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What was read. Lists end with NULL. Everything is freed with the project. */
typedef struct cloche_project {
	size_t size;              /* of this struct in the library: later versions append members */
	const char *dir;          /* with all links resolved; it can hold any byte but NUL */
	const char *const *files; /* that were read, relative to the directory: one or two */
	const char *hash;         /* the SHA-256 of what was read, in hexadecimal */
	/* What the files ask for, in words, one line of printable ASCII of any length each. If
	 * there are none, the files only restrict. */
	const char *const *asks;
	bool is_trusted; /* the files may be applied: they ask for nothing, or the user consents */
	/* The differences from the user's previous consent, one line each: "+ " before what is new,
	 * "- " before what is gone. There are also none if there was no consent: see since. */
	const char *const *changes;
	/* The time of the user's last consent for this directory ("2026-11-22T22:00:00Z"), or NULL
	 * if there was none. */
	const char *since;
} cloche_project;

/* Read the files of a directory, once: what is shown, consented to and applied is what was read
 * here. *ret is NULL if there are no files; otherwise the caller frees it. CLOCHE_E_DENIED if a
 * file or directory is a link, belongs to another user, or is writable by others; CLOCHE_E_CONFIG
 * if a file is wrong. */
CLOCHE_API int cloche_project_open(const char *dir, cloche_project **ret, cloche_err *err);
/* Do the same with the directory, or else with the nearest one above it that has such files, up to
 * the top of the git repository around it (one of this user). */
CLOCHE_API int cloche_project_find(const char *dir, cloche_project **ret, cloche_err *err);
/* Free the project. NULL is allowed. */
CLOCHE_API void cloche_project_free(cloche_project *project);

/* Record that the user consents to what was read: is_trusted and since change. */
CLOCHE_API int cloche_project_trust(cloche_project *project, cloche_err *err);

/* Apply the configuration to sandbox and add the allowlist to allow (NULL: skip it). Of a limit
 * that sandbox has already, the lower value holds. CLOCHE_E_DENIED if it is not trusted; the hint
 * names the command that asks the user. */
CLOCHE_API int cloche_project_apply(const cloche_project *project, cloche_sandbox *sandbox,
	cloche_allowlist *allow, cloche_err *err);

/* Add the rules of both files to allow, with consent or without, to ask what they decide. */
CLOCHE_API int cloche_project_rules(
	const cloche_project *project, cloche_allowlist *allow, cloche_err *err);

/* Revoke the consent for a directory, which need not exist any more, and forget what the user
 * allows always there (cloche/watch.h). CLOCHE_E_NOT_FOUND if there is neither. */
CLOCHE_API int cloche_project_revoke(const char *dir, cloche_err *err);

/* One consent. The strings are valid during the call. */
typedef struct cloche_consent {
	const char *dir; /* UTF-8; other bytes are U+FFFD */
	const char *hash, *since;
} cloche_consent;

typedef void (*cloche_consent_fn)(const cloche_consent *consent, void *user);

/* Call fn for every consent, sorted by directory. */
CLOCHE_API int cloche_project_list(cloche_consent_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
