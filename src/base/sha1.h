/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-1 (FIPS 180-4) of a short text, for programs that are linked without OpenSSL. Nothing is safe
 * by it any more; the handshake of a WebSocket asks for it. */

#include "base/str.h"
#include <stdint.h>

#define SHA1_BYTES 20

void sha1_text(struct str text, uint8_t ret[SHA1_BYTES]);
