/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Puts real values into the headers of a request that leaves. This is the only place where that
 * happens.
 *
 * A value is put in only if the request goes over verified TLS to a host in the secret's scope, and
 * only in headers that the secret lists. A surrogate counts only as a whole token: the bytes around
 * it are not letters, digits, '-' or '_'. All such occurrences are replaced in one pass, so an
 * inserted value is never read again. In Authorization and Proxy-Authorization, Basic credentials
 * (RFC 7617; the scheme in any case, standard or URL-safe base64, padding optional, nothing else
 * tolerated) are decoded first and written back in standard base64.
 *
 * If several headers have the same name, the first in which something was replaced is kept, at the
 * place of the first header, and the others are removed ("collapsed"). If nothing was replaced in a
 * header that a secret in scope lists by its exact name, or by a name that some servers read it as,
 * it carries someone else's credential and is removed ("stripped"), unless every such secret has
 * allow_foreign_credentials. This holds over plaintext, too, where nothing is ever replaced.
 * Framing headers (host, content-length, ...) are never touched. */

#include "base/buf.h"
#include "secrets/secret_set.h"

struct header_view {
	struct str name, value;
};

/* Everything is borrowed. */
struct replace_request {
	bool verified_tls; /* the upstream connection's certificate was verified for this host */
	const struct host *host;
	const struct header_view *headers;
	size_t n_headers;
};

enum replace_action {
	REPLACE_KEEP,
	REPLACE_SET, /* value holds what to send instead */
	REPLACE_DROP,
};

struct replace_edit {
	enum replace_action action;
	struct buf value; /* secret */
};

enum replace_note_kind {
	REPLACE_NOTE_STRIPPED,  /* foreign credential removed */
	REPLACE_NOTE_COLLAPSED, /* duplicates removed; count is how many there were */
	REPLACE_NOTE_WITHHELD,  /* a surrogate was not replaced; why says why */
};

struct replace_note {
	enum replace_note_kind kind;
	struct str header; /* lower case; owned by the result */
	unsigned count;
	const char *secret_name; /* withheld: the secret; borrowed from the set */
	const char *why; /* withheld: "host not in scope", "not over verified TLS", "header not
			    listed", "part of a longer token" */
};

struct replace_result {
	struct replace_edit *edits; /* one for each header of the request */
	size_t n_edits;
	struct replace_note *notes;
	size_t n_notes;
	unsigned masked;    /* pairs of a header name and a secret put into it */
	unsigned dropped;   /* header names removed as foreign credentials */
	unsigned collapsed; /* header names that had duplicates removed */
	/* Live secrets (secret_set.h) that were put in, or NULL. unknown: its value is not known
	 * yet, so the edits must not be used before it is. live: its value is known. */
	const struct masked_secret *unknown, *live;
	bool several_live;                     /* `live` is only one of them */
	const struct masked_secret *renewable; /* one that was put in, and whose value is known */
};

/* Work out the edits; at most 1024 headers. Return 0, or -ENOMEM or -E2BIG: the request must not
 * be sent then. *ret must be given to replace_result_done in every case. */
_warn_unused_ int replace_headers(const struct secret_set *set, const struct replace_request *req,
	struct replace_result *ret);

/* Whether a header of this name must not carry a foreign credential to host: a secret lists the
 * name itself, or one that some servers read it as (they read '_' as '-'). */
bool replace_strips(const struct secret_set *set, const struct host *host, struct str name);

/* Wipe and free. */
void replace_result_done(struct replace_result *r);
