/* SPDX-License-Identifier: Apache-2.0 */
#include "base/account.h"
#include "tap.h"

static const char text[] = "root:x:0:0:root:/root:/bin/sh\n"
			   "broken\n"
			   "minus:x:-1:0::/:\n"
			   "huge:x:4294967295:0::/:\n"
			   "7:x:12:13::/seven\n"
			   "app:x:1000:1001::/home/app:/bin/sh\n"
			   "twin:x:1000:1002::/home/twin:/bin/sh\n"
			   "bare:x:9";

static bool find(const char *name, struct str ret[ACCOUNT_FIELDS])
{
	return account_find(str_from(text), str_from(name), ret);
}

static void finds(void)
{
	struct str f[ACCOUNT_FIELDS];

	check(find("app", f) && str_eq(f[ACCOUNT_HOME], STR("/home/app")));
	check(str_eq(f[ACCOUNT_ID], STR("1000")) && str_eq(f[ACCOUNT_GROUP], STR("1001")));
	check(find("1000", f) && str_eq(f[ACCOUNT_NAME], STR("app")));
	check(find("12", f) && str_eq(f[ACCOUNT_NAME], STR("7")));
	check(find("bare", f) && f[ACCOUNT_HOME].n == 0);
}

static void finds_nothing_else(void)
{
	struct str f[ACCOUNT_FIELDS];

	/* A number is an id, also if an account has that name. */
	check(!find("7", f) && !find("ap", f) && !find("", f));
	check(!find("broken", f) && !find("minus", f) && !find("huge", f));
	check(!account_find(STR(""), STR("root"), f));
}

static void names(void)
{
	char letters[ACCOUNT_MAX_NAME + 1];

	memset(letters, 'a', sizeof(letters));
	check(account_is_name(STR("git")) && account_is_name(STR("a.b-c_1")));
	check(!account_is_name(STR("")) && !account_is_name(STR("-l")) &&
		!account_is_name(STR(".a")));
	check(!account_is_name(STR("a b")) && !account_is_name(STR("a@b")) &&
		!account_is_name(STR("a%h")));
	check(account_is_name(str_make(letters, ACCOUNT_MAX_NAME)));
	check(!account_is_name(str_make(letters, ACCOUNT_MAX_NAME + 1)));
}

int main(void)
{
	run_test(names);
	run_test(finds);
	run_test(finds_nothing_else);
	return tap_done();
}
