/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"
#include "ipc/exec.h"
#include "tap.h"

static char true_name[] = "true";

static void set(struct exec_spec *s, const char *variable, const char *cwd)
{
	char *argv[] = {true_name, NULL}, *copy = variable ? strdup(variable) : NULL;
	char *env[] = {copy, NULL};

	exec_spec_init(s);
	must(exec_spec_set(s, argv, env, cwd, NULL) == 0);
	free(copy);
}

static void checks_how_many_are_unset(void)
{
	_cleanup_(freep) char **names = calloc(EXEC_MAX_ARGS + 1, sizeof(char *));
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct exec_spec s;

	must(names);
	set(&s, NULL, NULL);
	must(strv_add(&s.unset, STR("A")) == 0);
	check_int(exec_spec_check(&s, &err), 0);
	s.unset = strv_free(s.unset);
	for (int i = 0; i < EXEC_MAX_ARGS; i++)
		names[i] = true_name;
	must(strv_copy(names, &s.unset) == 0);
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	exec_spec_done(&s);
}

static void checks_what_it_is_given(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct exec_spec s;

	set(&s, "A=1", "/");
	check_int(exec_spec_check(&s, &err), 0);
	exec_spec_done(&s);
	set(&s, "A=", NULL);
	check_int(exec_spec_check(&s, &err), 0);
	exec_spec_done(&s);
	set(&s, "NOVALUE", NULL);
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	check(strstr(err.message, "NOVALUE"));
	exec_spec_done(&s);
	set(&s, "=x", NULL);
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	exec_spec_done(&s);
	set(&s, NULL, "relative");
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	check(strstr(err.message, "relative"));
	exec_spec_done(&s);
	checks_how_many_are_unset();
	exec_spec_init(&s);
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	set(&s, NULL, NULL);
	s.uid = UINT32_MAX;
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	s.uid = 0;
	s.umask = 01000;
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	s.umask = 0;
	s.rows = EXEC_MAX_DIMENSION + 1;
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	exec_spec_done(&s);
}

static void holds_the_kernels_limits(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	char *big = malloc(EXEC_MAX_ARG + 1), *argv[] = {true_name, big, NULL};
	struct exec_spec s;

	must(big);
	memset(big, 'a', EXEC_MAX_ARG);
	big[EXEC_MAX_ARG] = '\0';
	exec_spec_init(&s);
	must(exec_spec_set(&s, argv, NULL, NULL, NULL) == 0);
	check_int(exec_spec_check(&s, &err), -E_USAGE);
	big[EXEC_MAX_ARG - 1] = '\0';
	must(exec_spec_set(&s, argv, NULL, NULL, NULL) == 0);
	check_int(exec_spec_check(&s, &err), 0);
	exec_spec_done(&s);
	free(big);
}

static void an_argument_with_a_nul_is_malformed(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	struct wire_out w = wire_out(&b);
	struct wire_in r;
	struct exec_spec s;

	wire_put_u32(&w, 1);
	wire_put_str(&w, STR("tr\0ue"));
	wire_put_u32(&w, 0);
	must(w.error == 0);
	r = wire_in(buf_str(&b));
	check(!message_take(&r, exec_spec_message(), &s));
	exec_spec_done(&s);
}

int main(void)
{
	run_test(checks_what_it_is_given);
	run_test(holds_the_kernels_limits);
	run_test(an_argument_with_a_nul_is_malformed);
	return tap_done();
}
