/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/surrogate.h"

#include "base/macro.h"
#include "tap.h"
#include <ctype.h>

static const struct {
	const char *value, *prefix;
	/* Bytes that may occur behind the prefix. */
	const char *alphabet;
} shapes[] = {
	{"ghp_abcDEF0123456789abcDEF0123456789abzZ", "ghp_",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"},
	{"github_pat_11ABCDEFG0_zzzzzzzz", "github_pat_",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"},
	{"sk-ant-api03-AbCdEfGhIjKl_MnOp-zZ99", "sk-ant-",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"},
	{"sk-zzzzzzzz9", "sk-", "abcdefghijklmnopqrstuvwxyz0123456789"},
	{"AKIAIOSFODNN7EXAMPLE", "AKIA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"},
	{"0123456789", "", "0123456789"},
	{"deadbeef0123", "", "abcdef0123456789"},
	{"DEADBEEF0123", "", "ABCDEF0123456789"},
	{"onlylowercase", "", "abcdefghijklmnopqrstuvwxyz"},
	{"wJalrXUtnFEMI/K7MDENG+bPxRfiCY", "",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/+"},
	{"p@ss w0rd!\"'$", "", "abcdefghijklmnopqrstuvwxyz0123456789"},
	{"!!!!!!!!!!", "", "abcdefghijklmnopqrstuvwxyz0123456789"},
	{"gr\xc3\xbc\xc3\x9f gott", "", "abcdefghijklmnopqrstuvwxyz"},
	/* too little behind the prefix: all is drawn */
	{"ghp_1234", "", "abcdefghijklmnopqrstuvwxyz0123456789_"},
	{"a......b", "", "abcdef"},
};

static void test_shapes(void)
{
	char s[64];

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct str value = str_from(shapes[i].value);
		size_t prefix = strlen(shapes[i].prefix);

		for (int round = 0; round < 200; round++) {
			surrogate_make(value, s);
			s[value.n] = '\0';
			check(memcmp(s, value.p, value.n) != 0);
			check(strncmp(s, shapes[i].prefix, prefix) == 0);
			if (strspn(s + prefix, shapes[i].alphabet) != value.n - prefix)
				tap_fail("%s: %s", shapes[i].value, s);
			check(isalnum((unsigned char)s[prefix]));
			check(isalnum((unsigned char)s[value.n - 1]));
		}
	}
}

static void test_kept_places(void)
{
	char s[64];

	for (int round = 0; round < 200; round++) {
		surrogate_make(STR("eyJhbGci.eyJzdWIi.c2lnbmF0"), s);
		check(s[8] == '.' && s[17] == '.');
		check(memchr(s, '.', 8) == NULL);
		surrogate_make(STR("QUJDREVGR0g9PQ=="), s);
		check(s[14] == '=' && s[15] == '=' && memchr(s, '=', 14) == NULL);
	}
}

/* All letters come at every drawn place: nothing of the value shines through. */
static void test_uniform(void)
{
	unsigned seen[16][256] = {{0}};
	char s[16];

	for (int round = 0; round < 20000; round++) {
		surrogate_make(STR("aaaaaaaaaaaaaaaz"), s);
		for (size_t i = 0; i < sizeof(s); i++)
			seen[i][(unsigned char)s[i]]++;
	}
	/* The first byte is never the value's own. */
	check_int(seen[0]['a'], 0);
	for (size_t i = 0; i < sizeof(s); i++)
		for (int c = i == 0 ? 'b' : 'a'; c <= 'z'; c++)
			if (seen[i][c] < 500 || seen[i][c] > 1100) /* 769 expected, sd 27 */
				tap_fail("place %zu: '%c' %u times", i, c, seen[i][c]);
}

/* Where slashes stay, because they are written \/, not all the rest may be the value's by chance.
 */
static void test_differs_beside_slashes(void)
{
	char s[10];

	for (int round = 0; round < 5000; round++) {
		surrogate_make(STR("/a/b/c//d/"), s);
		check(s[0] != '/' && s[1] != 'a');
		surrogate_make(STR("%/\\\"/%%/e"), s);
		check(s[8] != 'e');
		surrogate_make(STR("%%%%%%%%%%"), s);
		surrogate_make(STR("//////////"), s);
	}
}

/* Every session token has the same look, whatever the real one has. */
static void test_token(void)
{
	static const char alphabet[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const struct str values[] = {
		STR("IQoJb3JpZ2luX2VjEREAL//wEaCXVz=="), STR("//////////"), STR("0")};
	char s[SURROGATE_TOKEN_LEN + 1];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		for (int round = 0; round < 500; round++) {
			memset(s, 0, sizeof(s));
			surrogate_make_token(values[i], s);
			check_int(strspn(s, alphabet), SURROGATE_TOKEN_LEN);
			check(s[0] != values[i].p[0]);
		}
}

static void test_check(void)
{
	static const struct {
		struct str value;
		const char *message; /* NULL: fine */
	} cases[] = {
		{STR("12345678"), NULL},
		{STR("with space inside"), NULL},
		{STR("gr\xc3\xbc\xc3\x9f"
		     "e-xx"),
			NULL},
		{STR(""), "has 0 bytes"},
		{STR("1234567"), "has 7 bytes"},
		{STR("12345678\n"), "line break"},
		{STR("1234\r5678"), "line break"},
		{STR("1234\0005678"), "control byte"},
		{STR("1234\x1b[0m5678"), "control byte"},
		{STR("1234\x7f"
		     "5678"),
			"control byte"},
		{STR(" 12345678"), "space"},
		{STR("12345678 "), "space"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		int r = surrogate_check_value("KEY", cases[i].value, &err);

		check_int(r, cases[i].message ? -E_CONFIG : 0);
		if (cases[i].message && !strstr(err.message, cases[i].message))
			tap_fail("%s", err.message);
		/* What is too short says what to do: such a file may have worked elsewhere. */
		if (cases[i].value.n < SURROGATE_MIN)
			check(strstr(err.hint, "longer"));
		if (cases[i].message && cases[i].value.n > 0)
			check(!strstr(err.message, "1234"));
	}
}

int main(void)
{
	run_test(test_shapes);
	run_test(test_kept_places);
	run_test(test_uniform);
	run_test(test_differs_beside_slashes);
	run_test(test_token);
	run_test(test_check);
	return tap_done();
}
