/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict, incremental reading of WebSocket frames (RFC 6455 5), of either side. Bytes go in as they
 * arrive, cut anywhere; the outcome never depends on where they were cut. Nothing of a data frame
 * is kept: its payload comes out in pieces as it arrives. A control frame comes out whole and
 * judged.
 *
 *	struct ws_reader r = ws_reader(WS_FROM_CLIENT);
 *
 *	switch (ws_read(&r, &in, &piece)) {
 *	case WS_MORE:	in is empty; come back with what follows
 *	case WS_HEAD:	r.frame begins: write it with ws_write_head()
 *	case WS_DATA:	piece is the next of its payload, masked as it came
 *	case WS_CLOSED:	a close frame has come out: nothing is read behind it
 *	case WS_ERROR:	answer ws_error_code(r.error), and end
 *	}
 *
 * No extension is known, so the reserved bits are an error. Whether text is UTF-8 is left to the
 * ends. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

enum {
	WS_FRAME_MAX = 16 * 1024 * 1024,
	WS_MESSAGE_MAX = 64 * 1024 * 1024, /* of all frames of one message together */
	WS_CONTROL_MAX = 125,
	WS_HEAD_MAX = 14,
	WS_KEY_LEN = 24,    /* of Sec-WebSocket-Key */
	WS_ACCEPT_LEN = 28, /* of Sec-WebSocket-Accept */
};

/* Whose frames they are: a client masks them, a server does not. */
enum ws_side { WS_FROM_CLIENT, WS_FROM_SERVER };

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

enum ws_result { WS_MORE, WS_HEAD, WS_DATA, WS_CLOSED, WS_ERROR };

enum ws_error {
	WS_E_OK,
	WS_E_RESERVED,     /* a reserved bit, without an extension that gives it a meaning */
	WS_E_OPCODE,       /* a reserved opcode */
	WS_E_UNMASKED,     /* by a client */
	WS_E_MASKED,       /* by a server */
	WS_E_LENGTH,       /* not in its shortest form, or 2^63 and more */
	WS_E_CONTROL,      /* a control frame above 125 bytes, or fragmented */
	WS_E_CONTINUATION, /* without a message to continue, or a new message within another */
	WS_E_CLOSE,        /* a code or reason that may not be sent */
	WS_E_FRAME_SIZE,
	WS_E_MESSAGE_SIZE,
};

struct ws_frame {
	bool fin, masked;
	enum ws_opcode opcode;
	unsigned char mask[4];
	uint64_t length; /* of the payload */
};

struct ws_counts {
	uint64_t frames, messages, bytes; /* bytes: of all payloads, of control frames too */
	uint16_t close_code;              /* 0: no close frame, 1005: one without a code */
};

struct ws_reader {
	enum ws_side side;
	enum ws_error error; /* after WS_ERROR */
	struct ws_frame frame;
	uint64_t left; /* of the frame's payload */
	struct ws_counts counts;
	/* Internal. */
	bool in_message, closed, give_control;
	unsigned have; /* bytes of an unfinished head, or of a control frame's payload */
	uint64_t message;
	unsigned char head[WS_HEAD_MAX];
	char control[WS_CONTROL_MAX];
};

struct ws_reader ws_reader(enum ws_side side);
/* Take bytes off the front of *in. *ret_piece is set only with WS_DATA, and valid until the next
 * call or change of in. */
enum ws_result ws_read(struct ws_reader *r, struct str *in, struct str *ret_piece);
/* Whether the next byte begins a frame. */
bool ws_reader_is_between(const struct ws_reader *r);
/* Fixed English text. */
const char *ws_error_text(enum ws_error e);
/* The code of the close frame that answers the error: 1002 or 1009. */
uint16_t ws_error_code(enum ws_error e);

/* Write the head of a frame in its shortest form; return its length. */
size_t ws_write_head(char to[WS_HEAD_MAX], const struct ws_frame *f);
/* Write a whole close frame of a server; code 0: without one. Return its length, at most 4. */
size_t ws_write_close(char to[4], uint16_t code);
/* Mask or unmask p in place (RFC 6455 5.3). at: offset of p in the payload. */
void ws_mask(char *p, size_t n, const unsigned char mask[4], uint64_t at);

/* Whether key is the base64 of 16 bytes, as RFC 6455 4.1 requires. */
bool ws_is_key(struct str key);
/* Write the answer to a key of that form, with a terminator (RFC 6455 4.2.2). */
void ws_accept(struct str key, char ret[WS_ACCEPT_LEN + 1]);
/* Write a new key, with a terminator. */
void ws_make_key(char ret[WS_KEY_LEN + 1]);
