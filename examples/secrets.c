/* SPDX-License-Identifier: Apache-2.0 */
/* A masked secret: the sandbox will hold the surrogate, and the real value only ever leaves towards
 * the hosts of its scope. */
#include <cloche/secrets.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	static const char *const hosts[] = {"api.github.com", NULL};
	static const char *const headers[] = {"authorization", NULL};
	static const char value[] = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
	cloche_secrets *secrets = cloche_secrets_new();
	cloche_err err = CLOCHE_ERR_INIT;
	int differs;

	if (!secrets || cloche_secrets_add(secrets, "GITHUB_TOKEN", value, strlen(value), hosts,
				headers, false, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	printf("inside, %s is %s\n", cloche_secrets_name(secrets, 0),
		cloche_secrets_surrogate(secrets, 0));
	differs = strcmp(cloche_secrets_surrogate(secrets, 0), value) != 0;
	cloche_secrets_free(secrets);
	return differs ? 0 : 1;
}
