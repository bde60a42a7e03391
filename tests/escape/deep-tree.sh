#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: leave a tree in the workspace that tools stumble over: deep, with odd names, unreadable
# Wall: the room can harm its workspace alone; cloche walks no tree of it
cd /workspace || exit 2
i=0
while [ $i -lt 300 ]; do
	mkdir d && cd d || break
	i=$((i + 1))
done
cd /workspace
touch -- '-rf' '--help' "$(printf 'new\nline')" "$(printf 'esc\033]0;x\007')" "$(printf '\377\376')"
mkdir sealed && touch sealed/file && chmod 000 sealed
exit 0
