/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Make OpenSSL take its random bytes from the kernel, each time it needs some. Its own generators
 * would only be seeded from there, take half a millisecond to set up at start, and would have to be
 * kept apart across fork(). Call it before any key is made. */
void tls_use_kernel_random(void);
