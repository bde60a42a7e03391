/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers one query out of the map. No query ever goes further, so nothing can be carried out in
 * one; whether policy would allow the name is not asked here. Pure. */

#include "dns/message.h"
#include "dns/synthetic.h"

/* For the log. */
struct dns_event {
	struct dns_query query;   /* the name is to be escaped */
	struct dns_answer answer; /* what was answered */
};

/* Appends the answer to one packet to out. tcp: no limit of length (the caller writes the two bytes
 * of length). localhost and names under it are loopback. Returns 1 if there is an answer, 0
 * if the packet is to be dropped, -ENOMEM, -E2BIG. */
_warn_unused_ int dns_respond(struct dns_synthetic *map, struct str packet, bool tcp,
	struct buf *out, struct dns_event *ret_event);

/* "A", "AAAA", "HTTPS", "TYPE65280"... into ret. */
#define DNS_TYPE_TEXT_MAX 16
void dns_type_text(uint16_t type, char ret[DNS_TYPE_TEXT_MAX]);
