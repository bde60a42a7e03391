#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries: make the person's terminal answer, paste, open or rename by what is printed
# Wall: the terminal filter of cloche
# Output: terminal
printf 'before\033]52;c;cm0gLXJmIH4K\007\033]0;title\007\033[21t\033[c\033[6n\033P$qm\033\\\033]8;;file:///x\033\\'
printf '\005\033[?1000h\033[?1049h\033_Gt=f;L2V0Yw==\033\\\302\2336n\2336nafter\033[31m\n'
exit 0
