/* SPDX-License-Identifier: Apache-2.0 */
/* Says which providers work here, whether a place answers, and when what crashed sandboxes left was
 * last removed. */
#include <cloche/status.h>
#include <stdio.h>

/* `status ssh HOST` asks that place, too. */
static int ask(char *const *argv, cloche_status **ret, cloche_err *err)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	const cloche_sandbox *const all[] = {sb};
	int r = sb ? cloche_sandbox_set(sb, "provider", argv[1], err) : -1;

	if (r == 0)
		r = cloche_sandbox_set(sb, "place", argv[2], err);
	if (r == 0)
		r = cloche_status_read(NULL, all, 1, ret, err);
	cloche_sandbox_free(sb);
	return r;
}

int main(int argc, char **argv)
{
	cloche_status *status = NULL;
	cloche_err err = CLOCHE_ERR_INIT;

	int r = argc == 3 ? ask(argv, &status, &err)
			  : cloche_status_read(NULL, NULL, 0, &status, &err);

	if (r < 0) {
		fprintf(stderr, "%s\n", err.message);
		cloche_status_free(status);
		return 1;
	}
	for (size_t i = 0; status->providers[i]; i++)
		printf("%s: %s\n", status->providers[i]->name,
			status->providers[i]->available ? "works" : status->providers[i]->reason);
	for (size_t i = 0; status->places[i]; i++)
		printf("%s: %s\n", status->places[i]->place,
			status->places[i]->answers ? "answers" : status->places[i]->reason);
	printf("%zu sandboxes run\nlast cleanup: %llu\n", status->sandboxes,
		(unsigned long long)status->cleanup_us);
	cloche_status_free(status);
	return 0;
}
