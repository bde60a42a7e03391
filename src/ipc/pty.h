/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* New terminals, for init and, where init may not open any, for its supervisor. */

#include <stdint.h>

/* Make a terminal of that size. Return 0, or -errno. */
int pty_make(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave);
