#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: have the machine reboot, sync or kill by the key that is for emergencies
# Wall: read-only /proc/sysrq-trigger, owned by root of the host
# Behind it: its owner is root of the host
{ echo h > /proc/sysrq-trigger || echo h >> /proc/sysrq-trigger || chmod 666 /proc/sysrq-trigger ||
	dd if=/dev/zero of=/proc/sysrq-trigger bs=1 count=1; } 2>/dev/null && { echo ESCAPED; exit 1; }
exit 0
