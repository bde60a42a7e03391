/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Builds netlink requests in a fixed buffer and sends them to the kernel. */

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
	uint32_t seq;  /* of the last message; the first is 1 */
	bool overflow; /* something did not fit; the request is never sent */
};

/* Start a message with this fixed header after the netlink one. The message before it is complete.
 */
void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *header, size_t n);
void netlink_attr(struct netlink *nl, uint16_t type, const void *p, size_t n);
void netlink_attr_u32(struct netlink *nl, uint16_t type, uint32_t v);
/* Big-endian, as nf_tables expects numbers. */
void netlink_attr_be32(struct netlink *nl, uint16_t type, uint32_t v);
void netlink_attr_z(struct netlink *nl, uint16_t type, const char *z);
/* Return a mark for netlink_nest_end. */
size_t netlink_nest(struct netlink *nl, uint16_t type);
void netlink_nest_end(struct netlink *nl, size_t mark);

/* Send all messages at once and wait for `acks` acknowledgements, one for each message that was
 * begun with NLM_F_ACK. Return 0, or -errno of the first message that failed; *ret_seq says which
 * (from 1). */
_warn_unused_ int netlink_run(
	const struct netlink *nl, int protocol, unsigned acks, uint32_t *ret_seq);
