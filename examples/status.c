/* SPDX-License-Identifier: Apache-2.0 */
/* Says which providers work here, and when what crashed sandboxes left was last removed. */
#include <cloche/status.h>
#include <stdio.h>

int main(void)
{
	cloche_status *status = NULL;
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_status_read(&status, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	for (size_t i = 0; status->providers[i]; i++)
		printf("%s: %s\n", status->providers[i]->name,
			status->providers[i]->available ? "works" : status->providers[i]->reason);
	printf("%zu sandboxes run\nlast cleanup: %llu\n", status->sandboxes,
		(unsigned long long)status->cleanup_us);
	cloche_status_free(status);
	return 0;
}
