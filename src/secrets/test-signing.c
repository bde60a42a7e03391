/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/scrub.h"
#include "secrets/signing.h"

#include "tap.h"

#define ID "AKIAIOSFODNN7EXAMPLE"
#define KEY "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define TOKEN "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJHMEUCIQ=="

static char scope_one[] = "s3.test", scope_two[] = "*.amazonaws.com", part_name[] = "P";
static char *scopes[] = {scope_one, scope_two, NULL}, *one_scope[] = {scope_one, NULL};

static struct signing_spec named(const char *id, const char *key, const char *token)
{
	return (struct signing_spec){.names = {id, key, token}, .scopes = scopes};
}

static void test_groups(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	const struct str temporary[] = {STR(ID), STR(KEY), STR(TOKEN)};
	const struct str lasting[] = {
		STR("AKIAZZZZZZZZZZZZZZZZ"), STR("secret/of+the/second"), STR_NULL};
	struct signing_spec one = named("ID", "KEY", "TOKEN"), two = named("ID2", "KEY2", "TOKEN2");
	_cleanup_(secret_spec_done) struct secret_spec masked = {0};
	struct signing_credential c;
	struct cloche_err err = CLOCHE_ERR_INIT;
	size_t at = 0;

	must(secret_spec_parse(STR("A@a.b"), &masked, NULL) == 0);
	check_int(secret_set_add_signing(set, &one, temporary, &err), 0);
	check_int(secret_set_add(set, &masked, STR("masked-value"), STR_NULL, &err), 0);
	check_int(secret_set_add_signing(set, &two, lasting, &err), 0);
	check_int(secret_set_count(set), 6);
	check_int(secret_set_group(set, 0), 3);
	check_int(secret_set_group(set, 3), 1);
	check_int(secret_set_group(set, 4), 2);
	must(secret_set_next_signing(set, &at, &c));
	check(c.token && str_eq(secret_reveal(c.token->value), STR(TOKEN)));
	check(str_eq(secret_reveal(c.key_id->value), STR(ID)) &&
		str_eq(secret_reveal(c.secret_key->value), STR(KEY)));
	check(str_starts(c.key_id->surrogate, STR("AKIA")));
	check_int(c.secret_key->surrogate.n, strlen(KEY));
	check_z(c.token->spec.name, "TOKEN");
	check_int(c.token->surrogate.n, 512);
	check_int(strlen(c.token->surrogate.p), 512);
	must(secret_set_next_signing(set, &at, &c));
	check(!c.token && str_eq(secret_reveal(c.key_id->value), lasting[0]));
	check(!secret_set_next_signing(set, &at, &c));
	check(!secret_set_next_signing(set, &at, &c));
}

static void test_refused(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	struct signing_spec spec = named("ID", "KEY", "TOKEN");
	static const struct {
		struct str v[3];
	} bad[] = {
		{{STR("AKIA/IOSFODNN"), STR(KEY), STR(TOKEN)}},
		{{STR("AKIA,IOSFODNN"), STR(KEY), STR(TOKEN)}},
		{{STR("short"), STR(KEY), STR(TOKEN)}},
		{{STR(""), STR(KEY), STR(TOKEN)}},
		{{STR(ID), STR(""), STR(TOKEN)}},
		{{STR(ID), STR("a key of words"), STR(TOKEN)}},
		{{STR(ID), STR(KEY), STR("two\nlines-of-it")}},
		{{STR(ID), STR(KEY), STR("short")}},
	};
	struct secret_spec part = {
		.name = part_name, .scopes = one_scope, .role = SECRET_AWS_SECRET_KEY};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;

		if (secret_set_add_signing(set, &spec, bad[i].v, &err) != -E_CONFIG)
			tap_fail("case %zu accepted", i);
		check(str_find(str_from(err.message), STR(KEY)) == strlen(err.message));
		check_int(secret_set_count(set), 0);
	}
	check_int(secret_set_add(set, &part, STR(KEY), STR_NULL, NULL), -E_CONFIG);
}

/* All three are looked for in what comes back. */
static void test_scrubbed(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	_cleanup_(scrubber_freep) struct scrubber *s = NULL;
	const struct str values[] = {STR(ID), STR(KEY), STR(TOKEN)};
	struct signing_spec spec = named("ID", "KEY", "TOKEN");
	char text[] = "<a>" ID "</a>" KEY " " TOKEN;

	must(secret_set_add_signing(set, &spec, values, NULL) == 0);
	must(scrubber_new(set, &s, NULL) == 0);
	check_int(scrub_whole(s, text, strlen(text)), 3);
	for (size_t i = 0; i < 3; i++)
		check(str_find(str_from(text), values[i]) == strlen(text));
}

/* A surrogate that was made before, as the broker gets it, has that length, too. */
static void test_token_given(void)
{
	static const struct str values[] = {STR(ID), STR(KEY), STR(TOKEN)};
	struct secret_spec token = {
		.name = part_name, .scopes = one_scope, .role = SECRET_AWS_TOKEN};
	struct signing_spec spec = named("ID", "KEY", NULL);
	char given[513];

	memset(given, 'y', sizeof(given));
	for (size_t n = 511; n <= 513; n++) {
		_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();

		must(secret_set_add_signing(set, &spec,
			     (struct str[]){values[0], values[1], STR_NULL}, NULL) == 0);
		check_int(secret_set_add(set, &token, values[2], str_make(given, n), NULL),
			n == 512 ? 0 : -E_CONFIG);
	}
}

/* A real token that is longer than its surrogate leaves nothing of itself behind that. */
static void test_long_token_scrubbed(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	_cleanup_(scrubber_freep) struct scrubber *s = NULL;
	struct signing_spec spec = named("ID", "KEY", "TOKEN");
	char real[1501], text[1600];

	for (size_t i = 0; i < sizeof(real) - 1; i++)
		real[i] = "ABCDEFGHIJKLMNOPQRSTUVW/+"[i * i % 25];
	real[sizeof(real) - 1] = '\0';
	must(secret_set_add_signing(
		     set, &spec, (struct str[]){STR(ID), STR(KEY), str_from(real)}, NULL) == 0);
	must(scrubber_new(set, &s, NULL) == 0);
	snprintf(text, sizeof(text), "<%s>", real);
	check_int(scrub_whole(s, text, strlen(text)), 1);
	check(memcmp(text + 1, secret_set_get(set, 2)->surrogate.p, 512) == 0);
	check_int(strspn(text + 513, "x"), 1500 - 512);
	check_z(text + 1501, ">");
}

int main(void)
{
	run_test(test_groups);
	run_test(test_refused);
	run_test(test_scrubbed);
	run_test(test_token_given);
	run_test(test_long_token_scrubbed);
	return tap_done();
}
