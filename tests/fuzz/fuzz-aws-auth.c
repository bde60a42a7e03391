/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: aws base */
/* A request's lines: METHOD TARGET, then name:value. Whatever is found as a signature can be made
 * anew, is then found again, and verifies; and nothing else of the target has changed. */
#include "aws/request.h"

#include <stdlib.h>

enum { FIELDS = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition)
{
	if (!condition)
		abort();
}

static struct str take_line(struct str *s)
{
	struct str line = str_prefix(*s, str_chr(*s, '\n'));

	*s = str_from_index(*s, line.n + 1);
	return line;
}

static void again(struct aws_request *req, struct aws_field *fields, const struct aws_auth *auth,
	struct aws_signer *signer)
{
	const struct aws_form form = {
		.hash = auth->payload.p ? AWS_HASH_STATED : AWS_HASH_UNSIGNED};
	struct aws_signed made;
	struct aws_auth found;
	struct aws_form got;
	const char *why;

	if (aws_sign(req, auth, &form, signer, auth->payload, &made) == 0) {
		if (auth->place == AWS_IN_HEADER)
			fields[auth->field].value = buf_str(&made.value);
		else
			req->target = buf_str(&made.value);
		need(aws_auth_find(req, &found, &why) == 1);
		need(str_eq(found.key_id, aws_signer_key_id(signer)));
		need(str_eq(found.scope.text, auth->scope.text));
		/* The token may be another one. */
		if (aws_verify(req, &found, signer, STR_NULL, &got, &why) != 0)
			need(str_find(str_from(why), STR("session token")) < strlen(why));
		aws_auth_done(&found);
	}
	aws_signed_done(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct aws_signer *signer;
	struct str rest = str_make(data, size), first = take_line(&rest);
	size_t space = str_chr(first, ' ');
	struct aws_field fields[FIELDS];
	struct aws_request req = {.method = str_prefix(first, space),
		.target = str_from_index(first, space + 1),
		.fields = fields};
	struct aws_auth auth;
	const char *why = NULL;
	int r;

	if (!signer)
		signer = aws_signer_new(STR("AKIAFUZZFUZZ"), STR("secret"), STR("token/of+fuzz=="));
	while (rest.n > 0 && req.n_fields < FIELDS) {
		struct str line = take_line(&rest);
		size_t colon = str_chr(line, ':');

		fields[req.n_fields++] = (struct aws_field){
			str_prefix(line, colon), str_from_index(line, colon + 1)};
	}
	(void)aws_query_has_credential(aws_query_of(req.target));
	r = aws_auth_find(&req, &auth, &why);
	need(r == 0 || r == 1 || why);
	if (r == 1) {
		again(&req, fields, &auth, signer);
		aws_auth_done(&auth);
	}
	return 0;
}
