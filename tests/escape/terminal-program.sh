#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: the same from a program that has a terminal of its own
# Wall: the terminal filter of cloche
# Input: terminal
# Output: terminal
printf 'before\033]52;c;cm0gLXJmIH4K\007\033[21t\033P0;1|17/6d\033\\\033]8;;file:///x\033\\\033]1337;File=:eA==\007'
printf '\005\033[?1000h\033[?2004h\033_Gt=f;L2V0Yw==\033\\\302\2336n\2336nafter\033[31m\n'
exit 0
