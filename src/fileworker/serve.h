/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file worker: runs inside a room, as the user whose rights it should have. */

#include "fs/place.h"

/* Serve protocol.h on fd (taken) until the client goes away. Return 0, or a negative errno if the
 * client broke the rules or something fundamental failed. Paths are resolved beneath root
 * (borrowed, a directory); relative ones begin at base ("" or an absolute path, borrowed). Paths of
 * the client and base are translated by the n places (borrowed), the targets of links are not.
 * Changes the working directory of the process. */
int files_serve(int fd, int root, const char *base, const struct place *places, size_t n);

/* Run `cloche-init files [BASE] [at TARGET SOURCE]...`: serve descriptor 0 with "/" as root. Return
 * the exit status. */
int files_serve_main(int argc, char **argv);
