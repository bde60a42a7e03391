/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The packet filter rules that direct a room's TCP to its listeners. */

#include "base/err.h"
#include <stdint.h>

/* Make, in one transaction, what nft(8) would show as
 *   table inet cloche { chain capture { type filter hook prerouting priority mangle; policy accept;
 *     ip daddr 127.0.0.0/8 accept
 *     ip daddr OWN accept
 *     ip6 daddr ::1 accept
 *     meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:PORT accept
 *     meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:PORT accept } } */
_warn_unused_ int nftables_capture(const uint8_t own[4], uint16_t port, struct cloche_err *err);
