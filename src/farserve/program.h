/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Be the service: `cloche-far serve ARGUMENTS`, argv[0] is the first argument. Return an exit
 * status. */
int farserve_program(int argc, char **argv);
