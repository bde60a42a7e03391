/* SPDX-License-Identifier: Apache-2.0 */
/* Says which providers work here, and when what crashed sandboxes left was last removed. */
#include <cloche/status.h>
#include <stdio.h>

static void print(const cloche_provider_status *p, void *user)
{
	printf("%s: %s\n", p->name, p->available ? "works" : p->reason);
}

int main(void)
{
	cloche_cleanup_status cleanup;
	cloche_err err = CLOCHE_ERR_INIT;

	cloche_provider_each(print, NULL);
	if (cloche_cleanup_read(&cleanup, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	printf("last cleanup: %llu\n", (unsigned long long)cleanup.at_us);
	if (cleanup.error_us)
		printf("last error: %s\n", cleanup.error);
	return 0;
}
