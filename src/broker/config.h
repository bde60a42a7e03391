/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a client configures the broker with. */

#include "base/err.h"
#include "policy/host.h"
#include <stdint.h>

struct allowlist;
struct broker;
struct chan_frame;
struct config;

/* --connect-to: where to dial for a host and port, whatever its names resolve to. */
struct override {
	struct host host;
	uint16_t port, to_port;
	char *address;
};

/* Reads the configuration; broker_configured() is called when it is complete. */
_warn_unused_ int config_start(struct broker *b, struct cloche_err *err);
void config_free(struct config *c);
/* Adds what an ALLOWLIST or ALLOW says; any other frame is an error. */
_warn_unused_ int config_take_rules(
	struct allowlist *list, const struct chan_frame *f, struct cloche_err *err);
void broker_configured(struct broker *b);
/* Tells the client that its configuration is refused (b->err). */
void config_refuse(struct broker *b);
/* The last word to the client: counts. */
void config_finish(struct broker *b);
