/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Configures the broker of a sandbox: policy, secrets and logs go to it on a socket of their own,
 * and it answers whether it took them. */

#include "client/client.h"
#include "ipc/netconf.h"
#include "sandbox/sandbox.h"

enum { NETWORK_OUT_MAX = 64 << 20 }; /* of a configuration that waits to be sent */

struct network {
	struct client *client;
	struct loop_io io; /* in the client's loop until the broker goes away */
	struct chan chan;
	bool open, accepted;
	bool recorded; /* it has a cassette, which goes if the network is refused */
	struct netconf_counts counts;
};

/* Takes config_fd and queues the whole configuration; it goes out while the client waits. */
/* Puts what is requested on record if all is, and has a record answer if one was named. */
_warn_unused_ int network_start(struct network *n, struct client *client, const cloche_sandbox *sb,
	int config_fd, struct cloche_err *err);

/* Whether something is configured that the broker alone can judge: certificates, an App's key,
 * whether secrets are too long together. */
bool network_may_be_refused(const cloche_sandbox *sb);

/* Queues an allowlist, as the texts that it was built from. NULL is an empty one. 0 or -errno. */
_warn_unused_ int network_send_allowlist(struct chan *c, const cloche_allowlist *list);

/* After the sandbox has ended: reads the broker's last word, waiting a moment for it. */
void network_finish(struct network *n);
void network_done(struct network *n);
