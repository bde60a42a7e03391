/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration that a client sends to the broker. */

#include "base/err.h"
#include "policy/host.h"
#include <stdint.h>

struct allowlist;
struct broker;
struct chan_frame;
struct config;

/* --connect-to: the address to dial for a host and port, whatever the name resolves to. */
struct override {
	struct host host;
	uint16_t port, to_port;
	char *address;
};

/* Read the configuration. broker_configured() is called when it is complete. */
_warn_unused_ int config_start(struct broker *b, struct cloche_err *err);
void config_free(struct config *c);
/* Add the rules of an ALLOWLIST or ALLOW frame. Any other frame is an error. */
_warn_unused_ int config_take_rules(
	struct allowlist *list, const struct chan_frame *f, struct cloche_err *err);
void broker_configured(struct broker *b);
/* Tell the client that its configuration is refused (b->err). */
void config_refuse(struct broker *b);
/* Send the final counts to the client. */
void config_finish(struct broker *b);
