/* SPDX-License-Identifier: Apache-2.0 */
/* Shows what a sandbox was refused, until it ends: network_log ID. */
#include <cloche/network_log.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	cloche_network_log *log = NULL;
	cloche_network_entry entry;
	cloche_err err = CLOCHE_ERR_INIT;
	char *path = NULL;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: network_log ID\n");
		return 2;
	}
	r = cloche_network_log_find(argv[1], &path, &err);
	if (r == 0)
		r = cloche_network_log_open(path, &log, &err);
	free(path);
	if (r < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	while (cloche_network_log_wait(log, &err) > 0)
		while ((r = cloche_network_log_next(log, &entry, &err)) > 0)
			if (entry.blocked)
				printf("%s\n", entry.line);
	printf("%llu requests were allowed, %llu blocked\n",
		(unsigned long long)cloche_network_log_summary(log).allowed,
		(unsigned long long)cloche_network_log_summary(log).blocked);
	cloche_network_log_close(log);
	return r < 0 ? 1 : 0;
}
