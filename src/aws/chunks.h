/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verify a body in aws-chunked encoding whose chunks, and perhaps trailers, are signed, and sign it
 * again, as a stream. */

#include "aws/auth.h"
#include "base/err.h"

/* A chunk's signature stands before its data, so a chunk is held until it is whole. SDKs send 64
 * KiB to 1 MiB. */
enum { AWS_CHUNK_MAX = 8 * 1024 * 1024 };

struct aws_chunks;

struct aws_chunks_config {
	const struct aws_auth *auth; /* the request's, copied; kind is AWS_PAYLOAD_CHUNKS* */
	struct aws_signer *surrogate, *real;  /* borrowed, must outlive it */
	struct str surrogate_seed, real_seed; /* the request's signatures, copied */
	bool same_length; /* there is a Content-Length: the output must be as long as the input */
	bool has_decoded_length;
	uint64_t decoded_length; /* x-amz-decoded-content-length */
};

/* NULL on lack of memory. */
struct aws_chunks *aws_chunks_new(const struct aws_chunks_config *config);
/* Wipe and free; NULL is fine; return NULL. */
struct aws_chunks *aws_chunks_free(struct aws_chunks *c);
DEFINE_CLEANUP(struct aws_chunks, aws_chunks_free)

/* Take the next bytes and append to out those that can go on. Return 0, or negative, and the
 * request has to be aborted: E_PROTOCOL (malformed, or not signed by the room), E_LIMIT,
 * E_NO_MEMORY. */
_warn_unused_ int aws_chunks_feed(
	struct aws_chunks *c, struct str in, struct buf *out, struct cloche_err *err);
/* Tell that the body has ended. Return the same as aws_chunks_feed. */
_warn_unused_ int aws_chunks_end(struct aws_chunks *c, struct cloche_err *err);
/* Return how much memory is held for chunks now. */
size_t aws_chunks_held(const struct aws_chunks *c);
