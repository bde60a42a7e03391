/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a far room (docs/design/far.md), the process 1 of a room that the far end makes, and
 * the service that runs code for whoever asks over HTTP. */
#include "far/program.h"
#include "farserve/program.h"
#include "farside/program.h"
#include "fileworker/serve.h"
#include "init/program.h"
#include "keep.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int far_usage(void)
{
	fprintf(stderr,
		"cloche-far is started by cloche, on this machine and on others (man cloche);\n"
		"\"cloche-far serve --help\" tells of its service\n");
	return 2;
}

/* What cloche-init does, whose place this program takes in a room. */
static int far_be_init(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "files") == 0)
		return files_serve_main(argc, argv);
	if (argc == 3 && strcmp(argv[1], "connect") == 0)
		return connect_main(argv[2]);
	if (argc == 3 && strcmp(argv[1], "reach") == 0)
		return reach_main(argv[2]);
	if (argc > 1 && strcmp(argv[1], "plain") == 0)
		return plain_main(argv + 2);
	return init_program();
}

/* Rooms know it by that name. */
static bool far_is_init(const char *name)
{
	const char *slash = strrchr(name, '/');

	name = slash ? slash + 1 : name;
	return strcmp(name, "init") == 0 || strcmp(name, "cloche-init") == 0;
}

/* What is started where a room is, or will be. */
static int far_be_there(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (argc == 2 && strcmp(verb, "serve-files") == 0)
		return farside_files();
	if (argc == 2 && strcmp(verb, "probe") == 0)
		return farside_probe();
	if (argc == 3 && strcmp(verb, "start") == 0)
		return farside_start(argv[2]);
	if (argc == 4 && strcmp(verb, "hold") == 0)
		return farside_hold(argv[2], strcmp(argv[3], "rooms") == 0);
	if (argc == 3 && strcmp(verb, "attach") == 0)
		return farside_attach(argv[2]);
	if (argc == 3 && strcmp(verb, "reap") == 0)
		return farside_reap(argv[2]);
	return far_usage();
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (far_is_init(argv[0]))
		return far_be_init(argc, argv);
	if (argc == 4 && strcmp(verb, "near") == 0)
		return keep_program(argv[2], argv[3]);
	if (argc == 4 && strcmp(verb, "carry") == 0)
		return keep_lead(argv[2], argv[3]);
	if (argc == 2 && strcmp(verb, "relay") == 0)
		return far_relay_program();
	if (strcmp(verb, "serve") == 0)
		return farserve_program(argc - 2, argv + 2);
	return far_be_there(argc, argv);
}
