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

static void defaults_give_way(void)
{
	static const struct {
		const char *env[4], *defaults[4], *after[4];
	} rows[] = {
		{{"A=1"}, {"TZ=UTC", "A=2"}, {"A=1", "TZ=UTC"}},
		{{"LANG=C.UTF-8"}, {"LANG=de", "LC_ALL=fr"}, {"LANG=de", "LC_ALL=fr"}},
		{{"LANG=it"}, {"LANG=de", "LC_ALL=fr", "TZ=UTC"}, {"LANG=it", "TZ=UTC"}},
		{{"LC_TIME=it"}, {"LANG=de", "LANGUAGE=de"}, {"LC_TIME=it"}},
		{{NULL}, {"no variable", "TZ=UTC"}, {"TZ=UTC"}},
		{{"A=1"}, {NULL}, {"A=1"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(strv_freep) char **env = NULL;
		size_t n = 0;

		for (; rows[i].env[n]; n++)
			must(strv_add(&env, str_from(rows[i].env[n])) == 0);
		check_int(exec_env_default(&env, (char *const *)(uintptr_t)rows[i].defaults), 0);
		for (n = 0; rows[i].after[n]; n++)
			check_z(env && env[n] ? env[n] : "", rows[i].after[n]);
		check(!env || !env[n]);
	}
}

int main(void)
{
	run_test(checks_what_it_is_given);
	run_test(holds_the_kernels_limits);
	run_test(an_argument_with_a_nul_is_malformed);
	run_test(defaults_give_way);
	return tap_done();
}
