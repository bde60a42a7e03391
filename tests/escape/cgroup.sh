#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: leave the control group, or raise its limits: by its files, a mount of one's own, release_agent
# Wall: the room's own control group is all that is seen, and read-only; mounts are refused
# Behind it: user and cgroup namespace: the hierarchy above cannot be named
for mounted in /sys/fs/cgroup /sys/fs/cgroup/* /mnt; do
	for file in cgroup.procs tasks memory.max memory.limit_in_bytes pids.max release_agent cpu.max; do
		{ [ -e $mounted/$file ] && echo 0 > $mounted/$file && echo "ESCAPED: $file" && exit 1; } 2>/dev/null
	done
done
escape='for kind in "cgroup -o memory" "cgroup -o rdma" "cgroup -o none,name=escape"; do
	mount -t $kind x /mnt 2>/dev/null || continue
	echo "/workspace/agent" > /mnt/release_agent 2>/dev/null && echo ESCAPED
	mkdir /mnt/escaped 2>/dev/null && echo ESCAPED
	echo 1 > /mnt/cgroup.procs 2>/dev/null && echo ESCAPED
	umount /mnt
done'
{ unshare -UrmC sh -c "$escape"; unshare -Urm sh -c "$escape"; sh -c "$escape"; } 2>/dev/null | grep ESCAPED && exit 1
# The names in /proc/self/cgroup end where the room begins.
grep -v ':/$' /proc/self/cgroup | grep -v ':/\.\.' | grep . && { echo "ESCAPED: a name above"; exit 1; }
exit 0
