#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: learn what the kernel keeps from others: its log, memory, addresses, keys, timers
# Wall: user namespace and masks of /proc
for file in kcore kmsg keys key-users timer_list sched_debug slabinfo vmallocinfo pagetypeinfo kpageflags \
	kpagecount kpagecgroup latency_stats sys/kernel/cad_pid interrupts iomem_ sys/fs/protected_; do
	[ -s /proc/$file ] || [ ! -r /proc/$file ] && continue
	n=$(head -c 4096 /proc/$file 2>/dev/null | wc -c)
	[ "$file" = key-users ] && continue
	[ "$n" -gt 0 ] && { echo "ESCAPED: /proc/$file"; exit 1; }
done
dmesg >/tmp/log 2>/dev/null && [ -s /tmp/log ] && { echo "ESCAPED: dmesg"; exit 1; }
grep -v '^0* ' /proc/kallsyms 2>/dev/null | head -1 | grep . && { echo "ESCAPED: addresses"; exit 1; }
grep -v '^ *0*-0* ' /proc/iomem 2>/dev/null | grep . | head -1 | grep . && { echo "ESCAPED: iomem"; exit 1; }
exit 0
