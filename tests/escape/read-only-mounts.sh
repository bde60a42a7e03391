#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: change what is mounted read-only: contents, names, modes, times, owners
# Wall: read-only mounts: their flags cannot be changed without the mount calls, which the filter refuses
{ echo x > /ro/file || echo x >> /ro/file || touch /ro/new || rm /ro/file || mv /ro/file /ro/other ||
	mkdir /ro/dir || chmod 777 /ro/file || chown 1 /ro/file || touch -d 2001-01-01 /ro/file ||
	ln -s x /ro/link || mkfifo /ro/fifo || echo x > /usr/bin/env || touch /usr/new ||
	rm -f /usr/bin/env || chmod 777 /usr; } 2>/dev/null && { echo "ESCAPED: written"; exit 1; }
exit 0
