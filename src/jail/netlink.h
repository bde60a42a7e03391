/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Builds netlink requests in a fixed buffer and has the kernel carry them out. */

#include "base/err.h"
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NETLINK_MAX = 4096 };

struct netlink {
	_Alignas(8) uint8_t mem[NETLINK_MAX];
	size_t n;      /* bytes used */
	size_t msg;    /* where the current message starts */
	uint32_t seq;  /* of the last message; they count from 1 */
	bool overflow; /* something did not fit; the request is never sent */
};

/* Starts a message with this fixed header behind the netlink one; the one before is complete. */
void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *header, size_t n);
void netlink_attr(struct netlink *nl, uint16_t type, const void *p, size_t n);
void netlink_attr_u32(struct netlink *nl, uint16_t type, uint32_t v);
/* As nf_tables wants its numbers. */
void netlink_attr_be32(struct netlink *nl, uint16_t type, uint32_t v);
void netlink_attr_z(struct netlink *nl, uint16_t type, const char *z);
/* Returns a mark for netlink_nest_end. */
size_t netlink_nest(struct netlink *nl, uint16_t type);
void netlink_nest_end(struct netlink *nl, size_t mark);

/* Sends all messages at once and waits for the acknowledgement of the last `acks` ones that were
 * begun with NLM_F_ACK. Returns 0, or -errno of the first that failed with *ret_seq (from 1)
 * telling which. */
_warn_unused_ int netlink_run(
	const struct netlink *nl, int protocol, unsigned acks, uint32_t *ret_seq);
