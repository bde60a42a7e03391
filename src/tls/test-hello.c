/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"
#include "tls/hello.h"

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

int main(void)
{
	run_test(test_one_name);
	run_test(test_malformed);
	run_test(test_not_one_name);
	run_test(test_not_a_name);
	run_test(test_alpn);
	run_test(test_encrypted_hello);
	return tap_done();
}
