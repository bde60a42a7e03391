/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The side of a sandboxed network that faces its room. The gateway takes captured connections,
 * answers DNS, terminates the room's TLS, parses what the room sends, and asks the broker for
 * everything. It holds no secret and no policy, and makes no connection of its own. */

#include "base/err.h"
#include "gateway/limits.h"

struct gateway;

struct gateway_config {
	int supervisor_fd, broker_fd;        /* both are taken, also on failure */
	const struct gateway_limits *limits; /* borrowed; NULL: gateway_limits_default */
};

/* Make the key and queue the greeting to the broker. Open everything that will ever be opened.
 * Return 0 or set err. */
_warn_unused_ int gateway_new(
	const struct gateway_config *config, struct gateway **ret, struct cloche_err *err);
/* Tell the supervisor that the gateway is ready, and run until the supervisor or the broker goes
 * away. Return 0 or set err. */
_warn_unused_ int gateway_run(struct gateway *g, struct cloche_err *err);
struct gateway *gateway_free(struct gateway *g);
DEFINE_CLEANUP(struct gateway, gateway_free)

/* The whole program, with descriptors as in ipc/helper.h. Return its exit status. */
int gateway_program(void);
