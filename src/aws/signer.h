/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One set of AWS credentials and what is derived from it: signing keys of SigV4 by date, region and
 * service, and the key pair of SigV4A. It serves for real credentials and for their surrogates. */

#include "aws/digest.h"
#include "base/macro.h"

enum aws_algorithm { AWS_HMAC, AWS_ECDSA, AWS_ALGORITHMS };

enum {
	AWS_ECDSA_WIDTH = 144, /* of a chunk's signature: hexadecimal DER, padded with '*' */
	AWS_SIGNATURE_MAX = 144,
	AWS_SCOPE_MAX = 256,
};

/* "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256". */
struct str aws_algorithm_name(enum aws_algorithm a);

/* The scope of a key. Views of one text, date/region/service/aws4_request; SigV4A has no region. */
struct aws_scope {
	enum aws_algorithm algorithm;
	struct str text, date, region, service;
};

/* Parse text. False if it is malformed or too long. */
bool aws_scope_parse(enum aws_algorithm a, struct str text, struct aws_scope *ret);

struct aws_signer;

/* Copy into locked memory. NULL on lack of memory, or if a value is too long. An empty token:
 * there is none. */
struct aws_signer *aws_signer_new(struct str key_id, struct str secret, struct str token);
/* Wipe and free; NULL is fine; return NULL. */
struct aws_signer *aws_signer_free(struct aws_signer *s);
DEFINE_CLEANUP(struct aws_signer, aws_signer_free)

/* Borrowed. */
struct str aws_signer_key_id(const struct aws_signer *s);
struct str aws_signer_token(const struct aws_signer *s);

/* Sign a string-to-sign; the signature in lower-case hexadecimal. Return its length: 64, or for
 * SigV4A up to AWS_SIGNATURE_MAX; 0 if OpenSSL fails. */
_warn_unused_ size_t aws_signer_sign(struct aws_signer *s, const struct aws_scope *scope,
	struct str text, char ret[AWS_SIGNATURE_MAX]);
/* Whether signature (hexadecimal, without padding) is one of text. */
_warn_unused_ bool aws_signer_check(
	struct aws_signer *s, const struct aws_scope *scope, struct str text, struct str signature);
/* The point of SigV4A's public key, X then Y. */
_warn_unused_ bool aws_signer_public(struct aws_signer *s, uint8_t ret[64]);
