/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The part of test-native that runs as process 1 of a room, in place of cloche-init: named checks
 * that write what they find wrong to the control socket, a line each, and "done" at the end. */

#include <stddef.h>

/* Tell the process 1 at the other end of that socket the name of the check and its arguments. */
void inside_tell(int control_fd, const char *const *args, size_t n);

/* Do that check. Return the exit status. */
int inside_main(void);
