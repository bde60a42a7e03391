/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Texts that come with cloche and that a person adds to: NAME.yaml in a folder of
 * ~/.config/cloche is found before the shipped text of that name. That folder is the person's, and
 * no room is shown it (docs/design/credentials.md). Any thread. */

#include "base/buf.h"
#include "base/err.h"

/* The build makes the texts (tools/embed --table). The last one has no name. */
struct shipped_text {
	const char *name, *text;
};

struct shipped {
	const char *kind;   /* "driver" */
	const char *folder; /* "drivers" */
	const struct shipped_text *texts;
};

/* Return the shipped text, static, or NULL. */
const char *shipped_text(const struct shipped *s, const char *name);
/* Return whether there is one of that name. */
bool shipped_has(const struct shipped *s, const char *name);
/* Store the names in their order, on the heap. */
_warn_unused_ int shipped_names(const struct shipped *s, char ***ret, struct cloche_err *err);
/* Append the text of that name to out; *ret_file, which the caller frees, is its path, or the name
 * of a shipped one. skip_own: the shipped one. E_USAGE if there is none. */
_warn_unused_ int shipped_read(const struct shipped *s, const char *name, bool skip_own,
	struct buf *out, char **ret_file, struct cloche_err *err);
