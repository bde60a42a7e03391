/* SPDX-License-Identifier: Apache-2.0 */
/* Asks whether a sandbox can be made on this machine; with two words, PROVIDER PLACE, there. */
#include <cloche/doctor.h>
#include <stdio.h>

static void show(const cloche_check *check, void *user)
{
	(void)user;
	printf("%s %s: %s\n", check->state == CLOCHE_CHECK_OK ? "+" : "-", check->name,
		check->detail);
}

int main(int argc, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	int r = argc == 3 ? cloche_doctor(argv[1], argv[2], show, NULL, &err)
			  : cloche_doctor(NULL, NULL, show, NULL, &err);

	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	return r < 0 ? 1 : r;
}
