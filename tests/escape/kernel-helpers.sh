#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: name a program that the kernel starts outside: uevent_helper, modprobe, hotplug, binfmt_misc, usermode helpers
# Wall: read-only /proc/sys and no /sys
# Behind it: user namespace: the files belong to root of the host
for file in /sys/kernel/uevent_helper /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug \
	/proc/sys/kernel/poweroff_cmd /proc/sys/fs/binfmt_misc/register /proc/sys/kernel/usermodehelper/bset \
	/sys/module/block/parameters/events_dfl_poll_msecs /sys/fs/cgroup/release_agent \
	/proc/sys/vm/panic_on_oom /proc/sys/kernel/panic /proc/sys/net/ipv4/ip_forward; do
	# As it is: should a wall be down, the machine does not suffer.
	{ [ -e $file ] && value=$(cat $file) && echo "$value" > $file && { echo "ESCAPED: $file"; exit 1; }; } 2>/dev/null
done
mkdir /sys/kernel 2>/dev/null && echo "made in the room's own /sys"
mount -t sysfs sysfs /sys 2>/dev/null && echo /workspace/helper > /sys/kernel/uevent_helper &&
	{ echo ESCAPED: uevent_helper; exit 1; }
mount -t binfmt_misc x /proc/sys/fs/binfmt_misc 2>/dev/null && { echo ESCAPED: binfmt_misc; exit 1; }
exit 0
