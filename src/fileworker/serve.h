/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file worker: runs inside a room, as the user whose rights it shall have. */

/* Serves protocol.h on fd (taken) until the client goes away: 0, or a negative errno if it broke
 * the rules or something fundamental failed. Paths are resolved beneath root (borrowed, a
 * directory); relative ones begin at base ("" or an absolute path, borrowed). Changes the working
 * directory and the limit on descriptors of the process. */
int files_serve(int fd, int root, const char *base);

/* What `cloche-init files [BASE]` does: serves descriptor 0 with "/" as root. Returns the exit
 * status. */
int files_serve_main(int argc, char **argv);
