/* SPDX-License-Identifier: Apache-2.0 */
#include "aws/chunks.h"
#include "aws/request.h"

#include "tap.h"
#include "torture.h"
#include <errno.h>

#define SIG "0000000000000000000000000000000000000000000000000000000000000000"

static struct aws_signer *signer;

static struct aws_field fields[] = {{STR("host"), STR("h")},
	{STR("x-amz-date"), STR("20260131T120000Z")},
	{STR("authorization"),
		STR("AWS4-HMAC-SHA256 Credential=AKIAROOM/20260131/eu-1/s3/aws4_request, "
		    "SignedHeaders=host;x-amz-date, Signature=" SIG)}};

/* Makes a signature and verifies it. */
static void sign_and_verify(void)
{
	static const struct aws_form form = {.hash = AWS_HASH_UNSIGNED};
	struct aws_field own[ARRAY_SIZE(fields)];
	struct aws_request req = {STR("GET"), STR("/a//b?x=1&y"), own, ARRAY_SIZE(own)};
	struct aws_auth auth, again;
	struct aws_signed made;
	struct aws_form got;
	const char *why;
	int r;

	memcpy(own, fields, sizeof(own));
	r = aws_auth_find(&req, &auth, &why);
	check_int(r, torture_failed ? -ENOMEM : 1);
	if (r < 0)
		return;
	r = aws_sign(&req, &auth, &form, signer, STR_NULL, &made);
	check_int(r, torture_failed ? -ENOMEM : 0);
	if (r == 0) {
		own[2].value = buf_str(&made.value);
		r = aws_auth_find(&req, &again, &why);
		check_int(r, torture_failed ? -ENOMEM : 1);
		if (r == 1) {
			r = aws_verify(&req, &again, signer, STR_NULL, &got, &why);
			check_int(r, torture_failed ? -ENOMEM : 0);
			aws_auth_done(&again);
		}
	}
	aws_signed_done(&made);
	aws_auth_done(&auth);
}

/* Lack of memory is told from a body that is not the room's. */
static void rewrite(void)
{
	static const struct aws_auth auth = {.time = STR("20260131T120000Z"),
		.kind = AWS_PAYLOAD_CHUNKS,
		.scope = {.text = STR("20260131/eu-1/s3/aws4_request"),
			.date = STR("20260131"),
			.region = STR("eu-1"),
			.service = STR("s3")}};
	struct aws_auth copy = auth;
	struct aws_chunks_config config = {.auth = &copy,
		.surrogate = signer,
		.real = signer,
		.surrogate_seed = STR("a"),
		.real_seed = STR("b")};
	_cleanup_(aws_chunks_freep) struct aws_chunks *c = NULL;
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
	int r;

	must(aws_scope_parse(AWS_HMAC, auth.scope.text, &copy.scope));
	c = aws_chunks_new(&config);
	check(!c == torture_failed);
	if (!c)
		return;
	r = aws_chunks_feed(c, STR("3;chunk-signature=" SIG "\r\nabc\r\n"), &out, NULL);
	check_int(r, torture_failed ? -E_NO_MEMORY : -E_PROTOCOL);
}

static void test_no_memory(void)
{
	torture(sign_and_verify);
	torture(rewrite);
}

int main(void)
{
	signer = aws_signer_new(STR("AKIAROOM"), STR("room"), STR_NULL);
	must(signer);
	run_test(test_no_memory);
	aws_signer_free(signer);
	return tap_done();
}
