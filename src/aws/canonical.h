/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The canonical request, over which a signature is computed. Clients disagree on its form, and AWS
 * services differ in what they expect, so each part comes in several forms. Verifying the client's
 * signature shows which one it used (aws/request.h). */

#include "aws/digest.h"
#include "base/buf.h"

enum {
	AWS_CANONICAL_MAX = 512 * 1024,
	AWS_SIGNED_HEADERS_MAX = 96,
	AWS_PARAMS_MAX = 1024,
};

/* Forms of the path, which is taken from the wire and not decoded before. */
enum aws_path_form {
	AWS_PATH_NORMAL,      /* without dot segments and empty ones, then encoded once more */
	AWS_PATH_AGAIN,       /* encoded once more */
	AWS_PATH_WIRE,        /* as it is: S3 */
	AWS_PATH_ONCE,        /* decoded, then encoded: S3 if the client escapes less or more */
	AWS_PATH_NORMAL_WIRE, /* without dot segments and empty ones, then as it is */
	AWS_PATH_FORMS
};

/* Forms of each parameter's name and value. */
enum aws_query_form {
	AWS_QUERY_ENCODED, /* decoded, then encoded */
	AWS_QUERY_WIRE,    /* as they are, empty ones included */
	AWS_QUERY_FORM,    /* as the first, with '+' for a space */
	AWS_QUERY_FORMS
};

struct aws_field {
	struct str name, value;
};

/* A request as its headers describe it. The fields include Host, Content-Length and any other
 * framing fields that may have been signed, in any case, in order. All borrowed. */
struct aws_request {
	struct str method, target;
	const struct aws_field *fields;
	size_t n_fields;
};

/* Percent-encodes all but unreserved bytes (RFC 3986) and, with keep_slash, '/'. These return 0, or
 * -ENOMEM if there is no memory, or no room for the longest result. */
_warn_unused_ int aws_encode(struct buf *out, struct str s, bool keep_slash);
/* Decode %XX; a '%' that does not begin an escape stays. */
_warn_unused_ int aws_decode(struct buf *out, struct str s);

_warn_unused_ int aws_canonical_path(struct buf *out, struct str path, enum aws_path_form form);

/* X-Amz-Signature is left out if without_signature, X-Amz-Security-Token if without_token. */
struct aws_query_options {
	enum aws_query_form form;
	bool without_signature, without_token;
};
/* Sort by name, then by value. -E2BIG for more than AWS_PARAMS_MAX parameters. */
_warn_unused_ int aws_canonical_query(
	struct buf *out, struct str query, const struct aws_query_options *o);

/* Add the lines of the headers in `list` (lower-case names with ';' between), an empty line and
 * the list. -ENOENT if a header is missing. */
_warn_unused_ int aws_canonical_headers(
	struct buf *out, const struct aws_request *req, struct str list);

/* Take the next name off a list of signed headers. */
bool aws_next_name(struct str *list, struct str *ret);
/* ":authority" is what an HTTP/2 client calls Host. */
struct str aws_field_name(struct str name);

/* Path and query of a target. */
struct str aws_path_of(struct str target);
struct str aws_query_of(struct str target);
/* Take the next parameter off a query; false at its end. Views. */
bool aws_next_param(struct str *query, struct str *ret_name, struct str *ret_value);

/* For qsort() of an array of struct str. */
int aws_compare_texts(const void *a, const void *b);
