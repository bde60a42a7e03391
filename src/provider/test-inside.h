/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The part of test-native that runs as process 1 of a room, in place of cloche-init: named checks
 * that write what they find wrong to the control socket, a line each, and "done" at the end. */

/* argv[1] is the name of the check, argv[2]... its arguments. Returns the exit status. */
int inside_main(int argc, char **argv);
