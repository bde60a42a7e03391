/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verify the signature that the room made with surrogates, and make the outgoing one. */

#include "aws/auth.h"

/* The form in which the client signed the request; the origin has to find the same one. */
struct aws_form {
	enum aws_path_form path;
	enum aws_query_form query;
	bool without_token; /* presigned: the token was added after signing */
	enum aws_hash {
		AWS_HASH_STATED,   /* what x-amz-content-sha256 says */
		AWS_HASH_UNSIGNED, /* UNSIGNED-PAYLOAD, not stated */
		AWS_HASH_BODY,     /* of the body, not stated */
		AWS_HASH_EMPTY,    /* presigned: of nothing, whatever the body */
	} hash;
};

enum { AWS_NEEDS_BODY = 1 };

/* Find the form in which `surrogate` gives the request's signature. body_hash: hexadecimal SHA-256
 * of the body, STR_NULL: not known yet. Return 0; AWS_NEEDS_BODY if the body's hash is needed to
 * tell; -EACCES if this is not the room's signature of this request, a signed header is missing, or
 * the session token is another one (*ret_why says which); or -ENOMEM. */
_warn_unused_ int aws_verify(const struct aws_request *req, const struct aws_auth *auth,
	struct aws_signer *surrogate, struct str body_hash, struct aws_form *ret,
	const char **ret_why);

/* The new parts of a signed request. */
struct aws_signed {
	struct buf value; /* of Authorization; or the target of a presigned URL */
	char signature[AWS_SIGNATURE_MAX];
	size_t signature_n;
};
void aws_signed_done(struct aws_signed *s);

/* Sign an outgoing request. req still has the old Authorization, or the old credential, token and
 * signature in the target; a session token header holds the real token already. Signed headers that
 * are no longer in req (hop by hop) are dropped from the list. payload: the value of
 * x-amz-content-sha256 or the body's hash, as form->hash says; else ignored. Return 0, -EINVAL if
 * it cannot be signed, or -ENOMEM. ret has to be given to aws_signed_done in every case. */
_warn_unused_ int aws_sign(const struct aws_request *req, const struct aws_auth *auth,
	const struct aws_form *form, struct aws_signer *real, struct str payload,
	struct aws_signed *ret);
