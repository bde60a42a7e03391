/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "base/near.h"
#include "tap.h"

static const char *nearest(const char *name)
{
	static const char *const names[] = {"workdir", "workspace", "allow", "run", "state"};
	struct near best = {0};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		near_try(str_from(name), names[i], &best);
	return best.name;
}

static void test_near(void)
{
	check_z(nearest("alow"), "allow");
	check_z(nearest("rnu"), "run");
	check_z(nearest("worksapce"), "workspace");
	check_z(nearest("workd"), "workdir"); /* incomplete */
	check(!nearest("gpt"));
	check(!nearest(""));
	check(!nearest("a-name-that-is-much-longer-than-all-that-there-is"));
}

int main(void)
{
	run_test(test_near);
	return tap_done();
}
