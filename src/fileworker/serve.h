/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file worker: runs inside a room, as the user whose rights it should have. */

/* Serve protocol.h on fd (taken) until the client goes away. Return 0, or a negative errno if the
 * client broke the rules or something fundamental failed. Paths are resolved beneath root
 * (borrowed, a directory); relative ones begin at base ("" or an absolute path, borrowed). Changes
 * the working directory and the descriptor limit of the process. */
int files_serve(int fd, int root, const char *base);

/* Run `cloche-init files [BASE]`: serve descriptor 0 with "/" as root. Return the exit status. */
int files_serve_main(int argc, char **argv);
