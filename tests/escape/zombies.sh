#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: leave hundreds of dead children to init
# Wall: init reaps them; the limit of --pids holds meanwhile
# Limits: --pids 64
i=0
while [ $i -lt 300 ]; do
	(sh -c 'true' & true) 2>/dev/null
	i=$((i + 1))
done
sleep 0.2
n=$(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l)
[ "$n" -gt 64 ] && { echo "ESCAPED: $n zombies"; exit 1; }
exit 0
