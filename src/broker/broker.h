/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The broker of one network. Only this process holds the policy, the secrets and the key of the
 * certificate authority, and only this process writes to origins. Its requests come from a
 * gateway that it does not trust, as typed messages (ipc/netchan.h), so every value is checked
 * again here. */

#include "base/err.h"

/* Descriptors that the program is started with. */
struct broker_fds {
	int supervisor; /* ipc/helper.h; the broker ends when it is closed */
	int net;        /* ipc/netchan.h, to the gateway */
	int conf;       /* ipc/netconf.h, to the client */
	int cert;       /* pipe: the authority's certificate is written there first */
};

/* Run until the supervisor or the gateway goes away. Takes the descriptors. Return the exit status
 * of the program; err says why if that is not 0. */
int broker_run(const struct broker_fds *fds, struct cloche_err *err);
