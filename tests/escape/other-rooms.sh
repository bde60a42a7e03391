#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: find another room of the same user: its processes, sockets, files, memory
# Wall: namespaces of its own for each room
# Sibling: yes
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep "sibling-of-the-attempt[s]" &&
	{ echo "ESCAPED: a process"; exit 1; }
grep -a "sibling-abstract" /proc/net/unix && { echo "ESCAPED: a socket"; exit 1; }
ls /tmp/sibling-file /dev/shm/sibling-file 2>/dev/null && { echo "ESCAPED: a file"; exit 1; }
exit 0
