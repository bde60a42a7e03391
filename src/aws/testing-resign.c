/* SPDX-License-Identifier: Apache-2.0 */
/* For tests/integration/test-aws: reads requests that were signed with surrogates, one after the
 * other, each as lines: METHOD TARGET, the body's hash, name:value..., an empty line. Writes a line
 * for each: "ok" and Authorization or the target, as it would leave, or "no" and why.
 *
 * The environment has REAL_ID, REAL_SECRET, REAL_TOKEN, ROOM_ID, ROOM_SECRET and ROOM_TOKEN. */
#include "aws/request.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 64 };

struct input {
	char *lines[FIELDS + 2];
	size_t n;
	struct aws_field fields[FIELDS];
	struct aws_request req;
};

static struct aws_signer *signer(const char *id, const char *secret, const char *token)
{
	return aws_signer_new(
		str_from(getenv(id)), str_from(getenv(secret)), str_from(getenv(token)));
}

/* False at the end. */
static bool read_input(struct input *in)
{
	for (in->n = 0; in->n < ARRAY_SIZE(in->lines); in->n++) {
		size_t cap = 0;
		char *line = NULL;
		ssize_t n = getline(&line, &cap, stdin);

		if (n <= 1) {
			free(line);
			return n == 1 && in->n >= 2;
		}
		line[n - 1] = '\0';
		in->lines[in->n] = line;
	}
	return false;
}

static void parse(struct input *in)
{
	struct str first = str_from(in->lines[0]);
	size_t space = str_chr(first, ' ');

	in->req = (struct aws_request){.method = str_prefix(first, space),
		.target = str_from_index(first, space + 1),
		.fields = in->fields,
		.n_fields = in->n - 2};
	for (size_t i = 2; i < in->n; i++) {
		struct str line = str_from(in->lines[i]);
		size_t colon = str_chr(line, ':');

		in->fields[i - 2] = (struct aws_field){
			str_prefix(line, colon), str_from_index(line, colon + 1)};
	}
}

static void swap_token(struct input *in, struct str token)
{
	for (size_t i = 0; i < in->req.n_fields; i++)
		if (str_ieq(in->fields[i].name, STR("x-amz-security-token")))
			in->fields[i].value = token;
}

static void resign(struct input *in, struct aws_signer *room, struct aws_signer *real)
{
	struct str hash = str_from(in->lines[1]);
	struct aws_signed made = {0};
	const char *why = "there is no signature";
	struct aws_auth auth;
	struct aws_form form;
	int r = aws_auth_find(&in->req, &auth, &why);

	if (r == 1) {
		r = aws_verify(&in->req, &auth, room, hash, &form, &why);
		if (r == 0) {
			swap_token(in, aws_signer_token(real));
			r = aws_sign(&in->req, &auth, &form, real,
				form.hash == AWS_HASH_STATED ? auth.payload : hash, &made);
			why = r == 0 ? NULL : "it cannot be signed";
		}
		aws_auth_done(&auth);
	}
	if (why && r != 0)
		printf("no %s\n", why);
	else if (r == 0 && made.signature_n > 0)
		printf("ok %.*s\n", STR_FMT(buf_str(&made.value)));
	else
		printf("no %s\n", why);
	aws_signed_done(&made);
}

int main(void)
{
	_cleanup_(aws_signer_freep) struct aws_signer *room =
		signer("ROOM_ID", "ROOM_SECRET", "ROOM_TOKEN");
	_cleanup_(aws_signer_freep) struct aws_signer *real =
		signer("REAL_ID", "REAL_SECRET", "REAL_TOKEN");
	struct input in;

	while (room && real && read_input(&in)) {
		parse(&in);
		resign(&in, room, real);
		for (size_t i = 0; i < in.n; i++)
			free(in.lines[i]);
	}
	return room && real ? 0 : 1;
}
