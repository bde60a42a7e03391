/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Those who make sandboxes and answer for them (cloche/manager.h). Each has a file in the directory
 * of all sandboxes (base, borrowed), which it keeps locked as long as it lives, so "live" is
 * decided by the lock alone. In the file is how much memory it has promised to sandboxes. */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { OWNER_ID_BYTES = 21 };

struct owner {
	int fd;                      /* of its file, locked; -1: none */
	char id[OWNER_ID_BYTES + 1]; /* of [a-z0-9], never used again */
};
#define OWNER_INIT ((struct owner){.fd = -1})

_warn_unused_ int owner_make(int base, struct owner *ret, struct cloche_err *err);
/* Fine if nothing was made. */
void owner_done(int base, struct owner *o);

/* Also true if it cannot be told. */
bool owner_is_live(int base, const char *id);

/* Writes down that o promises so many bytes in all, unless all live owners would promise more than
 * `most` with that: then -E_BUSY, nothing is changed, and *ret_others is what the others promise.
 * A promise that is not larger than the last one is always taken. */
_warn_unused_ int owner_promise(int base, struct owner *o, uint64_t bytes, uint64_t most,
	uint64_t *ret_others, struct cloche_err *err);
