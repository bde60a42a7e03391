/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The masked secrets of one sandbox: what the room sees (surrogates), what leaves (real values),
 * and where it may go (hosts, headers). Build it, then use it read-only. */

#include "base/err.h"
#include "base/secmem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "policy/host.h"

#define SECRET_SET_MAX 256
#define SECRET_PATTERNS_MAX 64

struct secret_set;

/* The role of a value. Values of signing credentials are put into no header (secrets/signing.h);
 * the members of one credential follow each other in this order. */
enum secret_role {
	SECRET_MASKED,
	SECRET_AWS_KEY_ID,
	SECRET_AWS_SECRET_KEY,
	SECRET_AWS_TOKEN,
	SECRET_ROLES
};

/* What is known about a masked secret apart from its value. Everything is owned; lists are those of
 * base/strv.h. */
struct secret_spec {
	char *name;     /* environment variable in the room */
	char *from;     /* the host's variable, or the file */
	bool has_from;  /* it was given */
	char **scopes;  /* canonical host patterns, at least one */
	char **headers; /* lower-case header patterns: at least one if masked, else none */
	bool allow_foreign_credentials;
	enum secret_role role;
};

void secret_spec_done(struct secret_spec *spec);

/* Parse NAME[=FROM]@HOST[,HOST...][:Header[,Header...]]. FROM defaults to NAME; the header to
 * authorization (a client that sends x-api-key needs ":x-api-key"). FROM may contain '@' and ':'
 * if it is a file path: the last '@' counts. Return 0, or negative (E_USAGE) with *ret
 * untouched. */
_warn_unused_ int secret_spec_parse(
	struct str text, struct secret_spec *ret, struct cloche_err *err);

/* An empty set; NULL on lack of memory. */
struct secret_set *secret_set_new(void);
/* Wipe and free; NULL is fine; return NULL. */
struct secret_set *secret_set_free(struct secret_set *set);
DEFINE_CLEANUP(struct secret_set, secret_set_free)

/* Check what secret_set_add() checks of a spec, as if it were added now. Return 0 or negative
 * (E_CONFIG). */
_warn_unused_ int secret_set_check(
	const struct secret_set *set, const struct secret_spec *spec, struct cloche_err *err);

/* Add a secret. Copy spec and value. Check names, scopes, headers (framing headers such as host
 * are refused) and the value. `surrogate` is one that was made before (copied), or STR_NULL: then
 * one is made that neither contains nor is contained in any surrogate or real value of the set.
 * Return 0 or negative (E_CONFIG) with the set unchanged. */
_warn_unused_ int secret_set_add(struct secret_set *set, const struct secret_spec *spec,
	struct str value, struct str surrogate, struct cloche_err *err);

/* Add a secret whose value is fetched when it is needed, and again when it has expired. Its values
 * look like `example`, which is not kept. `surrogate` as above. */
_warn_unused_ int secret_set_add_live(struct secret_set *set, const struct secret_spec *spec,
	struct str example, struct str surrogate, struct cloche_err *err);
/* Let the value of the member at index i, which was added with one, be renewed. */
void secret_set_may_renew(struct secret_set *set, size_t i);
/* Give the live or renewable member at index i a value (taken; it may have another length than the
 * surrogate), or none again (NULL). Return 0, or negative if the value cannot be masked or collides
 * with a surrogate; the member's value is unknown then. */
_warn_unused_ int secret_set_renew(
	struct secret_set *set, size_t i, struct secret *value, struct cloche_err *err);

/* Give each member a surrogate by a keyed hash of its name and value, so that it has the same one
 * the next time; context: what the set is for. Live members, whose values are fetched, keep theirs.
 * Return 0 or negative; some may have a new one then. */
_warn_unused_ int secret_set_settle(struct secret_set *set, const uint8_t key[SHA256_BYTES],
	struct str context, struct cloche_err *err);

/* One member; all of it borrowed from the set. */
struct masked_secret {
	struct secret_spec spec;
	struct secret *value; /* not known: a stand-in that means nothing */
	struct secret *last;  /* the value before, which may still be valid; or NULL */
	struct str surrogate;
	bool live;      /* see secret_set_add_live() */
	bool renewable; /* see secret_set_may_renew() */
	bool known;     /* the value is real */
};

size_t secret_set_count(const struct secret_set *set);
/* Remove the members from index n on. */
void secret_set_shrink(struct secret_set *set, size_t n);
const struct masked_secret *secret_set_get(const struct secret_set *set, size_t i);
/* By name of the variable; NULL if there is none. */
const struct masked_secret *secret_set_find(const struct secret_set *set, struct str name);
/* Whether the (canonical) host is in scope. */
bool masked_secret_covers(const struct masked_secret *m, const struct host *host);
/* Whether it may be put into Basic credentials: it is for a header that can hold them, and short
 * enough for responses to be searched for its base64 forms. */
bool masked_secret_fits_basic(const struct masked_secret *m);
