/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/program.h"

#include <string.h>

int main(int argc, char **argv)
{
	return supervisor_program(argc == 2 && strcmp(argv[1], "--detached") == 0);
}
