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

/* The files of the network log, opened once; -1: there is none. A room may write where they lie. */
struct network_logs {
	int plain, json;
};
#define NETWORK_LOGS_NULL ((struct network_logs){-1, -1})

/* Open them, or make them, if the sandbox has a gateway and a log. Call network_logs_close() also
 * after an error. */
_warn_unused_ int network_logs_open(
	const cloche_sandbox *sb, struct network_logs *l, struct cloche_err *err);
void network_logs_close(struct network_logs *l);

/* Take config_fd and queue the whole configuration, which is sent while the client waits. It
 * includes a cassette to record requests, if the sandbox is recorded, or a record that answers
 * them, if one was named. */
_warn_unused_ int network_start(struct network *n, struct client *client, const cloche_sandbox *sb,
	const struct network_logs *logs, int config_fd, struct cloche_err *err);

/* Return whether something is configured that only the broker can check: certificates, an App's
 * key, a record that answers, or whether the secrets are too long together. */
bool network_may_be_refused(const cloche_sandbox *sb);

/* Queue an allowlist as the texts that it was built from. NULL is an empty one. Return 0 or
 * -errno. */
_warn_unused_ int network_send_allowlist(struct chan *c, const cloche_allowlist *list);

/* After the sandbox has ended: wait a moment for the broker's last messages and read them. */
void network_finish(struct network *n);
void network_done(struct network *n);
