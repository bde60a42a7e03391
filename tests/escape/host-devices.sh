#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: open devices of the host in /dev
# Wall: mount namespace: /dev holds null, zero, full, random, urandom, tty and a pts of its own
for node in mem kmem port kmsg sda vda nvme0n1 dm-0 loop0 loop-control kvm fuse net/tun vsock vhost-net \
	console tty0 tty1 ttyS0 input/event0 fb0 dri/card0 snd/timer mapper/control cpu/0/msr rtc0 \
	watchdog uinput uhid vfio/vfio btrfs-control hwrng autofs; do
	[ -e /dev/$node ] && { echo "ESCAPED: /dev/$node"; exit 1; }
done
for node in /dev/*; do
	case $node in
	/dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/tty|/dev/pts|/dev/ptmx) ;;
	/dev/shm|/dev/fd|/dev/stdin|/dev/stdout|/dev/stderr|/dev/mqueue) ;;
	*) echo "ESCAPED: $node"; exit 1 ;;
	esac
done
exit 0
