/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that does the broker's own WebSocket handshake and checks the frames. */

#include <stdbool.h>

struct http_head;
struct stream;

/* Return why this 101 does not answer our handshake, or NULL if it does. */
const char *websocket_judge_answer(const struct stream *s, const struct http_head *h);
/* Return whether a close frame has come from the room (up) or the origin. */
bool websocket_has_closed(const struct stream *s, bool up);
