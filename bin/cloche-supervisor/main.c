/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/program.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* cloche-supervisor [--detached] [SOURCES] */
int main(int argc, char **argv)
{
	bool detached = argc > 1 && strcmp(argv[1], "--detached") == 0;
	int at = detached ? 2 : 1;
	unsigned long sources = argc > at ? strtoul(argv[at], NULL, 10) : 0;

	return supervisor_program(sources < INT_MAX / 2 ? (unsigned)sources : 0, detached);
}
