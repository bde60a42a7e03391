#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: write settings of the kernel that are not the room's
# Wall: read-only /proc/sys
# Behind it: user namespace: they belong to root of the host
for file in kernel/panic kernel/randomize_va_space kernel/dmesg_restrict vm/drop_caches vm/overcommit_memory \
	fs/suid_dumpable fs/protected_symlinks kernel/yama/ptrace_scope kernel/unprivileged_bpf_disabled \
	kernel/perf_event_paranoid user/max_user_namespaces kernel/ns_last_pid kernel/sysrq kernel/hostname; do
	[ -e /proc/sys/$file ] || continue
	# As it is: should a wall be down, the machine does not suffer.
	{ value=$(cat /proc/sys/$file) && echo "$value" > /proc/sys/$file; } 2>/dev/null || continue
	case $file in user/*|kernel/ns_last_pid|kernel/hostname) [ -n "$NESTED" ] && continue ;; esac
	echo "ESCAPED: $file"
	exit 1
done
exit 0
