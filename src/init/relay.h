/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Carries queries for names between a socket of the room that sends datagrams and a connection to
 * the gateway, which takes each behind its length (RFC 7766). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_BYTES = 4096 };

struct relay {
	int room, gateway;       /* owned; not blocking */
	size_t n;                /* bytes of in */
	uint8_t in[RELAY_BYTES]; /* from the gateway */
};

/* Carry what has come, and never wait. Return false at the end, or if there is anything that cannot
 * be carried. */
bool relay_to_gateway(struct relay *r);
bool relay_to_room(struct relay *r);
void relay_close(struct relay *r);
