/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strset.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>

static void has_what_was_added(void)
{
	_cleanup_(strset_done) struct strset set = {0};
	char text[] = "abc";

	check(!strset_has(&set, STR("abc")) && !strset_has(&set, STR_NULL));
	check_int(strset_count(&set), 0);
	check_int(strset_add(&set, str_from(text)), 0);
	text[0] = 'x'; /* it was copied */
	check(strset_has(&set, STR("abc")) && !strset_has(&set, STR("xbc")));
	check(!strset_has(&set, STR("ab")) && !strset_has(&set, STR("abcd")));
	check_int(strset_add(&set, STR("abc")), 0);
	check_int(strset_count(&set), 1);
	check_int(strset_add(&set, STR("a\0b")), 0);
	check(strset_has(&set, STR("a\0b")) && !strset_has(&set, STR("a")));
	check_int(strset_add(&set, STR_NULL), 0);
	check(strset_has(&set, STR("")));
	check_int(strset_count(&set), 3);
	strset_done(&set);
	check_int(strset_count(&set), 0);
	check_int(strset_add(&set, STR("abc")), 0);
	check(strset_has(&set, STR("abc")));
}

static void holds_many(void)
{
	_cleanup_(strset_done) struct strset set = {0};

	for (uint32_t i = 0; i < 5000; i++)
		must(strset_add(&set, str_make(&i, sizeof(i))) == 0);
	check_int(strset_count(&set), 5000);
	for (uint32_t i = 0; i < 10000; i++)
		must(strset_has(&set, str_make(&i, sizeof(i))) == (i < 5000));
}

static void add_two(void)
{
	_cleanup_(strset_done) struct strset set = {0};
	int r = strset_add(&set, STR("one"));

	if (r == 0)
		r = strset_add(&set, STR("two"));
	check(r == 0 || (r == -ENOMEM && torture_failed));
	check(strset_has(&set, STR("two")) == (r == 0));
}

static void survives_a_lack_of_memory(void)
{
	torture(add_two);
}

int main(void)
{
	run_test(has_what_was_added);
	run_test(holds_many);
	run_test(survives_a_lack_of_memory);
	return tap_done();
}
