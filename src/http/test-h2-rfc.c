/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 9113, one requirement after the other: what a peer sends, and what it gets for it. The RFC
 * lets an error of a stream be one of the connection (5.4.2 and 5.4.1). Rows that say "!" have what
 * the library does if the RFC wants something else: docs/design/architecture.md says why that
 * stays. More of section 8 is in test-h2-malformed.c. */
#include "tap.h"
#include "test-h2-frames.h"

enum { PADDED = 8, WITH_PRIORITY = 32, RESERVED_BIT = 1U << 31, FRAMES_MAX = 4 };
enum { MAX_FRAME = 16384 };

/* What comes of it. */
enum outcome {
	NOTHING,    /* the connection goes on, and no stream is reset */
	STREAM,     /* the stream is reset, and the connection goes on */
	CONNECTION, /* GOAWAY, and the end */
};

struct raw {
	uint8_t type, flags;
	uint32_t id;
	struct str payload;
	size_t zeros; /* behind it */
};

struct row {
	const char *section, *what;
	struct raw frames[FRAMES_MAX];
	enum outcome outcome;
	enum h2_error code;
	bool answered; /* the first frame is a request, which has its answer before the next */
};

#define P(text)                                                                                    \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
#define GET_BLOCK                                                                                  \
	"\x82\x87\x84\x01\x06"                                                                     \
	"a.test"
#define POST_BLOCK                                                                                 \
	"\x83\x87\x84\x01\x06"                                                                     \
	"a.test"
#define GET_1                                                                                      \
	{                                                                                          \
		HEADERS, END_HEADERS | END_STREAM, 1, P(GET_BLOCK), 0                              \
	}
#define GET_3                                                                                      \
	{                                                                                          \
		HEADERS, END_HEADERS | END_STREAM, 3, P(GET_BLOCK), 0                              \
	}
#define POST_1                                                                                     \
	{                                                                                          \
		HEADERS, END_HEADERS, 1, P(POST_BLOCK), 0                                          \
	}
#define BEGUN_1                                                                                    \
	{                                                                                          \
		HEADERS, END_STREAM, 1, P(GET_BLOCK), 0                                            \
	}
#define SETTINGS_0                                                                                 \
	{                                                                                          \
		SETTINGS, 0, 0, P(""), 0                                                           \
	}
#define RESET_1                                                                                    \
	{                                                                                          \
		RST_STREAM, 0, 1, P("\0\0\0\x8"), 0                                                \
	}
#define HEAD_WITH(block)                                                                           \
	{                                                                                          \
		HEADERS, END_HEADERS | END_STREAM, 1, P(GET_BLOCK block), 0                        \
	}
#define HEAD_OF(block)                                                                             \
	{                                                                                          \
		HEADERS, END_HEADERS | END_STREAM, 1, P(block), 0                                  \
	}
#define TO_END(e) CONNECTION, H2_##e
#define TO_RESET(e) STREAM, H2_##e
#define TO_GO_ON NOTHING, 0

/* Sections 4 and 5. */
static const struct row framing[] = {
	{"4.1", "a frame of an unknown type", {{0x16, 0, 0, P("unknown"), 0}}, TO_GO_ON},
	{"4.1", "... on a stream that is idle", {{0x16, 0, 77, P("unknown"), 0}}, TO_GO_ON},
	{"4.1", "flags that are not defined", {{PING, 0x16, 0, P("12345678"), 0}}, TO_GO_ON},
	{"4.1", "the reserved bit", {{PING, 0, RESERVED_BIT, P("12345678"), 0}}, TO_GO_ON},
	{"4.1", "... of a request", {{HEADERS, 5, RESERVED_BIT | 1, P(GET_BLOCK), 0}}, TO_GO_ON},
	{"4.2", "DATA of 2^14 bytes", {POST_1, {DATA, 0, 1, P(""), MAX_FRAME}}, TO_GO_ON},
	{"4.2", "DATA of more", {POST_1, {DATA, 0, 1, P(""), MAX_FRAME + 1}},
		TO_END(FRAME_SIZE_ERROR)},
	{"4.2", "HEADERS of more", {{HEADERS, 5, 1, P(GET_BLOCK), MAX_FRAME}},
		TO_END(FRAME_SIZE_ERROR)},
	{"4.2", "an unknown frame of more", {{0x16, 0, 0, P(""), MAX_FRAME + 1}},
		TO_END(FRAME_SIZE_ERROR)},
	{"4.3", "an index that is not there", {HEAD_WITH("\xff\x7f")}, TO_END(COMPRESSION_ERROR)},
	{"4.3", "index 0", {HEAD_WITH("\x80")}, TO_END(COMPRESSION_ERROR)},
	{"4.3", "a number without end", {HEAD_WITH("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
		TO_END(COMPRESSION_ERROR)},
	{"4.3", "a string that is cut", {HEAD_WITH("\0\x9too few")}, TO_END(COMPRESSION_ERROR)},
	{"4.3", "a table larger than allowed", {HEAD_OF("\x3f\xe2\x1f" GET_BLOCK)},
		TO_END(COMPRESSION_ERROR)},
	{"4.3", "a table's size behind a field", {HEAD_WITH("\x20")}, TO_END(COMPRESSION_ERROR)},
	{"4.3", "Huffman code with EOS", {HEAD_WITH("\0\1x\x84\xff\xff\xff\xff")},
		TO_END(COMPRESSION_ERROR)},
	{"4.3", "... padded with more than 7 bits", {HEAD_WITH("\0\1x\x82\x1f\xff")},
		TO_END(COMPRESSION_ERROR)},
	{"4.3", "... padded with zeros", {HEAD_WITH("\0\1x\x81\x18")}, TO_END(COMPRESSION_ERROR)},
	{"4.3", "PRIORITY within a head", {BEGUN_1, {PRIORITY, 0, 1, P("\0\0\0\0\1"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"4.3", "another head within a head", {BEGUN_1, {HEADERS, 5, 3, P(GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},

	{"5.1", "idle: DATA", {{DATA, END_STREAM, 1, P("x"), 0}}, TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: RST_STREAM", {RESET_1}, TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: WINDOW_UPDATE", {{WINDOW_UPDATE, 0, 1, P("\0\0\0\1"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: CONTINUATION", {{CONTINUATION, END_HEADERS, 1, P(GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: PRIORITY", {{PRIORITY, 0, 1, P("\0\0\0\0\1"), 0}}, TO_GO_ON},
	{"5.1", "half-closed: DATA", {GET_1, {DATA, END_STREAM, 1, P("x"), 0}},
		TO_END(STREAM_CLOSED)},
	{"5.1", "half-closed: HEADERS", {GET_1, {HEADERS, 5, 1, P("\0\1x\1y"), 0}},
		TO_END(STREAM_CLOSED)},
	{"5.1", "half-closed: CONTINUATION", {GET_1, {CONTINUATION, 4, 1, P("\0\1x\1y"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1", "half-closed: WINDOW_UPDATE", {GET_1, {WINDOW_UPDATE, 0, 1, P("\0\0\0\1"), 0}},
		TO_GO_ON},
	{"5.1", "half-closed: PRIORITY", {GET_1, {PRIORITY, 0, 1, P("\0\0\0\0\1"), 0}}, TO_GO_ON},
	{"5.1", "half-closed: RST_STREAM", {GET_1, RESET_1}, TO_GO_ON},
	{"5.1", "reset: DATA", {GET_1, RESET_1, {DATA, END_STREAM, 1, P("x"), 0}},
		TO_END(STREAM_CLOSED)},
	{"5.1", "reset: HEADERS", {GET_1, RESET_1, {HEADERS, 5, 1, P(GET_BLOCK), 0}},
		TO_END(STREAM_CLOSED)},
	{"5.1", "reset: CONTINUATION", {GET_1, RESET_1, {CONTINUATION, 4, 1, P(GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1", "reset: WINDOW_UPDATE", {GET_1, RESET_1, {WINDOW_UPDATE, 0, 1, P("\0\0\0\1"), 0}},
		TO_GO_ON},
	{"5.1", "reset: PRIORITY", {GET_1, RESET_1, {PRIORITY, 0, 1, P("\0\0\0\0\1"), 0}},
		TO_GO_ON},
	{"5.1", "reset: RST_STREAM", {GET_1, RESET_1, RESET_1}, TO_GO_ON},
	{"5.1", "closed: DATA", {GET_1, {DATA, END_STREAM, 1, P("x"), 0}}, TO_END(STREAM_CLOSED),
		true},
	{"5.1", "closed: HEADERS", {GET_1, {HEADERS, 5, 1, P(GET_BLOCK), 0}}, TO_END(STREAM_CLOSED),
		true},
	{"5.1", "closed: CONTINUATION", {GET_1, {CONTINUATION, 4, 1, P(GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR), true},
	{"5.1", "closed: WINDOW_UPDATE", {GET_1, {WINDOW_UPDATE, 0, 1, P("\0\0\0\1"), 0}}, TO_GO_ON,
		true},
	{"5.1", "closed: PRIORITY", {GET_1, {PRIORITY, 0, 1, P("\0\0\0\0\1"), 0}}, TO_GO_ON, true},
	{"5.1", "closed: RST_STREAM", {GET_1, RESET_1}, TO_GO_ON, true},
	{"5.1.1", "a stream of an even number", {{HEADERS, 5, 2, P(GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1.1", "DATA on a stream of an even number", {GET_3, {DATA, 0, 2, P("x"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1.1", "! a stream below the last one",
		{{HEADERS, 5, 5, P(GET_BLOCK), 0}, {HEADERS, 5, 3, P(GET_BLOCK), 0}},
		TO_END(STREAM_CLOSED)},
	{"5.1.1", "a request on stream 0", {{HEADERS, 5, 0, P(GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.3.1", "PRIORITY that depends on itself", {{PRIORITY, 0, 1, P("\0\0\0\1\1"), 0}},
		TO_GO_ON},
	{"5.3.1", "! HEADERS that depend on themselves",
		{{HEADERS, 37, 1, P("\0\0\0\1\1" GET_BLOCK), 0}}, TO_END(PROTOCOL_ERROR)},
	{"5.5", "an unknown frame within a head", {BEGUN_1, {0x16, 0, 1, P("x"), 0}},
		TO_END(PROTOCOL_ERROR)},
};

/* Section 6. */
static const struct row frames[] = {
	{"6.1", "DATA on stream 0", {{DATA, 0, 0, P("x"), 0}}, TO_END(PROTOCOL_ERROR)},
	{"6.1", "padding, and nothing else", {POST_1, {DATA, PADDED, 1, P("\5xxxxx"), 0}},
		TO_GO_ON},
	{"6.1", "padding as long as the payload", {POST_1, {DATA, PADDED, 1, P("\6xxxxx"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.1", "! no room for its length", {POST_1, {DATA, PADDED, 1, P(""), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.2", "padding beyond the payload", {{HEADERS, 13, 1, P("\x20" GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.2", "padding and priority", {{HEADERS, 45, 1, P("\2\0\0\0\0\1" GET_BLOCK "xx"), 0}},
		TO_GO_ON},
	{"6.2", "no room for the priority", {{HEADERS, 37, 1, P("\0\0\0\0"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.2", "HEADERS followed by DATA", {BEGUN_1, {DATA, 0, 1, P("x"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.3", "PRIORITY on stream 0", {{PRIORITY, 0, 0, P("\0\0\0\1\1"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.3", "PRIORITY of 4 bytes", {POST_1, {PRIORITY, 0, 1, P("\0\0\0\0"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.4", "RST_STREAM on stream 0", {{RST_STREAM, 0, 0, P("\0\0\0\x8"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.4", "RST_STREAM of 3 bytes", {POST_1, {RST_STREAM, 0, 1, P("\0\0\0"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.4", "RST_STREAM of 5 bytes", {POST_1, {RST_STREAM, 0, 1, P("\0\0\0\0\0"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.5", "an ACK that says something", {{SETTINGS, ACK, 0, P("\0\3\0\0\0\1"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.5", "SETTINGS on a stream", {POST_1, {SETTINGS, 0, 1, P("\0\3\0\0\0\1"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.5", "SETTINGS of 5 bytes", {{SETTINGS, 0, 0, P("\0\3\0\0\0"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.5.2", "ENABLE_PUSH 2", {{SETTINGS, 0, 0, P("\0\2\0\0\0\2"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.5.2", "ENABLE_PUSH 1", {{SETTINGS, 0, 0, P("\0\2\0\0\0\1"), 0}}, TO_GO_ON},
	{"6.5.2", "a window above 2^31-1", {{SETTINGS, 0, 0, P("\0\4\x80\0\0\0"), 0}},
		TO_END(FLOW_CONTROL_ERROR)},
	{"6.5.2", "a window of 2^31-1", {{SETTINGS, 0, 0, P("\0\4\x7f\xff\xff\xff"), 0}}, TO_GO_ON},
	{"6.5.2", "frames below 2^14", {{SETTINGS, 0, 0, P("\0\5\0\0\x3f\xff"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.5.2", "frames of 2^24", {{SETTINGS, 0, 0, P("\0\5\1\0\0\0"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.5.2", "frames of 2^24-1", {{SETTINGS, 0, 0, P("\0\5\0\xff\xff\xff"), 0}}, TO_GO_ON},
	{"6.5.2", "a setting that is not known", {{SETTINGS, 0, 0, P("\0\xff\0\0\0\1"), 0}},
		TO_GO_ON},
	{"6.5.2", "no table at all", {{SETTINGS, 0, 0, P("\0\1\0\0\0\0"), 0}}, TO_GO_ON},
	{"6.5.3", "the same setting twice", {{SETTINGS, 0, 0, P("\0\4\0\0\0\1\0\4\0\0\0\2"), 0}},
		TO_GO_ON},
	{"6.5.3", "an ACK of nothing", {{SETTINGS, ACK, 0, P(""), 0}, {SETTINGS, ACK, 0, P(""), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.6", "PUSH_PROMISE", {POST_1, {PUSH_PROMISE, 4, 1, P("\0\0\0\2" GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.7", "PING on a stream", {{PING, 0, 1, P("12345678"), 0}}, TO_END(PROTOCOL_ERROR)},
	{"6.7", "PING of 6 bytes", {{PING, 0, 0, P("123456"), 0}}, TO_END(FRAME_SIZE_ERROR)},
	{"6.7", "PING of 9 bytes", {{PING, 0, 0, P("123456789"), 0}}, TO_END(FRAME_SIZE_ERROR)},
	{"6.7", "an ACK of no PING", {{PING, ACK, 0, P("12345678"), 0}}, TO_GO_ON},
	{"6.8", "GOAWAY on a stream", {POST_1, {GOAWAY, 0, 1, P("\0\0\0\0\0\0\0\0"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.8", "GOAWAY of 7 bytes", {{GOAWAY, 0, 0, P("\0\0\0\0\0\0\0"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.9", "a window of 0 more", {{WINDOW_UPDATE, 0, 0, P("\0\0\0\0"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.9", "... for a stream", {POST_1, {WINDOW_UPDATE, 0, 1, P("\0\0\0\0"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.9", "the reserved bit", {{WINDOW_UPDATE, 0, 0, P("\x80\0\0\1"), 0}}, TO_GO_ON},
	{"6.9", "WINDOW_UPDATE of 3 bytes", {{WINDOW_UPDATE, 0, 0, P("\0\0\1"), 0}},
		TO_END(FRAME_SIZE_ERROR)},
	{"6.9.1", "a window above 2^31-1", {{WINDOW_UPDATE, 0, 0, P("\x7f\xff\xff\xff"), 0}},
		TO_END(FLOW_CONTROL_ERROR)},
	{"6.9.1", "... for a stream", {POST_1, {WINDOW_UPDATE, 0, 1, P("\x7f\xff\xff\xff"), 0}},
		TO_RESET(FLOW_CONTROL_ERROR)},
	{"6.9.2", "! ... by a setting",
		{POST_1, {WINDOW_UPDATE, 0, 1, P("\x7f\xff\0\0"), 0},
			{SETTINGS, 0, 0, P("\0\4\0\2\0\0"), 0}},
		TO_RESET(FLOW_CONTROL_ERROR)},
	{"6.10", "CONTINUATION of a whole head", {GET_1, {CONTINUATION, 4, 1, P("\0\1x\1y"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.10", "... on stream 0", {BEGUN_1, {CONTINUATION, 4, 0, P("\0\1x\1y"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.10", "... of another stream", {BEGUN_1, {CONTINUATION, 4, 3, P("\0\1x\1y"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.10", "... behind DATA",
		{POST_1, {DATA, 0, 1, P("x"), 0}, {CONTINUATION, 4, 1, P(""), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.10", "several",
		{BEGUN_1, {CONTINUATION, 0, 1, P("\0\1x\1y"), 0}, {CONTINUATION, 0, 1, P(""), 0},
			{CONTINUATION, 4, 1, P("\0\1z\1y"), 0}},
		TO_GO_ON},
};

/* Sections 7 and 8. */
static const struct row messages[] = {
	{"7", "RST_STREAM with an unknown code", {POST_1, {RST_STREAM, 0, 1, P("\0\0\0\xff"), 0}},
		TO_GO_ON},
	{"8.1", "trailers that do not end the stream",
		{POST_1, {HEADERS, END_HEADERS, 1, P("\0\1x\1y"), 0}}, TO_RESET(PROTOCOL_ERROR)},
	{"8.1", "trailers", {POST_1, {HEADERS, 5, 1, P("\0\1x\1y"), 0}}, TO_GO_ON},
	{"8.1", "a pseudo-field in trailers", {POST_1, {HEADERS, 5, 1, P("\x84"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.1.1", "less than Content-Length",
		{HEAD_WITH("\0\xe"
			   "content-length\1"
			   "1")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.1.1", "more than Content-Length",
		{{HEADERS, 4, 1,
			 P(POST_BLOCK "\0\xe"
				      "content-length\1"
				      "1"),
			 0},
			{DATA, END_STREAM, 1, P("xx"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.2.1", "an upper-case name", {HEAD_WITH("\0\1X\1y")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.2.1", "a colon in a name", {HEAD_WITH("\0\3x:y\1y")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.2.1", "a NUL in a value", {HEAD_WITH("\0\1x\1\0")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.2.1", "a line break in a value", {HEAD_WITH("\0\1x\1\n")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.2.1", "a blank before a value", {HEAD_WITH("\0\1x\2 y")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.2.2", "Connection",
		{HEAD_WITH("\0\xa"
			   "connection\5close")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.2.2", "TE but trailers", {HEAD_WITH("\0\2te\4gzip")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.2.2", "TE: trailers", {HEAD_WITH("\0\2te\x8trailers")}, TO_GO_ON},
	{"8.3", "a pseudo-field that is not defined", {HEAD_WITH("\0\5:test\1y")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3", "one of responses", {HEAD_WITH("\x88")}, TO_RESET(PROTOCOL_ERROR)},
	{"8.3", "one behind a field",
		{HEAD_OF("\x82\x87\0\1x\1y\x84\x01\x06"
			 "a.test")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", "an empty :path",
		{HEAD_OF("\x82\x87\x04\0\x01\x06"
			 "a.test")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", "no :method",
		{HEAD_OF("\x87\x84\x01\x06"
			 "a.test")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", "no :scheme",
		{HEAD_OF("\x82\x84\x01\x06"
			 "a.test")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", "no :path",
		{HEAD_OF("\x82\x87\x01\x06"
			 "a.test")},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", ":method twice", {HEAD_OF("\x82" GET_BLOCK)}, TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", ":scheme twice", {HEAD_OF("\x87" GET_BLOCK)}, TO_RESET(PROTOCOL_ERROR)},
	{"8.3.1", ":path twice", {HEAD_OF("\x84" GET_BLOCK)}, TO_RESET(PROTOCOL_ERROR)},
	{"8.5", "CONNECT with :path",
		{HEAD_OF("\x02\7CONNECT\x84\x01\x06"
			 "a.test")},
		TO_RESET(PROTOCOL_ERROR)},
};

#define OK_1                                                                                       \
	{                                                                                          \
		HEADERS, END_HEADERS, 1, P("\x88"), 0                                              \
	}

/* What an origin sends, on stream 1 of which it has a GET. */
static const struct row origins[] = {
	{"3.4", "no SETTINGS at first", {{PING, 0, 0, P("12345678"), 0}}, TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: HEADERS", {SETTINGS_0, {HEADERS, 4, 3, P("\x88"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: DATA", {SETTINGS_0, {DATA, 0, 3, P("x"), 0}}, TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: RST_STREAM", {SETTINGS_0, {RST_STREAM, 0, 3, P("\0\0\0\x8"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1", "idle: WINDOW_UPDATE", {SETTINGS_0, {WINDOW_UPDATE, 0, 3, P("\0\0\0\1"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"5.1.1", "a stream of the origin's", {SETTINGS_0, {HEADERS, 4, 2, P("\x88"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.5.2", "ENABLE_PUSH of a server", {{SETTINGS, 0, 0, P("\0\2\0\0\0\1"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"6.6", "a push, by an origin that may not know yet",
		{SETTINGS_0, {PUSH_PROMISE, 4, 1, P("\0\0\0\2" GET_BLOCK), 0}}, TO_RESET(CANCEL)},
	{"6.6", "... that knows that none is wanted",
		{SETTINGS_0, {SETTINGS, ACK, 0, P(""), 0},
			{PUSH_PROMISE, 4, 1, P("\0\0\0\2" GET_BLOCK), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"8.1", "DATA before the head", {SETTINGS_0, {DATA, 0, 1, P("x"), 0}},
		TO_END(PROTOCOL_ERROR)},
	{"8.1", "trailers that do not end the stream",
		{SETTINGS_0, OK_1, {HEADERS, 4, 1, P("\0\1x\1y"), 0}}, TO_RESET(PROTOCOL_ERROR)},
	{"8.1", "an interim answer that ends the stream",
		{SETTINGS_0, {HEADERS, 5, 1,
				     P("\x08\3"
				       "103"),
				     0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.1.1", "more than Content-Length",
		{SETTINGS_0,
			{HEADERS, 4, 1,
				P("\x88\0\xe"
				  "content-length\1"
				  "1"),
				0},
			{DATA, END_STREAM, 1, P("xx"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.1.1", "less than Content-Length",
		{SETTINGS_0, {HEADERS, 5, 1,
				     P("\x88\0\xe"
				       "content-length\1"
				       "1"),
				     0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.2.1", "an upper-case name", {SETTINGS_0, {HEADERS, 5, 1, P("\x88\0\1X\1y"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.2.2", "Connection",
		{SETTINGS_0, {HEADERS, 5, 1,
				     P("\x88\0\xa"
				       "connection\5close"),
				     0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3", "a pseudo-field of requests", {SETTINGS_0, {HEADERS, 5, 1, P("\x88\x84"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.2", "no :status", {SETTINGS_0, {HEADERS, 5, 1, P("\0\1x\1y"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.3.2", ":status twice", {SETTINGS_0, {HEADERS, 5, 1, P("\x88\x88"), 0}},
		TO_RESET(PROTOCOL_ERROR)},
	{"8.6", "status 101",
		{SETTINGS_0, {HEADERS, 4, 1,
				     P("\x08\3"
				       "101"),
				     0}},
		TO_RESET(PROTOCOL_ERROR)},
};

static void send_raw(const struct raw *r)
{
	static const char zeros[MAX_FRAME + 1];
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * sizeof(zeros));

	must(buf_add_str(&b, r->payload) == 0 && buf_add(&b, zeros, r->zeros) == 0);
	frame(r->type, r->flags, r->id, buf_str(&b));
}

static void answer_first(void)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;

	must(s.legs_n == 1 && http_head_set_response(&head, 200, STR_NULL) >= 0);
	must(h2_respond(s.legs[0].st, &head, H2_END) == 0);
}

/* The connection is as good as before. */
static bool goes_on(bool is_server)
{
	unsigned acks = seen.acks;

	if (is_server)
		frame(HEADERS, END_HEADERS | END_STREAM, 99, (struct str)P(GET_BLOCK));
	frame(PING, 0, 0, STR("12345678"));
	play();
	return alive && seen.acks == acks + 1 &&
	       (!is_server || (s.legs_n > 0 && s.legs[s.legs_n - 1].id == 99));
}

/* As begin(), for an origin. */
static void begin_client(void)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	struct leg *l;

	must(side_try(&s, H2_CLIENT, 128 * 1024, 1024 * 1024) == 0);
	in = BUF_INIT(1024 * 1024);
	alive = true;
	memset(&seen, 0, sizeof(seen));
	seen.reset = seen.goaway = -1;
	must(http_head_set_request(&head, STR("GET"), STR("https"), STR("a.test"), 0, STR("/")) ==
		0);
	l = leg_new(&s);
	must(h2_request(s.h, &head, H2_END, l, &l->st) == 0);
	check_int(h2_output(s.h, &s.out, OUT_ENOUGH), 0);
	buf_clear(&s.out);
}

static void check_row(const struct row *row, bool is_server)
{
	int32_t reset = row->outcome == STREAM ? (int32_t)row->code : -1;
	int32_t goaway = row->outcome == CONNECTION ? (int32_t)row->code : -1;

	if (is_server)
		begin();
	else
		begin_client();
	for (size_t i = 0; i < FRAMES_MAX; i++) {
		if (i > 0 && !row->frames[i].type && !row->frames[i].id)
			break;
		send_raw(&row->frames[i]);
		play();
		if (i == 0 && row->answered)
			answer_first();
	}
	play();
	if (seen.reset != reset || seen.resets != (reset >= 0) || seen.goaway != goaway ||
		(row->outcome == CONNECTION ? alive : !goes_on(is_server)))
		tap_fail("%s, %s: reset %d, goaway %d, alive %d", row->section, row->what,
			seen.reset, seen.goaway, alive);
	done();
}

static void test_framing(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		check_row(&framing[i], true);
}

static void test_frames(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		check_row(&frames[i], true);
}

static void test_messages(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		check_row(&messages[i], true);
}

static void test_origins(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(origins); i++)
		check_row(&origins[i], false);
}

/* RFC 9113 3.4: neither anything else, nor another frame first. */
static void test_preface(void)
{
	static const struct raw ping = {PING, 0, 0, P("12345678"), 0};

	must(side_try(&s, H2_SERVER, 65536, 65536) == 0);
	check(h2_feed(s.h, STR("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")) < 0);
	side_done(&s);
	begin_with(STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	send_raw(&ping);
	play();
	check(!alive && seen.goaway == H2_PROTOCOL_ERROR);
	done();
}

/* RFC 9113 5.1.2: the streams that are allowed go on. */
static void test_streams(void)
{
	begin();
	for (unsigned i = 0; i < H2_STREAMS_MAX; i++)
		request(END_STREAM, GOOD);
	play();
	check_int(seen.reset, -1);
	request(END_STREAM, GOOD);
	play();
	check(alive && seen.goaway < 0);
	check_int(seen.reset, H2_REFUSED_STREAM);
	check_int(seen.reset_id, 2 * H2_STREAMS_MAX + 1);
	check_int(s.legs_n, H2_STREAMS_MAX);
	done();
}

/* RFC 9113 6.9.1: more than our window of a stream allows. */
static void test_window(void)
{
	begin();
	s.keeps = true;
	request(0, POST);
	frame(SETTINGS, ACK, 0, STR(""));
	for (unsigned i = 0; i < 128 * 1024 / MAX_FRAME; i++)
		send_raw(&(struct raw){DATA, 0, 1, STR_NULL, MAX_FRAME});
	play();
	check_int(seen.reset, -1);
	frame(DATA, 0, 1, STR("x"));
	play();
	check(alive && seen.goaway < 0);
	check_int(seen.reset, H2_FLOW_CONTROL_ERROR);
	check_int(s.legs[0].received, 128 * 1024);
	done();
}

/* RFC 9113 6.5.3 and 6.7: each is acknowledged, a PING with its bytes; an ACK is not. */
static void test_acknowledged(void)
{
	struct str out;

	begin();
	check_int(seen.settings_acks, 1);
	frame(PING, ACK, 0, STR("12345678"));
	for (unsigned i = 0; i < 3; i++) {
		frame(SETTINGS, 0, 0, STR(""));
		frame(PING, 0, 0, STR("abcdefgh"));
	}
	must(h2_feed(s.h, buf_str(&in)) == 0);
	buf_clear(&in);
	check_int(h2_output(s.h, &s.out, OUT_ENOUGH), 0);
	out = buf_str(&s.out);
	check(str_find(out, STR("\0\0\x8\6\1\0\0\0\0"
				"abcdefgh")) < out.n);
	see(&s.out);
	check_int(seen.settings_acks, 4);
	check_int(seen.acks, 3);
	done();
}

int main(void)
{
	run_test(test_framing);
	run_test(test_frames);
	run_test(test_messages);
	run_test(test_origins);
	run_test(test_preface);
	run_test(test_streams);
	run_test(test_window);
	run_test(test_acknowledged);
	return tap_done();
}
