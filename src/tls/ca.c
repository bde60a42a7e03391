/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: certificates are written as DER by hand, from the last byte to the first, so
 * that every length is known when it has to be written. Only the key and the signature come from
 * OpenSSL (tls/p256.h): building a certificate through its X509 objects takes ten times as long as
 * signing it, most of it to decode a public key that is copied here as it is.
 *
 * Profile: RFC 5280, ECDSA with SHA-256 (RFC 5758 3.2). */
#include "tls/ca.h"
#include "base/clock.h"
#include "base/rand.h"
#include "tls/p256.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <time.h>

enum { ID_LEN = 8, KEY_ID_LEN = 20, SERIAL_LEN = 16 };

enum {
	T_BOOL = 0x01,
	T_INTEGER = 0x02,
	T_BITS = 0x03,
	T_OCTETS = 0x04,
	T_UTF8 = 0x0c,
	T_UTC = 0x17,
	T_GENERAL = 0x18,
	T_SEQ = 0x30,
	T_SET = 0x31,
	T_EXPLICIT_0 = 0xa0,
	T_EXPLICIT_3 = 0xa3,
	T_KEY_ID = 0x80,   /* AuthorityKeyIdentifier.keyIdentifier */
	T_SAN_DNS = 0x82,  /* GeneralName.dNSName */
	T_SAN_ADDR = 0x87, /* GeneralName.iPAddress */
};

struct tls_ca {
	EC_KEY *key;
	uint8_t spki[TLS_SPKI_MAX];
	char common_name[sizeof("Cloche ") + ID_LEN];
	uint8_t der[TLS_CERT_MAX];
	size_t der_len;
	uint64_t not_before, not_after; /* seconds since 1970 */
};

/* Whole elements: an object identifier with its tag, an AlgorithmIdentifier. */
#define OID(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define ECDSA_SHA256 OID(0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)
#define OID_CN OID(0x06, 0x03, 0x55, 0x04, 0x03)
#define OID_SKI OID(0x06, 0x03, 0x55, 0x1d, 0x0e)
#define OID_KEY_USAGE OID(0x06, 0x03, 0x55, 0x1d, 0x0f)
#define OID_SAN OID(0x06, 0x03, 0x55, 0x1d, 0x11)
#define OID_BASIC OID(0x06, 0x03, 0x55, 0x1d, 0x13)
#define OID_AKI OID(0x06, 0x03, 0x55, 0x1d, 0x23)
#define OID_EKU OID(0x06, 0x03, 0x55, 0x1d, 0x25)

/* A writer that goes from the end of its memory towards the start. */
struct der {
	uint8_t mem[TLS_CERT_MAX];
	size_t at; /* first byte written */
	bool full;
};

static void der_init(struct der *d)
{
	d->at = sizeof(d->mem);
	d->full = false;
}

static void der_bytes(struct der *d, const void *p, size_t n)
{
	if (n > d->at) {
		d->full = true;
		return;
	}
	d->at -= n;
	memcpy(d->mem + d->at, p, n);
}

static void der_byte(struct der *d, unsigned v)
{
	uint8_t b = (uint8_t)v;

	der_bytes(d, &b, 1);
}

/* Write tag and length in front of everything written since `end` (X.690 8.1.3). */
static void der_wrap(struct der *d, unsigned tag, size_t end)
{
	size_t n = end - d->at;

	if (n < 0x80) {
		der_byte(d, (unsigned)n);
	} else if (n < 0x100) {
		der_byte(d, (unsigned)n);
		der_byte(d, 0x81);
	} else {
		der_byte(d, n & 0xff);
		der_byte(d, (unsigned)(n >> 8));
		der_byte(d, 0x82);
	}
	der_byte(d, tag);
}

static void der_value(struct der *d, unsigned tag, const void *p, size_t n)
{
	size_t end = d->at;

	der_bytes(d, p, n);
	der_wrap(d, tag, end);
}

/* UTCTime through 2049, GeneralizedTime after it (RFC 5280 4.1.2.5). */
static void der_time(struct der *d, uint64_t sec)
{
	time_t t = (time_t)sec;
	struct tm tm;
	char text[32];
	size_t n;

	if (!gmtime_r(&t, &tm)) {
		d->full = true;
		return;
	}
	n = strftime(text, sizeof(text), "%Y%m%d%H%M%SZ", &tm);
	if (tm.tm_year < 150)
		der_value(d, T_UTC, text + 2, n - 2);
	else
		der_value(d, T_GENERAL, text, n);
}

static void der_name(struct der *d, struct str common_name)
{
	size_t end = d->at;

	if (common_name.n) {
		der_value(d, T_UTF8, common_name.p, common_name.n);
		der_bytes(d, OID_CN);
		der_wrap(d, T_SEQ, end);
		der_wrap(d, T_SET, end);
	}
	der_wrap(d, T_SEQ, end);
}

/* Ends an extension whose value was written since `end`. */
static void der_extension(
	struct der *d, size_t end, bool critical, const uint8_t *oid, size_t oid_n)
{
	der_wrap(d, T_OCTETS, end);
	if (critical)
		der_value(d, T_BOOL, "\xff", 1);
	der_bytes(d, oid, oid_n);
	der_wrap(d, T_SEQ, end);
}

/* The leftmost 160 bits of the SHA-256 of the public key's bits (RFC 7093 2, method 1). */
static void key_id(const uint8_t spki[TLS_SPKI_MAX], uint8_t ret[KEY_ID_LEN])
{
	uint8_t digest[P256_DIGEST] = {0};

	/* A failure would only make the id a poor one. */
	(void)p256_digest(spki + P256_POINT_AT, TLS_SPKI_MAX - P256_POINT_AT, digest);
	memcpy(ret, digest, KEY_ID_LEN);
}

static void extension_ski(struct der *d, const uint8_t *spki)
{
	size_t end = d->at;
	uint8_t id[KEY_ID_LEN];

	key_id(spki, id);
	der_value(d, T_OCTETS, id, sizeof(id));
	der_extension(d, end, false, OID_SKI);
}

static void extension_aki(struct der *d, const uint8_t *spki)
{
	size_t end = d->at;
	uint8_t id[KEY_ID_LEN];

	key_id(spki, id);
	der_value(d, T_KEY_ID, id, sizeof(id));
	der_wrap(d, T_SEQ, end);
	der_extension(d, end, false, OID_AKI);
}

/* bits: of the first octet of KeyUsage (RFC 5280 4.2.1.3). */
static void extension_key_usage(struct der *d, unsigned bits)
{
	uint8_t value[2] = {(uint8_t)__builtin_ctz(bits), (uint8_t)bits};
	size_t end = d->at;

	der_value(d, T_BITS, value, sizeof(value));
	der_extension(d, end, true, OID_KEY_USAGE);
}

static void extensions_ca(struct der *d, const struct tls_ca *ca)
{
	size_t end = d->at, inner = end;

	/* cA TRUE, pathLenConstraint 0 */
	der_bytes(d, OID(0x30, 0x06, 0x01, 0x01, 0xff, 0x02, 0x01, 0x00));
	der_extension(d, inner, true, OID_BASIC);
	extension_key_usage(d, 0x06); /* keyCertSign, cRLSign */
	extension_ski(d, ca->spki);
	der_wrap(d, T_SEQ, end);
	der_wrap(d, T_EXPLICIT_3, end);
}

static void extensions_leaf(struct der *d, const struct tls_ca *ca, const uint8_t *spki,
	const struct tls_subject *subject, bool no_name)
{
	size_t end = d->at, inner;

	extension_aki(d, ca->spki);
	extension_ski(d, spki);
	inner = d->at;
	if (subject->address_len)
		der_value(d, T_SAN_ADDR, subject->address, subject->address_len);
	else
		der_value(d, T_SAN_DNS, subject->name.p, subject->name.n);
	der_wrap(d, T_SEQ, inner);
	/* With an empty subject only this extension identifies the host (RFC 5280 4.2.1.6). */
	der_extension(d, inner, no_name, OID_SAN);
	inner = d->at;
	/* id-kp-serverAuth */
	der_bytes(d, OID(0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01));
	der_extension(d, inner, false, OID_EKU);
	extension_key_usage(d, 0x80); /* digitalSignature */
	inner = d->at;
	der_bytes(d, OID(0x30, 0x00));
	der_extension(d, inner, true, OID_BASIC);
	der_wrap(d, T_SEQ, end);
	der_wrap(d, T_EXPLICIT_3, end);
}

/* Everything before the extensions, which were written since `end` (RFC 5280 4.1.2). */
static void tbs_front(
	struct der *d, size_t end, const struct tls_ca *ca, const uint8_t *spki, struct str subject)
{
	uint8_t serial[SERIAL_LEN];
	size_t inner;

	der_bytes(d, spki, TLS_SPKI_MAX);
	der_name(d, subject);
	inner = d->at;
	der_time(d, ca->not_after);
	der_time(d, ca->not_before);
	der_wrap(d, T_SEQ, inner);
	der_name(d, str_from(ca->common_name));
	der_bytes(d, ECDSA_SHA256);
	/* Positive, and without a leading zero that would have to be left out. */
	rand_bytes(serial, sizeof(serial));
	serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40);
	der_value(d, T_INTEGER, serial, sizeof(serial));
	der_bytes(d, OID(0xa0, 0x03, 0x02, 0x01, 0x02)); /* v3 */
	der_wrap(d, T_SEQ, end);
}

/* Wraps the signed part with its signature (RFC 5280 4.1.1) and adds it to out. */
static int finish(
	const struct tls_ca *ca, const struct der *tbs, struct buf *out, struct cloche_err *err)
{
	uint8_t signature[P256_SIGNATURE_MAX];
	struct der d;
	size_t end, n;

	der_init(&d);
	end = d.at;
	if (tbs->full)
		return err_set(err, E_LIMIT, "the certificate is too long");
	n = p256_sign(ca->key, tbs->mem + tbs->at, sizeof(tbs->mem) - tbs->at, signature);
	if (n == 0)
		return err_set(err, E_INTERNAL, "signing a certificate failed");
	der_bytes(&d, signature, n);
	der_byte(&d, 0); /* no unused bits */
	der_wrap(&d, T_BITS, end);
	der_bytes(&d, ECDSA_SHA256);
	der_bytes(&d, tbs->mem + tbs->at, sizeof(tbs->mem) - tbs->at);
	der_wrap(&d, T_SEQ, end);
	if (d.full)
		return err_set(err, E_LIMIT, "the certificate is too long");
	if (buf_add(out, d.mem + d.at, sizeof(d.mem) - d.at) < 0)
		return err_nomem(err);
	return 0;
}

static void set_validity(struct tls_ca *ca, uint64_t now_real_usec)
{
	uint64_t now = now_real_usec / USEC_PER_SEC;

	ca->not_before = now > TLS_SKEW_SEC ? now - TLS_SKEW_SEC : 0;
	ca->not_after = now + TLS_VALID_DAYS * 24ULL * 60 * 60;
}

static int self_sign(struct tls_ca *ca, struct cloche_err *err)
{
	struct buf out = BUF_INIT(TLS_CERT_MAX);
	struct der tbs;
	size_t end;
	int r;

	der_init(&tbs);
	end = tbs.at;
	extensions_ca(&tbs, ca);
	tbs_front(&tbs, end, ca, ca->spki, str_from(ca->common_name));
	r = finish(ca, &tbs, &out, err);
	if (r == 0) {
		ca->der_len = buf_len(&out);
		memcpy(ca->der, buf_data(&out), ca->der_len);
	}
	buf_done(&out);
	return r;
}

int tls_ca_new(uint64_t now_real_usec, struct tls_ca **ret, struct cloche_err *err)
{
	_cleanup_(tls_ca_freep) struct tls_ca *ca = calloc(1, sizeof(*ca));
	char id[ID_LEN + 1];
	int r;

	if (!ca)
		return err_nomem(err);
	ca->key = p256_new(ca->spki);
	if (!ca->key)
		return err_set(
			err, E_INTERNAL, "making a key for the certificate authority failed");
	rand_id(id, ID_LEN);
	snprintf(ca->common_name, sizeof(ca->common_name), "Cloche %s", id);
	set_validity(ca, now_real_usec);
	r = self_sign(ca, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ca);
	return 0;
}

struct tls_ca *tls_ca_free(struct tls_ca *ca)
{
	if (ca) {
		p256_free(ca->key);
		free(ca);
	}
	return NULL;
}

struct str tls_ca_der(const struct tls_ca *ca)
{
	return str_make(ca->der, ca->der_len);
}

int tls_ca_add_pem(const struct tls_ca *ca, struct buf *out)
{
	enum { LINE = 64, RAW = LINE / 4 * 3 };
	unsigned char line[LINE + 1];
	int r = buf_add_str(out, STR("-----BEGIN CERTIFICATE-----\n"));

	for (size_t at = 0; r == 0 && at < ca->der_len; at += RAW) {
		int n = EVP_EncodeBlock(
			line, ca->der + at, (int)MIN((size_t)RAW, ca->der_len - at));

		r = buf_add(out, line, (size_t)n);
		if (r == 0)
			r = buf_add_char(out, '\n');
	}
	return r < 0 ? r : buf_add_str(out, STR("-----END CERTIFICATE-----\n"));
}

int tls_ca_mint(const struct tls_ca *ca, struct str spki, const struct tls_subject *subject,
	uint64_t now_real_usec, struct buf *out, struct cloche_err *err)
{
	/* A leaf has the validity of its issuer, whatever the clock says now. */
	enum { MAX_CN = 64 }; /* ub-common-name, RFC 5280 appendix A */
	const uint8_t *key = (const uint8_t *)spki.p;
	struct str cn = subject->address_len || subject->name.n > MAX_CN ? STR_NULL : subject->name;
	struct der tbs;
	size_t end;

	if (!tls_spki_is_p256(spki))
		return err_set(err, E_PROTOCOL, "the leaf's key is not P-256");
	if (subject->name.n > TLS_NAME_MAX || subject->address_len > sizeof(subject->address) ||
		(subject->name.n == 0) == (subject->address_len == 0))
		return err_set(err, E_PROTOCOL, "a leaf needs a name or an address");
	if (now_real_usec / USEC_PER_SEC >= ca->not_after)
		return err_set(err, E_LIMIT, "the certificate authority has expired");
	der_init(&tbs);
	end = tbs.at;
	extensions_leaf(&tbs, ca, key, subject, cn.n == 0);
	tbs_front(&tbs, end, ca, key, cn);
	return finish(ca, &tbs, out, err);
}
