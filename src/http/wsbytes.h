/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A stream of bytes as the binary messages of a WebSocket (RFC 6455), for either of its ends. Where
 * messages begin and end means nothing. Nothing in here reads or writes: bytes go in and come out
 * in buffers, whose maxima bound what the other end can fill. */

#include "base/buf.h"
#include "http/ws.h"

/* Make no larger messages: who carries them may keep whole ones. */
enum { WSBYTES_PIECE = 64 * 1024 };

struct wsbytes {
	struct ws_reader reader;
	uint64_t at; /* in the payload that is being read */
	bool closed; /* a close frame was written */
};

struct wsbytes wsbytes(enum ws_side other);
/* Add a message. Nothing may follow a close frame, so nothing is added then. The next three return
 * 0, -E2BIG or -ENOMEM. */
_warn_unused_ int wsbytes_put(struct wsbytes *w, struct buf *out, struct str bytes);
/* Add a close frame, unless there was one. code: as in ws_write_close(). */
_warn_unused_ int wsbytes_put_close(struct wsbytes *w, struct buf *out, uint16_t code);
/* Take what has come. What messages carry is added to bytes, and what has to be answered to out.
 * Also return 1: a close frame has come, and nothing after it counts; or -EPROTO: it is no such
 * stream (w->reader.error says what, WS_E_OK: a message of text). Then out has a close frame. */
_warn_unused_ int wsbytes_take(
	struct wsbytes *w, struct str in, struct buf *bytes, struct buf *out);
