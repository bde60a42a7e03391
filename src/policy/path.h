/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Request targets, made decidable. The target is split at the first '?', the path is
 * percent-decoded once for matching, and anything that two programs could read as two different
 * paths is refused. What is forwarded is the original target, byte for byte. */

#include "base/buf.h"
#include "base/macro.h"
#include "base/str.h"

/* Longer targets are refused. */
#define PATH_MAX_TARGET 65536

enum path_problem {
	PATH_OK,
	/* Refused for every rule. */
	PATH_NOT_ABSOLUTE, /* empty, or not beginning with '/' */
	PATH_TOO_LONG,
	PATH_RAW_BYTE,    /* raw control byte, space, non-ASCII or '#'; raw '\' in the path */
	PATH_BAD_PERCENT, /* '%' without two hexadecimal digits in the path */
	PATH_CONTROL,     /* encoded NUL or control byte other than a tab */
	PATH_DOT_SEGMENT, /* a segment "." or "..", also encoded, also with ";parameters" */
	/* Refused for rules that constrain the path; a rule that allows every path of a host has
	 * nothing to decide about them, so these pass there. */
	PATH_TAB,       /* encoded tab */
	PATH_BACKSLASH, /* encoded '\' */
	PATH_DOTS,      /* a segment of dots and blanks: some servers strip what is at its end */
	PATH_NOT_UTF8,  /* the decoded path is not UTF-8 (RFC 3629; overlong forms too) */
	PATH_LOOKALIKE, /* what compatibility folding turns into . / \ or % (U+FF0E...) */
	PATH_EMPTY_SEGMENT,  /* "//" */
	PATH_DOUBLE_ENCODED, /* the decoded path holds another %XX */
	PATH_ENCODED_SLASH,  /* %2F; a rule with `encoded_slash: true` takes it as '/' */
};

struct path {
	enum path_problem problem; /* the first of the first group, PATH_OK else */
	enum path_problem unsure;  /* the first of the second group but %2F, PATH_OK else */
	bool encoded_slash;        /* holds %2F */
	char *mem;                 /* owned */
	struct str decoded;        /* path, percent-decoded once (into mem) */
	struct str query;          /* raw, without the '?' (borrowed from the target) */
	bool has_query;
};

/* Canonicalises an origin-form target (RFC 9112 section 3.2.1). A refused target is no error: see
 * ret->problem. Returns 0 or -ENOMEM; ret must be given to path_done. */
_warn_unused_ int path_parse(struct str target, struct path *ret);
void path_done(struct path *p);

/* What stands in the way for a rule that constrains the path; PATH_OK if nothing does. */
enum path_problem path_problem_for_rule(const struct path *p, bool rule_takes_encoded_slash);

/* "the path contains a dot segment (. or ..)"; never NULL. */
const char *path_problem_text(enum path_problem problem);

/* How `path:` matches. The decoded path alone is compared first: equality, or a glob if the
 * pattern has `*` or `?`; `*` goes across '/' (so /repos/foo* also matches /repos/foobar;
 * `path_prefix` is the form that minds segments). The query takes no part: /graphql matches
 * /graphql?x=1. For patterns that were written to match a query (/search?q=*): if the path alone
 * does not match, each of the first eight `?` of the pattern is tried as the border: what is before
 * it must match the path and what is behind it the query (percent-decoded once). A `*` never spans
 * the border. */
bool path_pattern_matches(struct str pattern, const struct path *p);

/* Adds a decoded path so that most spellings of one path are the same: lower case, without
 * parameters of segments, empty segments and a slash at the end. 0 or -ENOMEM. */
_warn_unused_ int path_fold(struct str decoded, struct buf *ret);

/* Whether a decoded path may be that of an endpoint (a path, too), or with `below` lie below it, to
 * the loosest of servers: case, empty segments and parameters of segments do not matter, nor what
 * follows a segment's name behind a character that no name goes on with (a format, a blank, what
 * would be decoded once more). Everything that asks which path a request is for, to judge more of
 * it than its path, asks here. */
bool path_may_be(struct str path, struct str endpoint, bool below);

/* How `path_prefix:` matches: the path is prefix, or continues it after a '/'. */
bool path_prefix_matches(struct str prefix, const struct path *p);
