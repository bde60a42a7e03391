/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verifies the signature that the room made with surrogates, and makes the one that leaves. */

#include "aws/auth.h"

/* How the client wrote what it signed; the origin has to find it the same. */
struct aws_form {
	enum aws_path_form path;
	enum aws_query_form query;
	bool without_token; /* presigned: the token was added after signing */
	enum aws_hash {
		AWS_HASH_STATED,   /* what x-amz-content-sha256 says */
		AWS_HASH_UNSIGNED, /* UNSIGNED-PAYLOAD, unsaid */
		AWS_HASH_BODY,     /* of the body, unsaid */
		AWS_HASH_EMPTY,    /* presigned: of nothing, whatever the body */
	} hash;
};

enum { AWS_NEEDS_BODY = 1 };

/* Finds the form in which `surrogate` gives the request's signature. body_hash: hexadecimal SHA-256
 * of the body, STR_NULL: not known yet. Returns 0; AWS_NEEDS_BODY if only the body's hash may
 * tell; -EACCES: it is not the room's signature of this request, or a header that was signed is
 * missing, or the session token is another; *ret_why then says which. -ENOMEM. */
_warn_unused_ int aws_verify(const struct aws_request *req, const struct aws_auth *auth,
	struct aws_signer *surrogate, struct str body_hash, struct aws_form *ret,
	const char **ret_why);

/* What is new in a request that was signed. */
struct aws_signed {
	struct buf value; /* of Authorization; or the target of a presigned URL */
	char signature[AWS_SIGNATURE_MAX];
	size_t signature_n;
};
void aws_signed_done(struct aws_signed *s);

/* Signs a request as it goes out, except that Authorization, or the target's credential, token and
 * signature, are still the old ones; session token headers are the real one already. Signed headers
 * that are not in it any more (hop by hop) leave the list. payload: the value of
 * x-amz-content-sha256 or the body's hash, as form->hash says; else ignored. Returns 0, -EINVAL
 * if it cannot be signed, -ENOMEM. ret is to be given to aws_signed_done in every case. */
_warn_unused_ int aws_sign(const struct aws_request *req, const struct aws_auth *auth,
	const struct aws_form *form, struct aws_signer *real, struct str payload,
	struct aws_signed *ret);
