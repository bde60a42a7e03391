#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: gain rights by a set-uid program of the host, or leave one behind
# Wall: no_new_privs and nosuid mounts; seccomp refuses the bits where files stay
# Behind it: the same
caps=$(grep CapEff /proc/self/status)
for program in su mount umount passwd newgrp chsh sudo pkexec fusermount3 newuidmap; do
	path=$(command -v $program) || continue
	[ -u "$path" ] || continue
	now=$($path --version 2>/dev/null; grep CapEff /proc/self/status)
	case $now in *"$caps"*) ;; *) echo "ESCAPED: $path"; exit 1 ;; esac
done
cp /bin/sh /workspace/shell && chmod 4755 /workspace/shell 2>/dev/null
cp /bin/sh /workspace/shell2 && chmod 2755 /workspace/shell2 2>/dev/null
install -m 6755 /bin/sh /workspace/shell3 2>/dev/null
[ -u /workspace/shell ] || [ -g /workspace/shell2 ] || [ -u /workspace/shell3 ] || exit 0
echo "ESCAPED: a set-uid file"
exit 1
