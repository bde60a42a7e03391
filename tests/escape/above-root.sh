#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: climb above the root: "/.." crosses what is mounted on top of it
# Wall: mount namespace: the host's root was detached after pivot_root
# Roots: host directory overlay
for up in /.. /../.. /../../../.. /proc/self/root/.. /proc/self/cwd/../../../../../../../../../../../..; do
	cat "$up$CANARY_SECRET" && echo "ESCAPED: $up" && exit 1
	[ "$(ls -A / | sort)" = "$(ls -A $up | sort)" ] || { echo "ESCAPED: $up is another"; exit 1; }
done 2>/dev/null
exit 0
