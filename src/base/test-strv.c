/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"
#include "tap.h"

static void test_arrays_grow_and_copy(void)
{
	_cleanup_(strv_freep) char **v = NULL, **copy = NULL;

	check_int(strv_count(NULL), 0);
	check_int(strv_add(&v, STR("one")), 0);
	check_int(strv_add(&v, STR("")), 0);
	check_int(strv_take(&v, strdup("three")), 0);
	check(strv_take(&v, NULL) < 0);
	check_int(strv_count(v), 3);
	check_int(strv_copy(v, &copy), 0);
	check(copy != v && copy[0] != v[0]);
	check_z(copy[2], "three");
	check(!copy[3]);
	check(!strv_free(NULL));
}

static void test_an_empty_array_copies_to_an_empty_one(void)
{
	char **copy = NULL;

	check_int(strv_copy(NULL, &copy), 0);
	check(!copy);
}

static void test_variables_are_set_once(void)
{
	_cleanup_(strv_freep) char **env = NULL;

	check_int(strv_env_set(&env, "A", "1"), 0);
	check_int(strv_env_set(&env, "AB", "2"), 0);
	check_int(strv_env_set(&env, "A", "3=4"), 0);
	check_int(strv_count(env), 2);
	check_z(strv_env_get(env, "A"), "3=4");
	check_z(strv_env_get(env, "AB"), "2");
	check_z(strv_env_get(env, "B"), NULL);
	check_z(strv_env_get(NULL, "A"), NULL);
	strv_env_unset(env, "B");
	check_int(strv_count(env), 2);
	strv_env_unset(env, "A");
	check_int(strv_count(env), 1);
	check_z(strv_env_get(env, "AB"), "2");
	strv_env_unset(env, "AB");
	check_int(strv_count(env), 0);
	strv_env_unset(NULL, "A");
}

static void test_a_string_is_replaced(void)
{
	_cleanup_(freep) char *s = NULL;

	check_int(set_string(&s, "a", NULL), 0);
	check_int(set_string(&s, "bc", NULL), 0);
	check_z(s, "bc");
	check_int(set_string(&s, NULL, NULL), 0);
	check(!s);
}

int main(void)
{
	run_test(test_arrays_grow_and_copy);
	run_test(test_an_empty_array_copies_to_an_empty_one);
	run_test(test_variables_are_set_once);
	run_test(test_a_string_is_replaced);
	return tap_done();
}
