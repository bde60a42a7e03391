/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* INV-NARROW: what the two ends give up before they read the first byte of the network. Neither can
 * make a socket, start a program or signal another one. The room's end opens no file; that of the
 * origin can open the files of known hosts alone. Return 0 or negative. */

#include "base/macro.h"

_warn_unused_ int narrow_room(void);
/* paths: at most two, which may not exist. */
_warn_unused_ int narrow_origin(const char *const paths[2]);
