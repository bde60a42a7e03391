/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"
#include "tls/hello.h"

#include <openssl/ssl.h>

static struct str name;

#define SNI(body) hello_sni_parse(STR(body), &name)

static void test_one_name(void)
{
	check(SNI("\0\x09\0\0\x06"
		  "a.test") == HELLO_SNI_OK);
	check_str(name, "a.test");
	check(SNI("\0\x0a\0\0\x07"
		  "A.test.") == HELLO_SNI_OK);
	check_str(name, "A.test");
	check(SNI("\0\x06\0\0\x03"
		  "a_b") == HELLO_SNI_OK);
}

static void test_malformed(void)
{
	check(SNI("") == HELLO_SNI_MALFORMED);
	check(SNI("\0") == HELLO_SNI_MALFORMED);
	check(SNI("\0\0") == HELLO_SNI_MALFORMED);
	check(SNI("\0\x0a\0\0\x06"
		  "a.test") == HELLO_SNI_MALFORMED);
	check(SNI("\0\x09\0\0\x07"
		  "a.test") == HELLO_SNI_MALFORMED);
	check(SNI("\0\x09\0\0\x06"
		  "a.testX") == HELLO_SNI_MALFORMED);
	check(SNI("\0\x01\0") == HELLO_SNI_MALFORMED);
}

static void test_not_one_name(void)
{
	check(SNI("\0\x12\0\0\x06"
		  "a.test\0\0\x06"
		  "b.test") == HELLO_SNI_MANY);
	check(SNI("\0\x0a\0\0\x06"
		  "a.test\0") == HELLO_SNI_MANY);
	check(SNI("\0\x09\1\0\x06"
		  "a.test") == HELLO_SNI_MANY);
}

static void test_not_a_name(void)
{
	char body[5 + 254];

	check(SNI("\0\3\0\0\0") == HELLO_SNI_NAME);
	check(SNI("\0\4\0\0\1.") == HELLO_SNI_NAME);
	check(SNI("\0\x09\0\0\x06"
		  "a\0test") == HELLO_SNI_NAME);
	check(SNI("\0\x09\0\0\x06"
		  "a test") == HELLO_SNI_NAME);
	check(SNI("\0\x09\0\0\x06"
		  "a..tst") == HELLO_SNI_NAME);
	check(SNI("\0\x09\0\0\x06"
		  ".a.tst") == HELLO_SNI_NAME);
	check(SNI("\0\x09\0\0\x06"
		  "a.te\xc3\xa9") == HELLO_SNI_NAME);
	/* 254 bytes of labels of 49; 253 would be fine; a label of 64. */
	memcpy(body, "\1\1\0\0\xfe", 5);
	for (size_t i = 0; i < 254; i++)
		body[5 + i] = i % 50 == 49 ? '.' : 'x';
	check(hello_sni_parse(str_make(body, 5 + 254), &name) == HELLO_SNI_NAME);
	memcpy(body, "\1\0\0\0\xfd", 5);
	check(hello_sni_parse(str_make(body, 5 + 253), &name) == HELLO_SNI_OK);
	memcpy(body, "\0\x43\0\0\x40", 5);
	memset(body + 5, 'x', 64);
	check(hello_sni_parse(str_make(body, 5 + 64), &name) == HELLO_SNI_NAME);
}

static void test_alpn(void)
{
	check_str(hello_alpn_list(STR("\0\3\2h2")), "\2h2");
	check(hello_alpn_list(STR("\0\4\2h2")).n == 0);
	check(hello_alpn_list(STR("\0\2\2h2")).n == 0);
	check(hello_alpn_list(STR("\0")).n == 0);
	check(hello_alpn_has(STR("\2h2\10http/1.1"), STR("http/1.1")));
	check(!hello_alpn_has(STR("\2h2"), STR("http/1.1")));
	check(!hello_alpn_has(STR("\10http/1.1\0"), STR("http/1.1")));
	check(!hello_alpn_has(STR("\10http/1.1\3h2"), STR("http/1.1")));
	check(!hello_alpn_has(STR(""), STR("http/1.1")));
}

/* A ClientHello with these extensions, `step` bytes of it a record. */
static struct str hello(struct str extensions, size_t step, char ret[512])
{
	char message[256] = {1};
	size_t n = 4 + 2 + 32, out = 0;

	/* No session, one cipher suite, one compression. */
	memcpy(message + n, "\0\0\2\x13\1\1\0\0", 8);
	n += 8;
	message[n++] = (char)extensions.n;
	memcpy(message + n, extensions.p, extensions.n);
	n += extensions.n;
	message[3] = (char)(n - 4);
	for (size_t at = 0; at < n; at += step) {
		size_t some = n - at < step ? n - at : step;

		memcpy(ret + out, "\x16\3\1\0", 4);
		ret[out + 4] = (char)some;
		memcpy(ret + out + 5, message + at, some);
		out += 5 + some;
	}
	return str_make(ret, out);
}

static void test_encrypted_hello(void)
{
	char text[512];
	struct str plain = STR("\0\x2b\0\3\2\3\4\0\x17\0\0");

	check(!hello_hides_name(hello(plain, 200, text)));
	check(!hello_hides_name(hello(plain, 7, text)));
	check(hello_hides_name(hello(STR("\0\x17\0\0\xfe\x0d\0\1\0"), 200, text)));
	check(hello_hides_name(hello(STR("\0\x17\0\0\xfe\x0d\0\1\0"), 9, text)));
	check(hello_hides_name(hello(STR("\xff\xce\0\0"), 200, text)));
	/* What cannot be read. */
	check(hello_hides_name(hello(STR("\0\x17\0\1"), 200, text)));
	check(hello_hides_name(hello(STR("\0"), 200, text)));
	check(hello_hides_name(STR("")));
	check(hello_hides_name(STR("\x16\3\1\0\1\1")));
	check(hello_hides_name(STR("\x15\3\1\0\2\2\x31")));
	for (size_t n = 0; n < 57; n++)
		check(hello_hides_name(str_prefix(hello(plain, 200, text), n)));
}

/* A session that early data may be sent for. */
static int early_session(
	SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **session)
{
	static const unsigned char key[32] = "key", identity[] = "id";
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, (const unsigned char[]){0x13, 0x01});
	SSL_SESSION *s = SSL_SESSION_new();

	(void)md;
	must(s && cipher && SSL_SESSION_set1_master_key(s, key, sizeof(key)) == 1);
	must(SSL_SESSION_set_cipher(s, cipher) == 1);
	must(SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1);
	must(SSL_SESSION_set_max_early_data(s, 1000) == 1);
	*id = identity;
	*id_len = 2;
	*session = s;
	return 1;
}

/* What a client sends at once that has early data (RFC 8446 4.2.10): the ClientHello is what is
 * judged, up to its end. */
static void test_early_data(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl;
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct str records, rest;
	size_t written;
	char *p, text[512];
	long n;

	must(ctx && in && out);
	SSL_CTX_set_psk_use_session_callback(ctx, early_session);
	ssl = SSL_new(ctx);
	must(ssl && SSL_set_tlsext_host_name(ssl, "a.test") == 1);
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	must(SSL_write_early_data(ssl, "early", 5, &written) == 1);
	n = BIO_get_mem_data(out, &p);
	records = str_make(p, (size_t)n);
	rest = str_from_index(records, 5 + ((size_t)(uint8_t)p[3] << 8) + (uint8_t)p[4]);
	check(rest.n > 5 + 5); /* there is more than the ClientHello */
	check(!hello_hides_name(records));
	/* Within its last record nothing may follow it (RFC 8446 5.1). */
	rest = hello(STR("\0\x17\0\0"), 200, text);
	check(!hello_hides_name(rest));
	memcpy(text + rest.n, "\1\0\0\0", 4);
	text[4] = (char)(text[4] + 4);
	check(hello_hides_name(str_make(text, rest.n + 4)));
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

int main(void)
{
	run_test(test_one_name);
	run_test(test_malformed);
	run_test(test_not_one_name);
	run_test(test_not_a_name);
	run_test(test_alpn);
	run_test(test_encrypted_hello);
	run_test(test_early_data);
	return tap_done();
}
