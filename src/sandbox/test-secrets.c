/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of secrets as a program or a person gives them. */
#include "sandbox/sandbox.h"
#include "tap.h"

static cloche_err err;
static const char *const hosts[] = {"api.test", NULL};

/* A token of GitHub has letters and digits of every kind. */
static void test_surrogate_of_a_github_app(void)
{
	const cloche_github_app app = {
		.app_id = "1", .installation_id = "2", .private_key = "PEM", .hosts = hosts};
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

int main(void)
{
	run_test(test_surrogate_of_a_github_app);
	return tap_done();
}
