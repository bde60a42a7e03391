/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the user has consented to: one file per project directory, in a private directory below the
 * state directory (ipc/statedir.h), which is never shown to a room. Directories are absolute and
 * without links. */

#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"

enum { CONSENT_NAME_MAX = SHA256_HEX_MAX + 8 };

/* Open the directory of the files. Return 1, or 0 if it is not there and make is false. */
_warn_unused_ int consent_open(bool make, int *ret, struct cloche_err *err);
/* Write the name of dir's file there that ends with end, of at most 8 bytes. */
void consent_name(const char *dir, const char *end, char ret[static CONSENT_NAME_MAX]);
/* Return its path on the heap, or NULL. */
char *consent_path(const char *dir, const char *end);
/* Remove that file. Return 1, or 0 if it is not there. */
_warn_unused_ int consent_unlink(const char *dir, const char *end, struct cloche_err *err);

/* Load the record of a directory, a new reference: {"directory", "sha256", "since", "asks":
 * [lines]}. Return 1, or 0 if there is none that can be read. */
_warn_unused_ int consent_load(const char *dir, json_t **ret, struct cloche_err *err);

/* Record atomically that files with this hash in this directory may have what they ask for (asks,
 * NULL-terminated). */
_warn_unused_ int consent_save(
	const char *dir, const char *hash, char *const *asks, struct cloche_err *err);

/* Forget a directory. Return 1, or 0 if there was no record. */
_warn_unused_ int consent_remove(const char *dir, struct cloche_err *err);

/* Call fn with every record, sorted by directory. */
_warn_unused_ int consent_each(
	void (*fn)(const json_t *record, void *user), void *user, struct cloche_err *err);
