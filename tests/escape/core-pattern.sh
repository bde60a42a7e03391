#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: have the kernel run a program as root of the host when something crashes
# Wall: read-only /proc/sys, owned by root of the host; a core limit with which no handler is started
# Behind it: user namespace: the file belongs to root of the host
pattern=$(cat /proc/sys/kernel/core_pattern)
echo "$pattern" > /proc/sys/kernel/core_pattern && { echo ESCAPED; exit 1; }
mount -o remount,rw /proc/sys && echo "$pattern" > /proc/sys/kernel/core_pattern && { echo ESCAPED; exit 1; }
printf '#!/bin/sh\nid > /workspace/ran\n' > /workspace/handler
chmod 755 /workspace/handler
ulimit -c unlimited
cd /workspace && sh -c 'kill -SEGV $$'
sh -c 'kill -ABRT $$'
sleep 0.1
ls /workspace/core* /workspace/ran 2>/dev/null && { echo ESCAPED: a core; exit 1; }
exit 0
