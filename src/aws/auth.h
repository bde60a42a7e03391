/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the AWS signature of a request: in Authorization, or in the query of a presigned URL. */

#include "aws/canonical.h"
#include "aws/signer.h"

enum aws_place { AWS_IN_HEADER, AWS_IN_QUERY };

/* What x-amz-content-sha256 says about the body. */
enum aws_payload {
	AWS_PAYLOAD_ABSENT,
	AWS_PAYLOAD_HASH,
	AWS_PAYLOAD_UNSIGNED,
	AWS_PAYLOAD_UNSIGNED_TRAILER, /* aws-chunked, without signatures */
	AWS_PAYLOAD_CHUNKS,           /* aws-chunked, each chunk signed */
	AWS_PAYLOAD_CHUNKS_TRAILER,   /* ... and the trailers, too */
	AWS_PAYLOAD_UNKNOWN,
};

/* Views point into `text`, so the request may change. */
struct aws_auth {
	enum aws_place place;
	struct aws_scope scope;
	struct str key_id, signed_headers, signature;
	struct str time;       /* 20150830T123600Z */
	struct str token;      /* of the query; STR_NULL: none */
	struct str payload;    /* STR_NULL: not stated */
	enum aws_payload kind; /* of payload */
	struct str region;     /* or SigV4A's region set */
	size_t field;          /* index of Authorization */
	struct buf text;
};

void aws_auth_done(struct aws_auth *a);

/* Return 1 if there is a signature (ret has to be given to aws_auth_done then), 0 if there is
 * none, -EINVAL if it is malformed or there are two (*ret_why says what is wrong), or -ENOMEM. */
_warn_unused_ int aws_auth_find(
	const struct aws_request *req, struct aws_auth *ret, const char **ret_why);

/* Whether a header of this (lower-case) name is signed. */
bool aws_auth_signs(const struct aws_auth *a, struct str name);
/* Whether a signature for this service may go to this host. At some hosts any AWS customer can run
 * code. That code sees the signature and could use it elsewhere while it is fresh, so such a host
 * gets only signatures for its own service. */
bool aws_service_fits(struct str host, struct str service);
/* Whether an Authorization value is one of AWS, in any version. */
bool aws_is_scheme(struct str authorization);
/* Whether a query carries AWS credentials, in any version and any spelling. */
bool aws_query_has_credential(struct str query);
/* The value of the only field called name; STR_NULL if there is none. False if there are
 * more. */
bool aws_only_field(const struct aws_request *req, struct str name, struct str *ret);
