/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a signing key of SigV4 is a chain of HMACs over date, region and service
 * (AWS General Reference, "Create a signed AWS API request"). It is the same for a day, so the last
 * few are kept in locked memory, like the credentials. SigV4A's key pair depends on the credentials
 * alone: the key derivation of NIST SP 800-108 in counter mode gives candidates for the private key
 * until one is in range. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "aws/signer.h"

#include "base/secmem.h"
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/obj_mac.h>

/* Of the names of regions and services, and the separators. */
#define SCOPE_CHARS STR_LOWER STR_UPPER STR_DIGITS "-_./*:"

enum { KEYS = 8, KEY_ID_MAX = 256, SECRET_MAX = 16384, DER_MAX = AWS_SIGNATURE_MAX / 2 };

struct keys {
	struct {
		size_t scope_n;
		char scope[AWS_SCOPE_MAX];
		uint8_t key[AWS_DIGEST];
	} v[KEYS];
	size_t next; /* the next one to be replaced */
};

struct aws_signer {
	struct secret *key_id, *secret, *token, *memory;
	struct keys *keys; /* within memory */
	EC_KEY *pair;
};

struct str aws_algorithm_name(enum aws_algorithm a)
{
	return a == AWS_HMAC ? STR("AWS4-HMAC-SHA256") : STR("AWS4-ECDSA-P256-SHA256");
}

bool aws_scope_parse(enum aws_algorithm a, struct str text, struct aws_scope *ret)
{
	struct aws_scope scope = {.algorithm = a, .text = text};

	if (text.n > AWS_SCOPE_MAX || !str_is_all(text, SCOPE_CHARS))
		return false;
	scope.date = str_next(&text, '/');
	if (a == AWS_HMAC)
		scope.region = str_next(&text, '/');
	scope.service = str_next(&text, '/');
	if (scope.date.n != 8 || !str_is_all(scope.date, STR_DIGITS) ||
		(a == AWS_HMAC && scope.region.n == 0) || scope.service.n == 0 ||
		!str_eq(text, STR("aws4_request")))
		return false;
	*ret = scope;
	return true;
}

struct aws_signer *aws_signer_new(struct str key_id, struct str secret, struct str token)
{
	_cleanup_(aws_signer_freep) struct aws_signer *s = calloc(1, sizeof(*s));
	static const struct keys none;

	if (!s || key_id.n > KEY_ID_MAX || secret.n > SECRET_MAX)
		return NULL;
	s->key_id = secret_new(key_id.p, key_id.n);
	s->secret = secret_new(secret.p, secret.n);
	s->token = token.n ? secret_new(token.p, token.n) : NULL;
	s->memory = secret_new(&none, sizeof(none));
	if (!s->key_id || !s->secret || (token.n && !s->token) || !s->memory)
		return NULL;
	s->keys = (struct keys *)(uintptr_t)secret_reveal(s->memory).p;
	return TAKE_PTR(s);
}

struct aws_signer *aws_signer_free(struct aws_signer *s)
{
	if (!s)
		return NULL;
	EC_KEY_free(s->pair);
	secret_free(s->key_id);
	secret_free(s->secret);
	secret_free(s->token);
	secret_free(s->memory);
	free(s);
	return NULL;
}

struct str aws_signer_key_id(const struct aws_signer *s)
{
	return secret_reveal(s->key_id);
}

struct str aws_signer_token(const struct aws_signer *s)
{
	return secret_reveal(s->token);
}

static void derive(const struct aws_signer *s, const struct aws_scope *scope, uint8_t *ret)
{
	struct str secret = secret_reveal(s->secret);
	char first[4 + SECRET_MAX];

	memcpy(first, "AWS4", 4);
	memcpy(first + 4, secret.p, secret.n);
	aws_hmac(str_make(first, 4 + secret.n), scope->date, ret);
	explicit_bzero(first, 4 + secret.n);
	aws_hmac(str_make(ret, AWS_DIGEST), scope->region, ret);
	aws_hmac(str_make(ret, AWS_DIGEST), scope->service, ret);
	aws_hmac(str_make(ret, AWS_DIGEST), STR("aws4_request"), ret);
}

static struct str signing_key(struct aws_signer *s, const struct aws_scope *scope)
{
	struct keys *k = s->keys;
	size_t i = 0;

	while (i < KEYS && !str_eq(str_make(k->v[i].scope, k->v[i].scope_n), scope->text))
		i++;
	if (i == KEYS) {
		i = k->next;
		k->next = (k->next + 1) % KEYS;
		memcpy(k->v[i].scope, scope->text.p, scope->text.n);
		k->v[i].scope_n = scope->text.n;
		derive(s, scope, k->v[i].key);
	}
	return str_make(k->v[i].key, AWS_DIGEST);
}

/* Makes the key pair from the candidate of this counter: the private key is the candidate plus one,
 * if the candidate is at most n - 2. */
static bool make_pair(struct aws_signer *s, uint8_t counter)
{
	struct str id = secret_reveal(s->key_id), secret = secret_reveal(s->secret);
	uint8_t key[5 + SECRET_MAX], text[64 + KEY_ID_MAX], candidate[AWS_DIGEST];
	static const uint8_t before[] = {0, 0, 0, 1}, after[] = {0, 0, 1, 0};
	struct str label = aws_algorithm_name(AWS_ECDSA);
	EC_KEY *pair = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
	const EC_GROUP *group = pair ? EC_KEY_get0_group(pair) : NULL;
	EC_POINT *point = group ? EC_POINT_new(group) : NULL;
	BIGNUM *d = BN_secure_new(), *limit = BN_new();
	size_t n = 0;
	bool ok = point && d && limit;

	memcpy(key, "AWS4A", 5);
	memcpy(key + 5, secret.p, secret.n);
	memcpy(text, before, sizeof(before));
	n += sizeof(before);
	memcpy(text + n, label.p, label.n);
	n += label.n;
	text[n++] = 0;
	memcpy(text + n, id.p, id.n);
	n += id.n;
	text[n++] = counter;
	memcpy(text + n, after, sizeof(after));
	n += sizeof(after);
	aws_hmac(str_make(key, 5 + secret.n), str_make(text, n), candidate);
	ok = ok && BN_bin2bn(candidate, sizeof(candidate), d) &&
	     BN_copy(limit, EC_GROUP_get0_order(group)) && BN_sub_word(limit, 2) &&
	     BN_cmp(d, limit) <= 0 && BN_add_word(d, 1) &&
	     EC_POINT_mul(group, point, d, NULL, NULL, NULL) == 1 &&
	     EC_KEY_set_private_key(pair, d) == 1 && EC_KEY_set_public_key(pair, point) == 1;
	explicit_bzero(key, 5 + secret.n);
	explicit_bzero(candidate, sizeof(candidate));
	BN_clear_free(d);
	BN_free(limit);
	EC_POINT_free(point);
	if (ok)
		s->pair = pair;
	else
		EC_KEY_free(pair);
	return ok;
}

static EC_KEY *key_pair(struct aws_signer *s)
{
	for (unsigned counter = 1; !s->pair && counter <= 254; counter++)
		if (make_pair(s, (uint8_t)counter))
			break;
	return s->pair;
}

bool aws_signer_public(struct aws_signer *s, uint8_t ret[64])
{
	EC_KEY *pair = key_pair(s);
	uint8_t point[65];

	if (!pair ||
		EC_POINT_point2oct(EC_KEY_get0_group(pair), EC_KEY_get0_public_key(pair),
			POINT_CONVERSION_UNCOMPRESSED, point, sizeof(point), NULL) != sizeof(point))
		return false;
	memcpy(ret, point + 1, 64);
	return true;
}

size_t aws_signer_sign(struct aws_signer *s, const struct aws_scope *scope, struct str text,
	char ret[AWS_SIGNATURE_MAX])
{
	uint8_t digest[AWS_DIGEST], der[DER_MAX + 8];
	unsigned n = sizeof(digest);
	EC_KEY *pair;

	if (scope->algorithm == AWS_HMAC) {
		aws_hmac(signing_key(s, scope), text, digest);
		aws_hex(digest, n, ret);
		return 2 * n;
	}
	pair = key_pair(s);
	aws_sha256(text, digest);
	if (!pair || ECDSA_sign(0, digest, sizeof(digest), der, &n, pair) != 1 || n > DER_MAX)
		return 0;
	aws_hex(der, n, ret);
	return 2 * n;
}

bool aws_signer_check(
	struct aws_signer *s, const struct aws_scope *scope, struct str text, struct str signature)
{
	uint8_t digest[AWS_DIGEST], der[DER_MAX];
	char want[AWS_HEX];
	EC_KEY *pair;

	if (scope->algorithm == AWS_HMAC) {
		aws_hmac(signing_key(s, scope), text, digest);
		aws_hex(digest, sizeof(digest), want);
		return signature.n == sizeof(want) &&
		       CRYPTO_memcmp(signature.p, want, sizeof(want)) == 0;
	}
	if (signature.n == 0 || signature.n > AWS_SIGNATURE_MAX || !aws_unhex(signature, der))
		return false;
	pair = key_pair(s);
	aws_sha256(text, digest);
	return pair &&
	       ECDSA_verify(0, digest, sizeof(digest), der, (int)(signature.n / 2), pair) == 1;
}
