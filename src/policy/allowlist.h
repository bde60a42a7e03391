/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The allowlist: rules read from YAML text and from `--allow` shorthands. Build it, then use it
 * read-only (also from several threads).
 *
 *	domains:                        # every path, every method; https on 443 and http on 80
 *	  - "*.example.com"
 *	url_prefixes:
 *	  - host: api.github.com        # required; pattern as above
 *	    path: /graphql              # optional, default any (policy/path.h says how it matches)
 *	    methods: [POST]             # optional, default any; case is ignored
 *	    graphql:                    # optional: root fields of operations (src/filter)
 *	      queries: ["*"]            # patterns; left out or empty: none of that type
 *	      mutations: [createIssue]
 *	      subscriptions: []
 *	    # and beyond the common format, all optional:
 *	    path_prefix: /repos/me      # instead of path: that path and everything below it
 *	    query: none                 # refuse a query (default: any)
 *	    schemes: [https]            # default [https, http]; or [tcp], which needs ports, or
 *[ssh] user: git                   # of ssh (default: git) ports: [443, 8443]          # default
 *443 for https, 80 for http allow_private: [10.0.0.0/8] # or true: resolved addresses that are
 *otherwise refused encoded_slash: true         # %2F in the path is taken as '/' (default: refused)
 *	    websocket: false            # default true
 *	    scrub: false                # real values of secrets in answers stay (default true)
 *	    tunnel: true                # pass TLS undecrypted, judged by name and port only
 *
 * The reader is strict: unknown or repeated keys, wrong types, aliases, tags, a second document,
 * over 1 MiB, over 10,000 rules and hosts that cannot exist are errors, whose messages name line,
 * column and what was expected. An empty document is an empty allowlist, which blocks everything;
 * `domains:` without a value is an empty list. An address literal as a host also opens that address
 * for address_refusal(). */

#include "base/err.h"
#include "base/str.h"
#include "policy/address.h"
#include "policy/host.h"

#define ALLOWLIST_MAX_TEXT (1U << 20)
#define ALLOWLIST_MAX_RULES 10000

struct allowlist;

/* Bits of allow_rule.schemes. TCP and SSH are alone, but in a denial. TCP: any bytes, judged by
 * name and port. SSH: git alone, judged by user, path and the methods FETCH and PUSH. */
enum policy_scheme {
	POLICY_HTTPS = 1,
	POLICY_HTTP = 2,
	POLICY_TCP = 4,
	POLICY_SSH = 8,
	POLICY_SCHEMES = 15,
};

/* The word of one scheme, such as "https"; "" for several. */
const char *policy_scheme_word(enum policy_scheme scheme);
/* The port that one scheme stands for; 0 if it stands for none. */
uint16_t policy_scheme_port(enum policy_scheme scheme);
/* Return whether this (in lower case) is the word of a scheme. */
bool policy_scheme_find(struct str word, enum policy_scheme *ret);

/* One rule, owned by its allowlist. Lists of strings are those of base/strv.h. */
struct allow_rule {
	unsigned others; /* lists besides the first that have it */
	bool is_domain;  /* from `domains` */
	bool denies;     /* a denial: see allowlist_add_host() */
	unsigned index;  /* position in its list of that source, from 0 */
	unsigned number; /* unique within the allowlist; what was added later has a higher one */
	unsigned line;   /* line in the file; 0: not from a file */
	char *label;     /* printable: `url_prefixes[2] api.github.com /graphql (/a/net.yaml:9)` */
	char *label_inside; /* the same for the room, with only the file's name */
	char *host;         /* canonical host pattern */
	char *path;         /* pattern, or NULL: any path */
	char *path_prefix;  /* without trailing '/', or NULL */
	char *user;         /* of SSH; else NULL */
	bool no_query;
	char **methods;   /* upper case; NULL: any */
	unsigned schemes; /* of enum policy_scheme */
	uint16_t *ports;  /* none: the default port of the scheme; TCP has none */
	size_t n_ports;
	bool allow_private;
	struct cidr *private_ranges;
	size_t n_private_ranges;
	bool encoded_slash, websocket, scrub, tunnel;
	bool has_graphql;
	char **graphql_queries, **graphql_mutations, **graphql_subscriptions;
};

/* The machine that cloche runs on, by a name that means nothing else. A rule that writes it out
 * opens its ports of this machine's loopback, and no pattern does. */
#define POLICY_MACHINE "host.cloche.internal"
bool policy_host_is_machine(const struct host *host);
bool allow_rule_names_machine(const struct allow_rule *rule);

/* An empty allowlist; NULL on lack of memory. */
struct allowlist *allowlist_new(void);
/* Add an owner, which has to call allowlist_free() as well. Not thread-safe. */
struct allowlist *allowlist_ref(struct allowlist *list);
/* Drop an owner; the last one frees the list and all rules. NULL is fine. Return NULL. */
struct allowlist *allowlist_free(struct allowlist *list);
DEFINE_CLEANUP(struct allowlist, allowlist_free)

/* Append the rules of a YAML text. `source` names it in messages. Return 0, or negative
 * (E_CONFIG, "SOURCE:LINE:COLUMN: ...") with the list unchanged. */
_warn_unused_ int allowlist_add_yaml(
	struct allowlist *list, struct str text, const char *source, struct cloche_err *err);

/* Add one rule from a shorthand: HOST (as a domain), HOST:PORT, or SCHEME://HOST[:PORT][/PATH],
 * where PATH is a path_prefix, or a path pattern if it has `*` or `?`, tcp://HOST:PORT, or
 * ssh://[USER@]HOST[:PORT][/PATH], which is for FETCH alone. Behind
 * '!' it is a denial, which closes what rules that were added before have opened: every port if
 * none is named, and every spelling of the path. Return 0, or negative (E_USAGE). */
_warn_unused_ int allowlist_add_host(
	struct allowlist *list, struct str shorthand, struct cloche_err *err);

/* Return a new list of all rules of list, which it shares, and those of more, which are added
 * behind them and taken. E_CONFIG if they are too many. */
_warn_unused_ int allowlist_extend(const struct allowlist *list, struct allowlist *more,
	struct allowlist **ret, struct cloche_err *err);

/* Number of denials, and one of them; borrowed. */
size_t allowlist_denials(const struct allowlist *list);
const struct allow_rule *allowlist_denial(const struct allowlist *list, size_t i);
/* Return whether a denial for a host, or a part of it, came after the rule (NULL: whether there is
 * one). */
bool allowlist_denies_host(
	const struct allowlist *list, const struct allow_rule *rule, const struct host *host);

/* Number of rules, and rule i in the order in which they are tried (domains first); borrowed. */
size_t allowlist_count(const struct allowlist *list);
const struct allow_rule *allowlist_rule(const struct allowlist *list, size_t i);

/* Whether a rule is for git over ssh. */
bool allowlist_has_ssh(const struct allowlist *list);

/* Set the bit of each port that a rule for plain TCP opens, of the bytes in ret (bit port % 8 of
 * byte port / 8). Return whether there is one. */
#define ALLOWLIST_PORT_BYTES (65536 / 8)
bool allowlist_tcp_ports(const struct allowlist *list, uint8_t ret[ALLOWLIST_PORT_BYTES]);

/* Whether a rule, or any of these, has `allow_private`. */
bool allow_rule_opens_addresses(const struct allow_rule *rule);
bool allowlist_opens_addresses(const struct allowlist *list);

/* Return whether both open the same addresses; NULL opens none. */
bool allow_rule_same_addresses(const struct allow_rule *a, const struct allow_rule *b);
/* The address policy of a rule, ready for `own` to be filled in; borrows from the rule. */
struct address_policy allow_rule_addresses(const struct allow_rule *rule);
