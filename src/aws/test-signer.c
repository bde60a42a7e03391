/* SPDX-License-Identifier: Apache-2.0 */
#include "aws/signer.h"

#include "tap.h"

static void check_public(const char *id, const char *secret, const char *x_and_y)
{
	_cleanup_(aws_signer_freep) struct aws_signer *s =
		aws_signer_new(str_from(id), str_from(secret), STR_NULL);
	uint8_t point[64];
	char hex[129] = "";

	must(aws_signer_public(s, point));
	aws_hex(point, sizeof(point), hex);
	check(strncmp(hex, x_and_y, strlen(x_and_y)) == 0);
}

/* SigV4A's key pair: values that other implementations give. */
static void test_key_pair(void)
{
	check_public("AKISORANDOMAASORANDOM", "q+jcrXGc+0zWN6uzclKVhvMmUsIfRPa4rlRandom",
		"15d242ceebf8d8169fd6a8b5a746c41140414c3b07579038da06af89190fffcb"
		"0515242cedd82e94799482e4c0514b505afccf2c0c98d6a553bf539f424c5ec0");
	check_public("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "b6618f6a");
}

static void test_scope(void)
{
	static const char *const bad[] = {"", "20150830", "20150830/r/s",
		"20150830/r/s/aws4_reques", "20150830/r/s/aws4_request/",
		"2015083/r/s/aws4_request", "2015083x/r/s/aws4_request", "20150830//s/aws4_request",
		"20150830/r//aws4_request", "20150830/r\n/s/aws4_request",
		"20150830/s/aws4_request"};
	struct aws_scope s;

	must(aws_scope_parse(AWS_HMAC, STR("20150830/eu-1/s3/aws4_request"), &s));
	check_str(s.date, "20150830");
	check_str(s.region, "eu-1");
	check_str(s.service, "s3");
	must(aws_scope_parse(AWS_ECDSA, STR("20150830/s3/aws4_request"), &s));
	check(s.region.n == 0);
	check_str(s.service, "s3");
	check(!aws_scope_parse(AWS_ECDSA, STR("20150830/eu-1/s3/aws4_request"), &s));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (aws_scope_parse(AWS_HMAC, str_from(bad[i]), &s))
			tap_fail("accepted %s", bad[i]);
}

/* More scopes than keys are kept: each gives the same as on its own. */
static void test_keys_kept(void)
{
	_cleanup_(aws_signer_freep) struct aws_signer *s =
		aws_signer_new(STR("AK"), STR("secret"), STR_NULL);
	char text[64], got[AWS_SIGNATURE_MAX], want[AWS_SIGNATURE_MAX];

	for (int round = 0; round < 40; round++) {
		_cleanup_(aws_signer_freep) struct aws_signer *fresh =
			aws_signer_new(STR("AK"), STR("secret"), STR_NULL);
		struct aws_scope scope;

		snprintf(text, sizeof(text), "20150830/r%d/s/aws4_request", round % 11);
		must(aws_scope_parse(AWS_HMAC, str_from(text), &scope));
		check_int(aws_signer_sign(s, &scope, STR("text"), got), 64);
		check_int(aws_signer_sign(fresh, &scope, STR("text"), want), 64);
		check(memcmp(got, want, 64) == 0);
		check(aws_signer_check(s, &scope, STR("text"), str_make(got, 64)));
		check(!aws_signer_check(s, &scope, STR("texT"), str_make(got, 64)));
		got[5] ^= 1;
		check(!aws_signer_check(s, &scope, STR("text"), str_make(got, 64)));
	}
}

static void test_ecdsa(void)
{
	_cleanup_(aws_signer_freep) struct aws_signer *s =
		aws_signer_new(STR("AK"), STR("secret"), STR("token"));
	_cleanup_(aws_signer_freep) struct aws_signer *other =
		aws_signer_new(STR("AK"), STR("secreT"), STR_NULL);
	struct aws_scope scope;
	char signature[AWS_SIGNATURE_MAX];

	check_str(aws_signer_key_id(s), "AK");
	check_str(aws_signer_token(s), "token");
	check(aws_signer_token(other).n == 0);
	must(aws_scope_parse(AWS_ECDSA, STR("20150830/s3/aws4_request"), &scope));
	for (int i = 0; i < 50; i++) {
		size_t n = aws_signer_sign(s, &scope, STR("text"), signature);

		must(n > 100 && n <= AWS_SIGNATURE_MAX);
		check(aws_signer_check(s, &scope, STR("text"), str_make(signature, n)));
		check(!aws_signer_check(s, &scope, STR("texT"), str_make(signature, n)));
		check(!aws_signer_check(other, &scope, STR("text"), str_make(signature, n)));
		check(!aws_signer_check(s, &scope, STR("text"), str_make(signature, n - 2)));
	}
	check(!aws_signer_check(s, &scope, STR("text"), STR("3006020101020101")));
	check(!aws_signer_check(s, &scope, STR("text"), STR("zz")));
	check(!aws_signer_check(s, &scope, STR("text"), STR_NULL));
}

int main(void)
{
	run_test(test_key_pair);
	run_test(test_scope);
	run_test(test_keys_kept);
	run_test(test_ecdsa);
	return tap_done();
}
