/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The handshake of a WebSocket, and its frames. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

struct http_head;
struct stream;
struct ws_counts;

/* Makes the request in s->head our own handshake, and has the body judged as frames. 0, or negative
 * where it cannot be. */
_warn_unused_ int websocket_prepare(struct stream *s);
/* Why this 101 does not answer our handshake; NULL where it does. */
const char *websocket_judge_answer(const struct stream *s, const struct http_head *h);
/* Frames of the origin, to the gateway; bytes are changed in place. False where that has ended the
 * stream. */
_warn_unused_ bool websocket_down(struct stream *s, struct str bytes);
/* Whether a close frame has come from the room (up) or the origin. */
bool websocket_has_closed(const struct stream *s, bool up);
/* What came so far; returns the code of the close frame that came first, 0: none. */
uint16_t websocket_counts(
	const struct stream *s, struct ws_counts *ret_up, struct ws_counts *ret_down);
