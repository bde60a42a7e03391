/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/program.h"

#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "compact") == 0)
		return compactor_program(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "remove") == 0)
		return remover_program(argv[2]);
	return recorder_program();
}
