#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: leave links, fifos and odd names in the workspace that lead whoever follows them outside
# Wall: mount namespace inside; outside, cloche follows nothing that lies there
cd /workspace || exit 2
ln -s "$CANARY_SECRET" secret
ln -s "$CANARY_DIR" dir
ln -s / root
ln -s "$CANARY_DIR" .git
ln -s "$CANARY_SECRET" .cloche-log
mkfifo fifo
cat secret dir/secret "root$CANARY_SECRET" .cloche-log && exit 1
echo planted > secret
echo planted > dir/planted
mkdir -p dir/planted-dir
exit 0
