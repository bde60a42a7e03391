/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Configures the broker of a sandbox. Policy, secrets and logs are sent to it over a separate
 * socket, and it answers whether it has accepted them. */

#include "client/client.h"
#include "ipc/netconf.h"
#include "sandbox/sandbox.h"

enum { NETWORK_OUT_MAX = 64 << 20 }; /* bytes of a configuration that wait to be sent */

struct network {
	struct client *client;
	struct loop_io io; /* in the client's loop until the broker goes away */
	struct chan chan;
	bool open, accepted;
	bool recorded; /* it has a cassette, which is removed if the network is refused */
	struct netconf_counts counts;
};

/* Take config_fd and queue the whole configuration, which is sent while the client waits. It
 * includes a cassette to record requests, if the sandbox is recorded, or a record that answers
 * them, if one was named. */
_warn_unused_ int network_start(struct network *n, struct client *client, const cloche_sandbox *sb,
	int config_fd, struct cloche_err *err);

/* Return whether something is configured that only the broker can check: certificates, an App's
 * key, a record that answers, or whether the secrets are too long together. */
bool network_may_be_refused(const cloche_sandbox *sb);

/* Make the files of the network log, unless they exist, and add their real paths to *ret (a list of
 * strv.h). Devices are left out. */
_warn_unused_ int network_log_files(const cloche_sandbox *sb, char ***ret, struct cloche_err *err);

/* Queue an allowlist as the texts that it was built from. NULL is an empty one. Return 0 or
 * -errno. */
_warn_unused_ int network_send_allowlist(struct chan *c, const cloche_allowlist *list);

/* After the sandbox has ended: wait a moment for the broker's last messages and read them. */
void network_finish(struct network *n);
void network_done(struct network *n);
