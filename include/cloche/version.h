/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_VERSION_H
#define CLOCHE_VERSION_H
/* The version of the library. */

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the version of the library that is in use, such as "0.1.0". Static, never NULL. May be
 * called by any thread. */
CLOCHE_API const char *cloche_version(void);

#ifdef __cplusplus
}
#endif
#endif
