/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Leaves of the certificate authority, and what is spoken with whom they are for. */

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
/* Another policy holds: what is being found out is answered as far as it is known. Then NET_FORGET.
 */
void mints_settle(struct broker *b);
/* Those that wait are not answered any more. */
void mints_free(struct broker *b);
