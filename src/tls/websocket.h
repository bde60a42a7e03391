/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What OpenSSL does for the opening handshake of a WebSocket (RFC 6455 4). */

#include "base/str.h"

#define TLS_WEBSOCKET_KEY (24 + 1)
#define TLS_WEBSOCKET_ACCEPT (28 + 1)

/* A fresh Sec-WebSocket-Key, terminated. */
void tls_websocket_key(char ret[TLS_WEBSOCKET_KEY]);
/* The Sec-WebSocket-Accept that answers a key, terminated. */
void tls_websocket_accept(struct str key, char ret[TLS_WEBSOCKET_ACCEPT]);
