/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers one query from the map. No query is ever forwarded, so no data can leave the room in one.
 * Whether the policy would allow the name is not checked here. Pure. */

#include "dns/message.h"
#include "dns/synthetic.h"

/* For the log. */
struct dns_event {
	struct dns_query query;   /* the name is to be escaped */
	struct dns_answer answer; /* what was answered */
};

/* Append the answer to one packet to out. tcp: the length is not limited (the caller writes the two
 * bytes of length). localhost and names under it are loopback. Return 1 if there is an answer, 0 if
 * the packet is to be dropped, -ENOMEM or -E2BIG. */
_warn_unused_ int dns_respond(struct dns_synthetic *map, struct str packet, bool tcp,
	struct buf *out, struct dns_event *ret_event);

/* "A", "AAAA", "HTTPS", "TYPE65280"... into ret. */
#define DNS_TYPE_TEXT_MAX 16
void dns_type_text(uint16_t type, char ret[DNS_TYPE_TEXT_MAX]);
