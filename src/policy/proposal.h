/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Proposes an allowlist for requests that were seen: a small one, which allows each of them and no
 * other host, scheme or port. Gather the requests, merge them, read or write the entries. */

#include "base/buf.h"
#include "policy/decide.h"

/* At most this many different requests are gathered; later ones are refused. */
#define PROPOSAL_MAX_REQUESTS 100000

struct proposal;

/* NULL on lack of memory. */
struct proposal *proposal_new(void);
struct proposal *proposal_free(struct proposal *p);
DEFINE_CLEANUP(struct proposal, proposal_free)

/* Add an entry that would allow the request (copied). allowed: an allowlist has let the request
 * through, so entries may be proposed that a refused request never gets: for an address, or for
 * every path. Headers and bodies are not looked at. Return 1; 0 if no entry is proposed, with the
 * reason in *ret_why (static text); or -ENOMEM. */
_warn_unused_ int proposal_add(
	struct proposal *p, const struct policy_request *req, bool allowed, const char **ret_why);

/* Propose no entry for this path of the host, whatever the method, because a body filter judges
 * the requests there, and no entry that would include it: every path of the host, or a prefix. An
 * invalid host or path is ignored. Return 0 or -ENOMEM. */
_warn_unused_ int proposal_keep_filtered(struct proposal *p, const struct policy_request *req);

enum proposal_kind {
	PROPOSAL_ANY,    /* every path */
	PROPOSAL_PATH,   /* `path` alone */
	PROPOSAL_PREFIX, /* and below it */
	/* These have no path and no methods. */
	PROPOSAL_TUNNEL,
	PROPOSAL_TCP,
};

/* Everything is borrowed. */
struct proposal_entry {
	const char *host;
	enum proposal_kind kind;
	struct str path;            /* decoded UTF-8 */
	struct str user;            /* of ssh */
	struct str query;           /* `path` is for this query alone; null: for any */
	bool no_query;              /* `path` is for requests without a query */
	const char *const *methods; /* upper case, NULL-terminated; may be empty */
	unsigned schemes;           /* of enum policy_scheme */
	uint16_t port;              /* 0: the default of the scheme */
	bool encoded_slash;
};

/* Merge what was gathered: paths of one host and method that lie below a common prefix become one
 * entry if there are more than three. Nothing can be added afterwards. *ret_left_out: how many
 * entries were left out because they do not fit into one allowlist. Return 0 or -ENOMEM. */
_warn_unused_ int proposal_merge(struct proposal *p, size_t *ret_left_out);
size_t proposal_count(const struct proposal *p);
struct proposal_entry proposal_entry(const struct proposal *p, size_t i);
/* Return the port that an entry for the request needs, or 0. */
uint16_t proposal_port(const struct policy_request *req, const struct host *host);
/* Return the word for the entry's only scheme, or NULL: it needs none. */
const char *proposal_scheme(const struct proposal_entry *e);

/* Add the entries as YAML for allowlist_add_yaml(). Return 0 or negative errno. */
_warn_unused_ int proposal_write(const struct proposal *p, struct buf *out);
/* Add one entry, as an item of `url_prefixes`. */
_warn_unused_ int proposal_write_entry(const struct proposal_entry *e, struct buf *out);
