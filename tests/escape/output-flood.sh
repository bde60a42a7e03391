#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: print without end
# Wall: back-pressure: whoever prints waits; --output-limit and --timeout end it
# Limits: --output-limit 1m --timeout 2s
# Ends: 124
yes "$(head -c 4000 /dev/zero | tr '\0' x)"
exit 0
