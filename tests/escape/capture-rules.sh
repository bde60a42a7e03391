#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: take away the rules that capture the network, to send past them
# Wall: capabilities: no NET_ADMIN, no netfilter socket
# Behind it: network namespace: there is no interface that leads out
nft flush ruleset 2>/dev/null && { echo "ESCAPED: nft"; exit 1; }
ip route flush table all 2>/dev/null
ip rule del pref 0 2>/dev/null
ip link add escape type dummy 2>/dev/null && { echo "ESCAPED: a device"; exit 1; }
ip -o link | grep -v ': lo:' | grep . && { echo "ESCAPED: another interface"; exit 1; }
cat "/proc/net/dev" | tail -n +3 | grep -v ' lo:' | grep . && exit 1
exit 0
