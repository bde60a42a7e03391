/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that makes the handshake of a WebSocket our own, and judges its frames. */

#include "broker/chain.h"

extern const struct filter filter_websocket;

/* Why this 101 does not answer our handshake; NULL if it does. */
const char *websocket_judge_answer(const struct stream *s, const struct http_head *h);
/* Whether a close frame has come from the room (up) or the origin. */
bool websocket_has_closed(const struct stream *s, bool up);
