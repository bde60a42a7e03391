/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a client asks for, and the texts of answers. Nothing in here has effects. */

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

enum {
	ASK_BODY_MAX = 1024 * 1024,
	ASK_NAME_MAX = 64,
	ASK_TIMEOUT_MS = 30000,
	ASK_TIMEOUT_MAX_MS = 24 * 3600 * 1000,
};

struct ask {
	char **argv, **env; /* strv */
	uint64_t timeout_ms;
};

/* Read the body of POST /execute. Free ret with ask_done(), also on failure. E_USAGE: the client's
 * mistake, in a sentence. */
_warn_unused_ int ask_read(struct str body, struct ask *ret, struct cloche_err *err);
void ask_done(struct ask *a);

/* Find the session in a target ("/execute?session=a"). ret is "" if none is named. Return false if
 * it has other characters than letters, digits, '-', '_', '.' and '~', or too many. */
_warn_unused_ bool ask_session(struct str target, char ret[ASK_NAME_MAX + 1]);
/* Return the target without its query. */
struct str ask_path(struct str target);

/* How a run went. */
struct answer {
	struct str out, err; /* as they were written */
	int code;
	uint64_t timeout_ms; /* above 0: it was ended after that */
	uint64_t took_usec, at_usec;
	const char *isolation;
	bool truncated;
};

/* Write the JSON document to out. Return 0 or -errno. */
_warn_unused_ int answer_write(struct buf *out, const struct answer *a);
_warn_unused_ int answer_write_error(struct buf *out, const char *why);
