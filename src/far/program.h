/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The programs of this folder. Each returns an exit status. */

/* The near end: FARCTL_FD_*. */
int far_relay_program(void);
