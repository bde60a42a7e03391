/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ports of this machine that lead into a sandbox. */

#include "client/client.h"
#include "sandbox/sandbox.h"

/* Listen on an address of loopback; port 0: any. Return the socket, or a negative code. */
_warn_unused_ int ports_listen(
	const char *address, uint16_t port, uint16_t *ret_port, struct cloche_err *err);
/* If sb publishes any: wait until its room is made, and forward them for as long as it lives. */
_warn_unused_ int ports_publish(
	const cloche_sandbox *sb, struct client *client, struct cloche_err *err);
