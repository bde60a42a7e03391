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
	/* Refused only by rules that constrain the path. A rule that allows every path of a host
	 * has nothing to decide, so it lets these pass. */
	PATH_TAB,       /* encoded tab */
	PATH_BACKSLASH, /* encoded '\' */
	PATH_DOTS, /* a segment of dots and blanks; some servers strip these at the end of a name */
	PATH_NOT_UTF8,       /* the decoded path is not UTF-8 (RFC 3629; overlong forms too) */
	PATH_LOOKALIKE,      /* compatibility folding turns it into . / \ or % (U+FF0E...) */
	PATH_EMPTY_SEGMENT,  /* "//" */
	PATH_DOUBLE_ENCODED, /* the decoded path holds another %XX */
	PATH_ENCODED_SLASH,  /* %2F; a rule with `encoded_slash: true` takes it as '/' */
	PATH_PROBLEMS
};

struct path {
	enum path_problem problem; /* one of the first group, or PATH_OK */
	enum path_problem unsure;  /* one of the second group other than %2F, or PATH_OK */
	bool encoded_slash;        /* holds %2F */
	char *mem;                 /* owned */
	struct str decoded;        /* path, percent-decoded once (into mem) */
	struct str query;          /* raw, without the '?' (borrowed from the target) */
	bool has_query;
};

/* Canonicalise an origin-form target (RFC 9112 section 3.2.1). A refused target is no error: see
 * ret->problem. Return 0 or -ENOMEM; ret must be given to path_done. */
_warn_unused_ int path_parse(struct str target, struct path *ret);
void path_done(struct path *p);

/* Return the problem that a rule which constrains the path has with it, or PATH_OK. */
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

/* Whether the pattern was written for p with some queries: what is before one of its `?`, as above,
 * matches the path, whatever the query of p is. */
bool path_pattern_has_query(struct str pattern, const struct path *p);

/* Add a decoded path so that most spellings of one path are the same: lower case, without
 * parameters of segments, empty segments and a slash at the end. 0 or -ENOMEM. */
_warn_unused_ int path_fold(struct str decoded, struct buf *ret);

/* Whether some lenient server may take a decoded path for the path `endpoint`, or with `below` for
 * one below it. Case, empty segments and parameters of segments are ignored, and so is the rest of
 * a segment after a character that cannot be part of a name (as in ".json"). A segment that may be
 * decoded once more matches any name, and a path with a backslash matches any endpoint. Code that
 * judges more of a request than its path has to ask this function which path the request is for. */
bool path_may_be(struct str path, struct str endpoint, bool below);

/* How `path_prefix:` matches: the path is prefix, or continues it after a '/'. */
bool path_prefix_matches(struct str prefix, const struct path *p);
