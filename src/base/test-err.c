/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/str.h"
#include "tap.h"

#include <errno.h>

static void sets_and_wraps(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(err_sys(&err, ENOENT, "mount %s", "/workspace"), -E_SYSTEM);
	check_int(err.code, E_SYSTEM);
	check_int(err.sys_errno, ENOENT);
	check_z(err.message, "mount /workspace: No such file or directory");
	check_int(err_wrap(&err, -E_SYSTEM, "create sandbox %s", "s-1"), -E_SYSTEM);
	check_z(err.message, "create sandbox s-1: mount /workspace: No such file or directory");
	check_int(err.sys_errno, ENOENT);
	err_hint(&err, "make %s first", "it");
	err_hint(&err, "a later and vaguer hint");
	check_z(err.hint, "make it first");
	check_int(err_set(&err, E_CONFIG, "bad %c", 'x'), -E_CONFIG);
	check_z(err.message, "bad x");
	check_z(err.hint, "");
	check_int(err.sys_errno, 0);
	check_int(err_nomem(&err), -E_NO_MEMORY);
	check_int(err_sys(&err, ENOMEM, "fork"), -E_NO_MEMORY);
	check(err_is_code(E_USAGE) && err_is_code(E_IMAGE));
	check(!err_is_code(0) && !err_is_code(ENOENT) && !err_is_code(E_IMAGE + 1));
	err_clear(&err);
	check_int(err.code, 0);
	check_z(err.message, "");
}

static void works_without_an_object(void)
{
	check_int(err_set(NULL, E_LIMIT, "x"), -E_LIMIT);
	check_int(err_sys(NULL, EPERM, "x"), -E_SYSTEM);
	check_int(err_nomem(NULL), -E_NO_MEMORY);
	check_int(err_wrap(NULL, -E_NOT_FOUND, "x"), -E_NOT_FOUND);
	err_hint(NULL, "x");
	err_clear(NULL);
}

static void long_messages_are_cut(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	char long_text[3000];

	memset(long_text, 'y', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	check_int(err_sys(&err, EIO, "%s", long_text), -E_SYSTEM);
	check_int(strlen(err.message), sizeof(err.message) - 1);
	check_int(err_wrap(&err, -E_SYSTEM, "ctx"), -E_SYSTEM);
	check(str_starts(str_from(err.message), STR("ctx: yyy")));
	check_int(strlen(err.message), sizeof(err.message) - 1);
	/* A context that leaves no room is left out; the cause stays. */
	check_int(err_wrap(&err, -E_SYSTEM, "%s", long_text), -E_SYSTEM);
	check(str_starts(str_from(err.message), STR("ctx: yyy")));
	err_hint(&err, "%s", long_text);
	check_int(strlen(err.hint), sizeof(err.hint) - 1);
}

int main(void)
{
	run_test(sets_and_wraps);
	run_test(works_without_an_object);
	run_test(long_messages_are_cut);
	return tap_done();
}
