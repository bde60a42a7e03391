/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"
#include "cli.h"

#include <stdio.h>
#include <unistd.h>

enum { PATIENCE_USEC = 1000000 };

void progress_begin(struct progress *p)
{
	*p = (struct progress){.began = now_usec()};
}

void progress_show(uint64_t bytes, void *user)
{
	struct progress *p = user;
	char size[32], line[64];
	int n;

	if (now_usec() - p->began < PATIENCE_USEC || !isatty(STDERR_FILENO))
		return;
	format_size(bytes, size, sizeof(size));
	n = snprintf(line, sizeof(line), "\r%-12s", size);
	(void)put(STDERR_FILENO, line, (size_t)n);
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (p->shown)
		(void)put(STDERR_FILENO, "\r            \r", 14);
	p->shown = false;
}
