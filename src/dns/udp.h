/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Queries to any address that arrive at one socket, where every address is local. */

#include "base/buf.h"

/* Have the socket say which address was asked. */
void dns_udp_prepare(int fd);

/* Append the answer to one packet to out. Return 1, 0 if there is no answer, or a negative value.
 */
typedef int (*dns_udp_fn)(void *user, struct str packet, struct buf *out);

/* Answer one query, from the address that was asked. Return false if there is none now. */
bool dns_udp_answer(int fd, dns_udp_fn respond, void *user);
