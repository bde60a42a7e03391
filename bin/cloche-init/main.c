/* SPDX-License-Identifier: Apache-2.0 */
#include "fileworker/serve.h"
#include "init/program.h"

#include <string.h>

int main(int argc, char **argv)
{
	/* In these modes it is not process 1, but a child that serves files or reaches a port. */
	if (argc > 1 && strcmp(argv[1], "files") == 0)
		return files_serve_main(argc, argv);
	if (argc == 3 && strcmp(argv[1], "connect") == 0)
		return connect_main(argv[2]);
	if (argc == 3 && strcmp(argv[1], "reach") == 0)
		return reach_main(argv[2]);
	if (argc > 1 && strcmp(argv[1], "room") == 0)
		return enter_main(argv + 2);
	if (argc > 1 && strcmp(argv[1], "plain") == 0)
		return plain_main(argv + 2);
	return init_program();
}
