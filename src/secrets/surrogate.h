/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stand-ins for real secrets: same length, same look, no information. Surrogates of AWS session
 * tokens all have the same length and look, because no program looks into such a token. */

#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"

/* Shorter values cannot be told from ordinary text, so they are not masked. */
#define SURROGATE_MIN 8
#define SURROGATE_MAX 16384
/* The length for every AWS session token. Real lengths differ and tell who issued the token. */
#define SURROGATE_TOKEN_LEN 512

/* Whether value can be masked: SURROGATE_MIN to SURROGATE_MAX bytes, no control byte (so no CR, LF,
 * NUL), no space at an end. Return 0 or negative (E_CONFIG); `name` (borrowed) is for the message,
 * which never shows the value. */
_warn_unused_ int surrogate_check_value(const char *name, struct str value, struct cloche_err *err);

/* What surrogates are drawn from instead of random numbers, so that the same value gets the same
 * surrogate again: a keyed hash. Who does not have the key cannot tell it from random numbers. */
struct surrogate_source {
	uint8_t seed[SHA256_BYTES];
	uint64_t block; /* the next one of the stream */
	uint8_t bytes[SHA256_BYTES];
	size_t left;
};
/* Begin the stream of a secret. context: what it is for; name: the secret's. */
void surrogate_source_init(struct surrogate_source *s, const uint8_t key[SHA256_BYTES],
	struct str context, struct str name, struct str value);
void surrogate_source_done(struct surrogate_source *s);

/* Write a fresh surrogate of value.n bytes into ret (no terminator). A known prefix (ghp_,
 * sk-ant-, ...) is kept if at least eight bytes follow it; every '.' and trailing '=' stay in
 * place; the rest is drawn from the classes that occur in the value: upper, lower, digits
 * (hexadecimal letters only if no others occur) and those of - _ + / ~ that occur. Other bytes
 * are drawn from the same set. First and last drawn bytes are letters or digits. Never equal to
 * value. */
void surrogate_make(struct str value, char *ret);
/* The same, from a stream (NULL: random numbers). */
void surrogate_make_from(struct surrogate_source *s, struct str value, char *ret);

/* The same for a session token: SURROGATE_TOKEN_LEN letters and digits, whatever the value has. */
void surrogate_make_token(struct str value, char *ret);
void surrogate_make_token_from(struct surrogate_source *s, struct str value, char *ret);
