/* SPDX-License-Identifier: Apache-2.0 */
/* The signing test suite of AWS, if it is there: each signed request is verified, signed again
 * with the same credentials, which has to give the same bytes, and then taken through a room:
 * signed with surrogates, verified, and signed with the real ones. */
#include "aws/request.h"

#include "base/fd.h"
#include "tap.h"
#include <dirent.h>
#include <fcntl.h>

enum { FIELDS = 32 };

struct vector {
	char *context, *text;
	struct str key_id, secret, token, body;
	struct aws_field fields[FIELDS];
	struct aws_request req;
};

static struct buf scratch = {.max = 1 << 20};

static char *read_file(const char *folder, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	buf_clear(&scratch);
	if (fd_read_file(AT_FDCWD, path, &scratch, NULL) < 0)
		return NULL;
	return str_dup(buf_str(&scratch));
}

/* The text behind "key": " */
static struct str member(const char *json, const char *key)
{
	char quoted[64];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\"", key);
	at = strstr(json, quoted);
	if (!at)
		return STR_NULL;
	at = strchr(at + strlen(quoted), '"') + 1;
	return str_make(at, (size_t)(strchr(at, '"') - at));
}

static void parse(struct vector *v)
{
	char *p = v->text, *end = strchr(p, '\n');
	struct str line = str_make(p, (size_t)(end - p));

	if (str_ends(line, STR("\r")))
		line.n--;
	must(str_ends(line, STR(" HTTP/1.1")));
	line.n -= 9;
	v->req.method = str_prefix(line, str_chr(line, ' '));
	v->req.target = str_from_index(line, v->req.method.n + 1);
	v->req.fields = v->fields;
	for (p = end + 1; *p && *p != '\n' && *p != '\r'; p = end + 1) {
		char *colon = strchr(p, ':');

		end = strchr(p, '\n');
		must(end && v->req.n_fields < FIELDS);
		/* What a folded line goes on with belongs to the value. */
		while (end[1] == ' ' || end[1] == '\t')
			end = strchr(end + 1, '\n');
		v->fields[v->req.n_fields++] = (struct aws_field){str_make(p, (size_t)(colon - p)),
			str_make(colon + 1, (size_t)(end - colon - 1))};
	}
	p += *p == '\r';
	v->body = str_from(*p == '\n' ? p + 1 : p);
}

static bool load(struct vector *v, const char *folder, const char *name)
{
	v->context = read_file(folder, "context.json");
	v->text = v->context ? read_file(folder, name) : NULL;
	if (!v->text)
		return false;
	v->key_id = member(v->context, "access_key_id");
	v->secret = member(v->context, "secret_access_key");
	v->token = member(v->context, "token");
	parse(v);
	return true;
}

static void unload(struct vector *v)
{
	free(v->context);
	free(v->text);
}

/* Puts what was signed into a copy of the request. */
static void apply(struct vector *to, const struct vector *from, const struct aws_auth *auth,
	const struct aws_signed *s, struct str token)
{
	*to = *from;
	to->req.fields = to->fields;
	if (auth->place == AWS_IN_QUERY)
		to->req.target = buf_str(&s->value);
	else
		to->fields[auth->field].value = buf_str(&s->value);
	for (size_t i = 0; i < to->req.n_fields; i++)
		if (str_ieq(to->fields[i].name, STR("x-amz-security-token")))
			to->fields[i].value = token;
}

static void set_token(struct vector *v, struct str token)
{
	for (size_t i = 0; i < v->req.n_fields; i++)
		if (str_ieq(v->fields[i].name, STR("x-amz-security-token")))
			v->fields[i].value = token;
}

static struct str payload_of(const struct aws_auth *auth, const struct aws_form *form, char *hash)
{
	return form->hash == AWS_HASH_STATED ? auth->payload : str_make(hash, AWS_HEX);
}

static void through_room(const struct vector *v, const struct aws_auth *auth,
	const struct aws_form *form, struct aws_signer *real, char *hash, const char *name)
{
	_cleanup_(aws_signer_freep) struct aws_signer *fake =
		aws_signer_new(STR("AKIAROOMROOMROOM"), STR("room/room+room"),
			v->token.n ? STR("room-token//+=") : STR_NULL);
	struct vector of_room = *v, inside = {0};
	struct aws_signed one, two;
	struct aws_auth again;
	struct aws_form found;
	const char *why = "";

	of_room.req.fields = of_room.fields;
	set_token(&of_room, aws_signer_token(fake));
	check_int(aws_sign(&of_room.req, auth, form, fake, payload_of(auth, form, hash), &one), 0);
	apply(&inside, &of_room, auth, &one, aws_signer_token(fake));
	if (aws_auth_find(&inside.req, &again, &why) != 1 ||
		aws_verify(&inside.req, &again, fake, str_make(hash, AWS_HEX), &found, &why) != 0) {
		tap_fail("%s: not verified: %s", name, why);
		aws_signed_done(&one);
		return;
	}
	check_str(again.key_id, "AKIAROOMROOMROOM");
	set_token(&inside, v->token);
	check_int(
		aws_sign(&inside.req, &again, &found, real, payload_of(&again, &found, hash), &two),
		0);
	if (!str_eq(str_make(two.signature, two.signature_n), auth->signature))
		tap_fail("%s: another signature after the room", name);
	if (auth->place == AWS_IN_QUERY && !str_eq(buf_str(&two.value), v->req.target))
		tap_fail("%s: another target: %.*s", name, STR_FMT(buf_str(&two.value)));
	aws_signed_done(&one);
	aws_signed_done(&two);
	aws_auth_done(&again);
}

static void one(const char *folder, const char *name, const char *file)
{
	_cleanup_(aws_signer_freep) struct aws_signer *real = NULL;
	struct vector v = {0};
	struct aws_auth auth;
	struct aws_form form;
	struct aws_signed s;
	char hash[AWS_HEX], label[256];
	const char *why = "";
	int r;

	snprintf(label, sizeof(label), "%s/%s", name, file);
	must(load(&v, folder, file));
	real = aws_signer_new(v.key_id, v.secret, v.token);
	aws_sha256_hex(v.body, hash);
	r = aws_auth_find(&v.req, &auth, &why);
	if (r == 1) {
		r = aws_verify(&v.req, &auth, real, str_make(hash, AWS_HEX), &form, &why);
		if (r < 0)
			tap_fail("%s: %s", label, why);
		else {
			check_int(aws_sign(&v.req, &auth, &form, real,
					  payload_of(&auth, &form, hash), &s),
				0);
			if (!str_eq(str_make(s.signature, s.signature_n), auth.signature))
				tap_fail("%s: another signature", label);
			aws_signed_done(&s);
			through_room(&v, &auth, &form, real, hash, label);
		}
		aws_auth_done(&auth);
	} else {
		tap_fail("%s: not found: %s", label, why);
	}
	unload(&v);
}

static void test_suite(void)
{
	const char *shared = getenv("CLOCHE_SHARED");
	char top[512], folder[1024];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(top, sizeof(top), "%s/vectors/aws-sigv4", shared ? shared : "");
	d = shared ? opendir(top) : NULL;
	if (!d) {
		tap_skip("the vectors are not there (CLOCHE_SHARED)");
		return;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(folder, sizeof(folder), "%s/%s", top, e->d_name);
		one(folder, e->d_name, "header-signed-request.txt");
		one(folder, e->d_name, "query-signed-request.txt");
		n++;
	}
	closedir(d);
	check(n > 0);
	buf_done(&scratch);
}

int main(void)
{
	run_test(test_suite);
	return tap_done();
}
