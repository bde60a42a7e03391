/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of secrets as a program or a person gives them. */
#include "sandbox/sandbox.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static cloche_err err;
static const char *const hosts[] = {"api.test", NULL}, *const headers[] = {"Authorization", NULL};

static int add(cloche_secrets *secrets, const char *name, const char *value)
{
	return cloche_secrets_add(secrets, name, value, strlen(value), hosts, headers, false, &err);
}

static void must_add_to(cloche_sandbox *sb, const cloche_secrets *secrets)
{
	must(cloche_sandbox_add_secrets(sb, secrets, &err) == 0);
}

static void test_an_empty_value_masks_nothing(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	cloche_secrets *masked = cloche_secrets_new(), *empty = cloche_secrets_new();

	must(sb && masked && empty);
	must(add(masked, "A", "value-of-a") == 0 && add(masked, "B", "value-of-b") == 0);
	must_add_to(sb, masked);
	check_int(add(empty, "A", ""), 0);
	check_int(cloche_secrets_count(empty), 0);
	must_add_to(sb, empty);
	/* It replaces the earlier one of its name, and no other. */
	check_int(cloche_secrets_count(sb->secrets), 1);
	check_z(cloche_secrets_name(sb->secrets, 0), "B");
	check_z(strv_env_get(sb->env, "A"), "");
	/* What is wrong with any other is wrong with an empty one. */
	check_int(add(empty, "A", ""), -CLOCHE_E_CONFIG);
	check_int(add(empty, "A", "value-of-a"), -CLOCHE_E_CONFIG);
	check_int(add(masked, "B", ""), -CLOCHE_E_CONFIG);
	check_int(add(empty, "no name", ""), -CLOCHE_E_CONFIG);
	check_int(cloche_secrets_add(empty, "C", "", 0, (const char *const[]){"a b", NULL}, headers,
			  false, &err),
		-CLOCHE_E_CONFIG);
	check_int(add(empty, "C", "short"), -CLOCHE_E_CONFIG);
	cloche_secrets_free(masked);
	cloche_secrets_free(empty);
}

static void test_an_empty_value_by_name(void)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new(), *copy = NULL;
	char path[TAP_DIR_BYTES], spec[128];
	int fd = tap_file(path);

	must(sb && write(fd, "\n", 1) == 1);
	close(fd);
	setenv("TEST_EMPTY", "", 1);
	snprintf(spec, sizeof(spec), "FROM_FILE=%s@api.test", path);
	check_int(cloche_sandbox_set(sb, "secret", "TEST_EMPTY@api.test", &err), 0);
	check_int(cloche_sandbox_set(sb, "secret", "OTHER=TEST_EMPTY@api.test", &err), 0);
	check_int(cloche_sandbox_set(sb, "secret-file", spec, &err), 0);
	check_int(cloche_sandbox_set(sb, "secret", "OTHER=TEST_EMPTY@api.test", &err),
		-CLOCHE_E_CONFIG);
	copy = sandbox_copy(sb);
	must(copy);
	check_z(strv_env_get(copy->env, "TEST_EMPTY"), "");
	check_z(strv_env_get(copy->env, "OTHER"), "");
	check_z(strv_env_get(copy->env, "FROM_FILE"), "");
	check_int(cloche_secrets_count(copy->secrets), 0);
	unlink(path);
}

/* A token of GitHub has letters and digits of every kind. */
static void test_surrogate_of_a_github_app(void)
{
	const cloche_github_app app = {.size = sizeof(app),
		.app_id = "1",
		.installation_id = "2",
		.private_key = "PEM",
		.hosts = hosts};
	cloche_secrets *secrets = cloche_secrets_new();
	unsigned upper = 0, lower = 0, other = 0;
	const char *text;

	/* All of its letters are hexadecimal once in 10^16 times. */
	must(secrets && cloche_secrets_add_github_app(secrets, "T", &app, &err) == 0);
	text = cloche_secrets_surrogate(secrets, 0);
	check_int(strlen(text), 40);
	check(strncmp(text, "ghs_", 4) == 0);
	for (text += 4; *text; text++) {
		upper += *text >= 'G' && *text <= 'Z';
		lower += *text >= 'g' && *text <= 'z';
		other += !strchr(
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *text);
	}
	check(upper + lower > 0 && other == 0);
	cloche_secrets_free(secrets);
}

static void test_aws_credentials_have_the_names_that_are_asked_for(void)
{
	static const char *const wanted[] = {"MY_ID", "MY_KEY", "AWS_SESSION_TOKEN",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"};
	cloche_aws_credential c = {.size = sizeof(c),
		.access_key_id = "AKIAIOSFODNN7EXAMPLE",
		.secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		.session_token = "a-session-token-of-some-length",
		.access_key_id_name = "MY_ID",
		.secret_access_key_name = "MY_KEY",
		.hosts = hosts};
	_cleanup_(cloche_secrets_freep) cloche_secrets *secrets = cloche_secrets_new();

	must(secrets != NULL);
	check_int(cloche_secrets_add_aws(secrets, &c, &err), 0);
	c = (cloche_aws_credential){.size = sizeof(c),
		.access_key_id = "AKIAI44QH8DHBEXAMPLE",
		.secret_access_key = "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
		.hosts = hosts};
	check_int(cloche_secrets_add_aws(secrets, &c, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		check(secrets_has(secrets, wanted[i]));
}

int main(void)
{
	run_test(test_an_empty_value_masks_nothing);
	run_test(test_an_empty_value_by_name);
	run_test(test_surrogate_of_a_github_app);
	run_test(test_aws_credentials_have_the_names_that_are_asked_for);
	return tap_done();
}
