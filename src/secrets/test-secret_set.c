/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/secret_set.h"
#include "secrets/surrogate.h"

#include "tap.h"

static void join(char **list, char ret[256])
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; list && list[i]; i++)
		used += (size_t)snprintf(ret + used, 256 - used, "%s%s", i ? "," : "", list[i]);
}

static void test_spec(void)
{
	static const struct {
		const char *in, *name, *from, *scopes, *headers;
	} good[] = {
		{"KEY@api.x.com", "KEY", "KEY", "api.x.com", "authorization"},
		{"KEY=HOST_KEY@api.x.com", "KEY", "HOST_KEY", "api.x.com", "authorization"},
		{"KEY@API.X.com.,*.Y.com", "KEY", "KEY", "api.x.com,*.y.com", "authorization"},
		{"KEY@a.com:X-Api-Key", "KEY", "KEY", "a.com", "x-api-key"},
		{"KEY@a.com:x-api-key,Authorization,X-*", "KEY", "KEY", "a.com",
			"x-api-key,authorization,x-*"},
		{"KEY=/run/me@home:1/k@a.com", "KEY", "/run/me@home:1/k", "a.com", "authorization"},
		{"_k1@[::1]:x-key", "_k1", "_k1", "[::1]", "x-key"},
		{"KEY=a=b@a.com", "KEY", "a=b", "a.com", "authorization"},
		{"KEY@a[12]?.com:x-k", "KEY", "KEY", "a[12]?.com", "x-k"},
	};
	static const char *const bad[] = {"", "@", "KEY", "KEY@", "@a.com", "1KEY@a.com",
		"KE Y@a.com", "KEY-X@a.com", "KEY=@a.com", "KEY@a.com,", "KEY@,a.com",
		"KEY@a.com:", "KEY@a.com:x,", "KEY@a.com:,x", "KEY@a.com:x y", "KEY@a.com:x:y",
		"KEY@http://a.com", "KEY@a.com:443", "KEY@a.com:x,1", "KEY@a.com/x", "KEY@127.1",
		"KEY@a.com:host", "KEY@a.com:Host", "KEY@a.com:content-length",
		"KEY@a.com:transfer-encoding", "KEY@a..com", "KEY@a.com:x\r\n"};
	static const char *const words[][2] = {{"KEY", "secret: no @HOST"},
		{"KEY-X=K@a.com", "secret: the name"}, {"KEY=@a.com", "secret KEY: nothing behind"},
		{"KEY@a.com:443", "neither scheme nor port"},
		{"KEY@https://a.com", "neither scheme nor port"}};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		_cleanup_(secret_spec_done) struct secret_spec spec = {0};
		struct cloche_err err = CLOCHE_ERR_INIT;
		char text[256];

		if (secret_spec_parse(str_from(good[i].in), &spec, &err) < 0) {
			tap_fail("%s: %s", good[i].in, err.message);
			continue;
		}
		check_z(spec.name, good[i].name);
		check_z(spec.from, good[i].from);
		join(spec.scopes, text);
		check_z(text, good[i].scopes);
		join(spec.headers, text);
		check_z(text, good[i].headers);
		check(!spec.allow_foreign_credentials);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		struct secret_spec spec = {0};

		if (secret_spec_parse(str_from(bad[i]), &spec, &err) != -E_USAGE)
			tap_fail("accepted %s", bad[i]);
		check(spec.name == NULL && err.message[0] && err.hint[0]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;

		check(secret_spec_parse(str_from(words[i][0]), &(struct secret_spec){0}, &err) < 0);
		if (!strstr(err.message, words[i][1]) || strstr(err.message, "without a name"))
			tap_fail("%s: %s", words[i][0], err.message);
	}
	check(secret_spec_parse(STR("KEY=a\0b@a.com"), &(struct secret_spec){0}, NULL) < 0);
}

static int add(struct secret_set *set, const char *spec_text, struct str value,
	struct str surrogate, struct cloche_err *err)
{
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};

	must(secret_spec_parse(str_from(spec_text), &spec, NULL) == 0);
	return secret_set_add(set, &spec, value, surrogate, err);
}

static void test_set(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	const struct masked_secret *m;
	struct host host;

	check_int(add(set, "A@*.x.com", STR("ghp_0123456789abcdef"), STR_NULL, NULL), 0);
	check_int(add(set, "B@y.com,z.com:x-b", STR("value-of-b-1"), STR_NULL, NULL), 0);
	check_int(secret_set_count(set), 2);
	m = secret_set_find(set, STR("B"));
	must(m && m == secret_set_get(set, 1));
	check_str(secret_reveal(m->value), "value-of-b-1");
	check_int(m->surrogate.n, 12);
	check(!secret_set_find(set, STR("C")) && !secret_set_find(set, STR("")));
	must(host_parse(STR("a.x.com"), &host) == 0);
	check(masked_secret_covers(secret_set_get(set, 0), &host) &&
		!masked_secret_covers(m, &host));
	must(host_parse(STR("x.com"), &host) == 0);
	check(!masked_secret_covers(secret_set_get(set, 0), &host));
	must(host_parse(STR("Z.com."), &host) == 0);
	check(masked_secret_covers(m, &host));
}

static void test_refusals(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(add(set, "A@x.com", STR("real-value-a"), STR("surrogate-aa"), NULL) == 0);
	check_int(add(set, "A@x.com", STR("real-value-2"), STR_NULL, &err), -E_CONFIG);
	check(strstr(err.message, "there twice") != NULL);
	check_int(add(set, "B@x.com", STR("short"), STR_NULL, &err), -E_CONFIG);
	check_int(add(set, "B@x.com", STR("two\nlines of it"), STR_NULL, &err), -E_CONFIG);
	/* surrogates that say something or collide */
	check(add(set, "B@x.com", STR("real-value-b"), STR("real-value-b"), NULL) < 0);
	check(add(set, "B@x.com", STR("real-value-b"), STR("surrogate-aa"), NULL) < 0);
	check(add(set, "B@x.com", STR("real-value-b"), STR("real-value-a"), NULL) < 0);
	check(add(set, "B@x.com", STR("real-value-b"), STR("too-short"), NULL) < 0);
	check(add(set, "B@x.com", STR("real-value-b"), STR("with space!!"), NULL) < 0);
	check(add(set, "B@x.com", STR("real-value-bb"), STR("surrogate-aaX"), NULL) < 0);
	check(add(set, "B@x.com", STR("real-val"), STR("ogate-aa"), NULL) < 0);
	/* a value that holds another's surrogate, or is part of one */
	check(add(set, "B@x.com", STR("x-surrogate-aa-x"), STR_NULL, NULL) < 0);
	check(add(set, "B@x.com", STR("surrogate-a"), STR_NULL, NULL) < 0);
	check_int(secret_set_count(set), 1);
	check_int(add(set, "B@x.com", STR("real-value-b"), STR("surrogate-bb"), NULL), 0);
	/* the same value under two names is fine */
	check_int(add(set, "C@x.com", STR("real-value-b"), STR_NULL, NULL), 0);
}

static void test_bad_specs(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();
	char name[] = "A", scope[] = "X.com", header[] = "Authorization", host_header[] = "host";
	char *scopes[] = {scope, NULL}, *headers[] = {header, NULL};
	struct secret_spec spec = {.name = name, .scopes = scopes, .headers = headers};

	check(secret_set_add(set, &spec, STR("12345678"), STR_NULL, NULL) < 0); /* not canonical */
	scope[0] = 'x';
	check(secret_set_add(set, &spec, STR("12345678"), STR_NULL, NULL) < 0);
	header[0] = 'a';
	spec.scopes = NULL;
	check(secret_set_add(set, &spec, STR("12345678"), STR_NULL, NULL) < 0);
	spec.scopes = scopes;
	headers[0] = host_header;
	check(secret_set_add(set, &spec, STR("12345678"), STR_NULL, NULL) < 0);
	headers[0] = header;
	name[0] = '1';
	check(secret_set_add(set, &spec, STR("12345678"), STR_NULL, NULL) < 0);
	name[0] = 'A';
	check_int(secret_set_add(set, &spec, STR("12345678"), STR_NULL, NULL), 0);
}

/* Many values of little room: none contains another's surrogate, and the limit holds. */
static void test_many(void)
{
	_cleanup_(secret_set_freep) struct secret_set *set = secret_set_new();

	for (int i = 0; i < SECRET_SET_MAX; i++) {
		char spec[32], value[16];

		(void)snprintf(spec, sizeof(spec), "K%d@x.com", i);
		(void)snprintf(value, sizeof(value), "%08d", i);
		must(add(set, spec, str_from(value), STR_NULL, NULL) == 0);
	}
	check(add(set, "MORE@x.com", STR("12345678"), STR_NULL, NULL) < 0);
	for (size_t i = 0; i < SECRET_SET_MAX; i++)
		for (size_t j = 0; j < SECRET_SET_MAX; j++) {
			struct str s = secret_set_get(set, i)->surrogate;
			struct str other = secret_set_get(set, j)->surrogate;
			struct str value = secret_reveal(secret_set_get(set, j)->value);

			check(!str_eq(s, value) && (i == j || !str_eq(s, other)));
		}
}

static const char *surrogate_of(const struct secret_set *set, const char *name)
{
	return secret_set_find(set, str_from(name))->surrogate.p;
}

static void settled(struct secret_set *set, uint8_t first_of_key, const char *context)
{
	const uint8_t key[SHA256_BYTES] = {first_of_key};

	must(add(set, "A@x.com", STR("sk-ant-api03-0123456789abcdefABCDEF-_"), STR_NULL, NULL) ==
		0);
	must(add(set, "B@x.com", STR("ghp_0123456789abcdefABCDEF"), STR_NULL, NULL) == 0);
	must(secret_set_settle(set, key, str_from(context), NULL) == 0);
}

/* The same secret for the same purpose has the same surrogate, and no other has. */
static void test_settle(void)
{
	_cleanup_(secret_set_freep) struct secret_set *one = secret_set_new(),
						      *again = secret_set_new(),
						      *key = secret_set_new(),
						      *context = secret_set_new();

	settled(one, 1, "project");
	settled(again, 1, "project");
	settled(key, 2, "project");
	settled(context, 1, "other");
	check_z(surrogate_of(one, "A"), surrogate_of(again, "A"));
	check_z(surrogate_of(one, "B"), surrogate_of(again, "B"));
	check(strcmp(surrogate_of(one, "A"), surrogate_of(key, "A")) != 0);
	check(strcmp(surrogate_of(one, "A"), surrogate_of(context, "A")) != 0);
	check(strncmp(surrogate_of(one, "A"), "sk-ant-", 7) == 0);
	check_int(strlen(surrogate_of(one, "A")), strlen("sk-ant-api03-0123456789abcdefABCDEF-_"));
	check(strncmp(surrogate_of(one, "B"), "ghp_", 4) == 0);
	/* Another value of the same name has another one. */
	secret_set_shrink(again, 1);
	must(add(again, "B@x.com", STR("ghp_0123456789abcdefABCDEX"), STR_NULL, NULL) == 0);
	must(secret_set_settle(again, (const uint8_t[SHA256_BYTES]){1}, STR("project"), NULL) == 0);
	check_z(surrogate_of(one, "A"), surrogate_of(again, "A"));
	check(strcmp(surrogate_of(one, "B"), surrogate_of(again, "B")) != 0);
	/* The same value under two names is told apart. */
	must(add(again, "C@x.com", STR("ghp_0123456789abcdefABCDEX"), STR_NULL, NULL) == 0);
	must(secret_set_settle(again, (const uint8_t[SHA256_BYTES]){1}, STR("project"), NULL) == 0);
	check(strcmp(surrogate_of(again, "B"), surrogate_of(again, "C")) != 0);
}

int main(void)
{
	run_test(test_settle);
	run_test(test_spec);
	run_test(test_set);
	run_test(test_refusals);
	run_test(test_bad_specs);
	run_test(test_many);
	return tap_done();
}
