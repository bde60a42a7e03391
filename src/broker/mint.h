/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Leaf certificates, and the protocol to speak with the clients that they are for. */

#include "base/macro.h"
#include "tls/ca.h"

#include <stdint.h>

struct broker;
struct mint;
struct net_mint;

struct rate {
	double tokens;
	uint64_t at; /* monotonic, of the last refill */
};

struct minting {
	uint8_t spki[TLS_SPKI_MAX]; /* the gateway's key, which all leaves are for */
	struct rate listed, unlisted;
	struct mint *waiting; /* for an origin */
	unsigned n;
};

_warn_unused_ int mint_request(struct broker *b, const struct net_mint *m);
/* Call this when the policy is replaced, before NET_FORGET: answer all waiting questions with
 * HTTP/1.1. */
void mints_settle(struct broker *b);
/* Drop the waiting questions without an answer. */
void mints_free(struct broker *b);
