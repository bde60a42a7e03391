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

int main(void)
{
	run_test(test_one_name);
	run_test(test_malformed);
	run_test(test_not_one_name);
	run_test(test_not_a_name);
	run_test(test_alpn);
	return tap_done();
}
