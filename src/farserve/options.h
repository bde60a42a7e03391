/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The command line of the service. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { OPTIONS_SESSIONS_MAX = 1000, OPTIONS_TOKEN_MIN = 16, OPTIONS_TOKEN_MAX = 4096 };

struct options {
	struct sockaddr_storage addr;
	socklen_t addr_n;
	bool is_loopback;
	const char *token_file; /* borrowed; NULL: none */
	uint64_t sleep_usec;    /* a session without calls is forgotten after that */
	unsigned sessions_max;
	bool no_room, try_room; /* code has none; it has one if that can be had */
};

/* Read the arguments into ret. Return 0, 1 if --help was asked for, or a negative error. */
_warn_unused_ int options_read(struct options *ret, int argc, char **argv, struct cloche_err *err);
/* What --help prints. */
extern const char options_help[];
