/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The broker of one network: it alone holds policy, secrets and the key of the certificate
 * authority, and it alone writes to origins. What it is asked for comes from a gateway that it does
 * not trust, as typed requests (ipc/netchan.h); every value is judged again here. */

#include "base/err.h"

/* Descriptors that the program is started with. */
struct broker_fds {
	int supervisor; /* ipc/helper.h; its end ends the broker */
	int net;        /* ipc/netchan.h, to the gateway */
	int conf;       /* ipc/netconf.h, to the client */
	int cert;       /* pipe: the authority's certificate is written there first of all */
};

/* Runs until the supervisor or the gateway goes away. Takes the descriptors. Returns the exit
 * status of the program; err says why if that is not 0. */
int broker_run(const struct broker_fds *fds, struct cloche_err *err);
