/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Puts real values into the headers of a request that leaves: the only place where that happens.
 *
 * Only if the request goes over verified TLS to a host in the secret's scope, and only in
 * headers that the secret lists. A surrogate counts if it is a whole token: the bytes around it
 * are not letters, digits, '-' or '_'; all such occurrences are replaced, in one pass, so a value
 * put in is never read again. In Authorization and Proxy-Authorization, Basic credentials (RFC
 * 7617; the scheme in any case, standard or URL-safe base64, padding optional, nothing else
 * tolerated) are looked into and written back in standard base64. Of several headers of a name, the
 * first in which something was replaced stays, at the place of the first, and the others go
 * ("collapsed"). A header that a secret in scope lists by its exact name, or by one that some
 * servers take this one for, and in which nothing was replaced carries someone else's credential
 * and goes ("stripped"; also over plaintext, if nothing is ever replaced), unless every such
 * secret has allow_foreign_credentials. Framing headers (host, content-length, ...) are never
 * touched. */

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
	REPLACE_NOTE_WITHHELD,  /* a surrogate was there and went out as it is; why says why */
};

struct replace_note {
	enum replace_note_kind kind;
	struct str header; /* lower case; owned by the result */
	unsigned count;
	const char *secret_name; /* withheld: which; borrowed from the set */
	const char *why; /* withheld: "host not in scope", "not over verified TLS", "header not
			    listed", "part of a longer token" */
};

struct replace_result {
	struct replace_edit *edits; /* one for each header of the request */
	size_t n_edits;
	struct replace_note *notes;
	size_t n_notes;
	unsigned masked;    /* header names in which something was replaced, for each secret */
	unsigned dropped;   /* header names removed as foreign credentials */
	unsigned collapsed; /* header names that had duplicates removed */
	/* Live secrets (secret_set.h) that were put in: one whose value is not known, so that the
	 * edits must not be used before it is; and one whose value is. NULL if there is none. */
	const struct masked_secret *unknown, *live;
	bool several_live; /* live is one of them */
};

/* Works out the edits; at most 1024 headers. Returns 0, or -ENOMEM or -E2BIG: the request must not
 * be sent then. *ret must be given to replace_result_done in every case. */
_warn_unused_ int replace_headers(const struct secret_set *set, const struct replace_request *req,
	struct replace_result *ret);

/* Whether a credential that is not of the set may not leave for host under this name: a secret
 * lists the name itself, or one that some servers take for it (they read '_' as '-'). */
bool replace_strips(const struct secret_set *set, const struct host *host, struct str name);

/* Wipes and frees. */
void replace_result_done(struct replace_result *r);
