/* SPDX-License-Identifier: Apache-2.0 */
/* The authority's certificates are judged by OpenSSL's own verifier and decoders. */
#include "base/clock.h"
#include "tls/ca.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <tap.h>

static struct tls_ca *ca;
static EVP_PKEY *key;
static uint8_t *spki_mem;
static struct str spki;

static X509 *decode(struct str der)
{
	const unsigned char *p = (const unsigned char *)der.p;
	X509 *x = d2i_X509(NULL, &p, (long)der.n);

	check(x && p == (const unsigned char *)der.p + der.n);
	return x;
}

static X509 *mint(const struct tls_subject *subject)
{
	struct buf out = BUF_INIT(TLS_CERT_MAX);
	struct cloche_err err = CLOCHE_ERR_INIT;
	X509 *x = NULL;

	if (tls_ca_mint(ca, spki, subject, clock_real_usec(), &out, &err) == 0)
		x = decode(buf_str(&out));
	else
		tap_fail("mint: %s", err.message);
	buf_done(&out);
	return x;
}

static int verify(X509 *leaf, const char *host, const char *ip)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *root = decode(tls_ca_der(ca));
	X509_VERIFY_PARAM *param;
	int r;

	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	param = X509_STORE_CTX_get0_param(ctx);
	if (host || ip)
		X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (host)
		X509_VERIFY_PARAM_set1_host(param, host, 0);
	if (ip)
		X509_VERIFY_PARAM_set1_ip_asc(param, ip);
	r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(root);
	return r;
}

static void test_authority(void)
{
	X509 *x = decode(tls_ca_der(ca));
	EVP_PKEY *pub = X509_get_pubkey(x);
	struct buf pem = BUF_INIT(8192);
	char cn[64] = "";
	int days, seconds;
	BIO *bio;
	X509 *again;

	check(X509_check_ca(x) == 1);
	check_int(X509_get_pathlen(x), 0);
	check_int(X509_get_key_usage(x), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	check_int(X509_verify(x, pub), 1);
	check_int(EVP_PKEY_get_bits(pub), 256);
	X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof(cn));
	check(strncmp(cn, "Cloche ", 7) == 0 && strlen(cn) == 15);
	ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x), X509_get0_notAfter(x));
	check_int(days, TLS_VALID_DAYS);
	check_int(seconds, 3600);
	check(X509_cmp_current_time(X509_get0_notBefore(x)) < 0);
	check_int(verify(x, NULL, NULL), X509_V_OK);
	check_int(tls_ca_add_pem(ca, &pem), 0);
	bio = BIO_new_mem_buf(buf_data(&pem), (int)buf_len(&pem));
	again = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	check(again && X509_cmp(again, x) == 0);
	BIO_free(bio);
	X509_free(again);
	X509_free(x);
	EVP_PKEY_free(pub);
	buf_done(&pem);
}

static void test_leaf_name(void)
{
	X509 *x = mint(&(struct tls_subject){.name = STR("api.example.com")});
	const ASN1_INTEGER *serial;
	time_t in_a_year = time(NULL) + 365 * 86400;
	BIGNUM *bn;

	check_int(verify(x, "api.example.com", NULL), X509_V_OK);
	check(X509_cmp_time(X509_get0_notAfter(x), &in_a_year) > 0);
	check_int(verify(x, "other.example.com", NULL), X509_V_ERR_HOSTNAME_MISMATCH);
	check(X509_check_ca(x) == 0);
	check_int(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
	check_int(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
	check_int(X509_get_version(x), 2);
	check(X509_get0_subject_key_id(x) && X509_get0_authority_key_id(x));
	check_int(X509_get_signature_nid(x), NID_ecdsa_with_SHA256);
	serial = X509_get0_serialNumber(x);
	bn = ASN1_INTEGER_to_BN(serial, NULL);
	check(BN_num_bits(bn) == 127 && !BN_is_negative(bn));
	BN_free(bn);
	check(EVP_PKEY_eq(X509_get0_pubkey(x), key) == 1);
	X509_free(x);
}

/* 253 bytes: longer than a common name may be, so the subject is empty and the SAN critical. */
static void test_leaf_long_name(void)
{
	char name[254];
	struct tls_subject s;
	X509 *x;
	int critical = -1;

	memset(name, 'a', sizeof(name));
	for (int i = 63; i < 253; i += 64)
		name[i] = '.';
	name[253] = '\0';
	s = (struct tls_subject){.name = str_from(name)};
	x = mint(&s);
	check_int(verify(x, name, NULL), X509_V_OK);
	check_int(X509_NAME_entry_count(X509_get_subject_name(x)), 0);
	GENERAL_NAMES_free(X509_get_ext_d2i(x, NID_subject_alt_name, &critical, NULL));
	check_int(critical, 1);
	X509_free(x);
}

static void test_leaf_address(void)
{
	struct tls_subject s = {.address_len = 4};
	X509 *x;

	inet_pton(AF_INET, "192.0.2.7", s.address);
	x = mint(&s);
	check_int(verify(x, NULL, "192.0.2.7"), X509_V_OK);
	check_int(verify(x, NULL, "192.0.2.8"), X509_V_ERR_IP_ADDRESS_MISMATCH);
	X509_free(x);
	inet_pton(AF_INET6, "2001:db8::7", s.address);
	s.address_len = 16;
	x = mint(&s);
	check_int(verify(x, NULL, "2001:db8::7"), X509_V_OK);
	X509_free(x);
}

static void test_serials_differ(void)
{
	struct tls_subject s = {.name = STR("a.example")};
	X509 *x = mint(&s), *y = mint(&s);

	check(ASN1_INTEGER_cmp(X509_get0_serialNumber(x), X509_get0_serialNumber(y)) != 0);
	X509_free(x);
	X509_free(y);
}

static void test_refusals(void)
{
	struct buf out = BUF_INIT(TLS_CERT_MAX);
	struct tls_subject s = {.name = STR("a.example")}, both = s, none = {.name = STR_NULL};
	uint8_t bad[TLS_SPKI_MAX];
	uint64_t now = clock_real_usec(),
		 later = now + (TLS_VALID_DAYS + 1) * UINT64_C(86400) * USEC_PER_SEC;

	both.address_len = 4;
	check(tls_spki_is_p256(spki));
	check(tls_ca_mint(ca, str_prefix(spki, 90), &s, now, &out, NULL) < 0);
	memcpy(bad, spki.p, sizeof(bad));
	bad[20] ^= 1; /* another curve */
	check(tls_ca_mint(ca, str_make(bad, sizeof(bad)), &s, now, &out, NULL) < 0);
	memcpy(bad, spki.p, sizeof(bad));
	bad[26] = 0x02; /* a compressed point */
	check(!tls_spki_is_p256(str_make(bad, sizeof(bad))));
	check(tls_ca_mint(ca, spki, &both, now, &out, NULL) < 0);
	check(tls_ca_mint(ca, spki, &none, now, &out, NULL) < 0);
	check_int(tls_ca_mint(ca, spki, &s, later, &out, NULL), -E_LIMIT);
	check_int(buf_len(&out), 0);
	buf_done(&out);
}

static void test_two_authorities_differ(void)
{
	struct tls_ca *other = NULL;

	must(tls_ca_new(clock_real_usec(), &other, NULL) == 0);
	check(!str_eq(tls_ca_der(ca), tls_ca_der(other)));
	tls_ca_free(other);
}

/* After 2049 times are written in another form (RFC 5280 4.1.2.5). */
static void test_after_2049(void)
{
	struct tls_ca *later = NULL;
	int days, seconds;
	X509 *x;

	must(tls_ca_new(2524608000ULL * USEC_PER_SEC, &later, NULL) == 0);
	x = decode(tls_ca_der(later));
	ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x), X509_get0_notAfter(x));
	check_int(days, TLS_VALID_DAYS);
	check_int(ASN1_STRING_type(X509_get0_notBefore(x)), V_ASN1_UTCTIME);
	check_int(ASN1_STRING_type(X509_get0_notAfter(x)), V_ASN1_GENERALIZEDTIME);
	X509_free(x);
	tls_ca_free(later);
}

int main(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int n;

	must(tls_ca_new(clock_real_usec(), &ca, &err) == 0);
	key = EVP_EC_gen("P-256");
	must(key);
	n = i2d_PUBKEY(key, &spki_mem);
	must(n > 0);
	spki = str_make(spki_mem, (size_t)n);
	run_test(test_authority);
	run_test(test_leaf_name);
	run_test(test_leaf_long_name);
	run_test(test_leaf_address);
	run_test(test_serials_differ);
	run_test(test_refusals);
	run_test(test_two_authorities_differ);
	run_test(test_after_2049);
	OPENSSL_free(spki_mem);
	EVP_PKEY_free(key);
	tls_ca_free(ca);
	return tap_done();
}
