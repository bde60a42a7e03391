/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a frame's head is gathered byte by byte, because it is short and what it
 * means depends on its first two bytes; its payload is handed out as views of the input. */
#include "http/ws.h"
#include "base/base64.h"
#include "base/rand.h"
#include "base/sha1.h"
#include "base/utf8.h"

#include <endian.h>
#include <string.h>

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0f, MASKED = 0x80, LENGTH = 0x7f };
enum { NO_CODE = 1005 };

struct ws_reader ws_reader(enum ws_side side)
{
	return (struct ws_reader){.side = side};
}

static enum ws_result ws_broken(struct ws_reader *r, enum ws_error e)
{
	r->error = e;
	return WS_ERROR;
}

static bool is_control(enum ws_opcode opcode)
{
	return opcode >= WS_CLOSE;
}

/* Length of the head, which its first two bytes determine. */
static unsigned head_length(const unsigned char *head)
{
	unsigned n = head[1] & MASKED ? 6 : 2, length = head[1] & LENGTH;

	return length == 127 ? n + 8 : length == 126 ? n + 2 : n;
}

/* Check that the first byte fits what came before. */
static enum ws_error judge_first(const struct ws_reader *r)
{
	unsigned opcode = r->head[0] & OPCODE;
	bool fin = r->head[0] & FIN;

	if (r->head[0] & RESERVED)
		return WS_E_RESERVED;
	switch (opcode) {
	case WS_CONTINUATION:
		return r->in_message ? WS_E_OK : WS_E_CONTINUATION;
	case WS_TEXT:
	case WS_BINARY:
		return r->in_message ? WS_E_CONTINUATION : WS_E_OK;
	case WS_CLOSE:
	case WS_PING:
	case WS_PONG:
		return fin ? WS_E_OK : WS_E_CONTROL;
	default:
		return WS_E_OPCODE;
	}
}

static enum ws_error judge_second(const struct ws_reader *r)
{
	bool masked = r->head[1] & MASKED;

	if (masked != (r->side == WS_FROM_CLIENT))
		return masked ? WS_E_MASKED : WS_E_UNMASKED;
	if (is_control(r->head[0] & OPCODE) && (r->head[1] & LENGTH) > WS_CONTROL_MAX)
		return WS_E_CONTROL;
	return WS_E_OK;
}

static enum ws_error read_length(const struct ws_reader *r, uint64_t *ret)
{
	unsigned length = r->head[1] & LENGTH;
	uint16_t n16;
	uint64_t n64;

	if (length < 126) {
		*ret = length;
		return WS_E_OK;
	}
	if (length == 126) {
		memcpy(&n16, r->head + 2, sizeof(n16));
		*ret = be16toh(n16);
		return *ret < 126 ? WS_E_LENGTH : WS_E_OK;
	}
	memcpy(&n64, r->head + 2, sizeof(n64));
	*ret = be64toh(n64);
	return *ret <= UINT16_MAX || *ret > INT64_MAX ? WS_E_LENGTH : WS_E_OK;
}

/* The head is complete. */
static enum ws_error begin_frame(struct ws_reader *r)
{
	struct ws_frame *f = &r->frame;
	uint64_t length;
	enum ws_error e = read_length(r, &length);

	if (e != WS_E_OK)
		return e;
	if (length > WS_FRAME_MAX)
		return WS_E_FRAME_SIZE;
	*f = (struct ws_frame){.fin = r->head[0] & FIN,
		.masked = r->head[1] & MASKED,
		.opcode = r->head[0] & OPCODE,
		.length = length};
	if (f->masked)
		memcpy(f->mask, r->head + r->have - sizeof(f->mask), sizeof(f->mask));
	if (!is_control(f->opcode)) {
		r->message += length;
		if (r->message > WS_MESSAGE_MAX)
			return WS_E_MESSAGE_SIZE;
	}
	r->left = length;
	r->have = 0;
	return WS_E_OK;
}

/* RFC 6455 7.4: codes that may be in a frame. 1012 to 1014 were registered later. */
static bool is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

static enum ws_error judge_close(struct ws_reader *r)
{
	char text[WS_CONTROL_MAX];
	size_t n = (size_t)r->frame.length;
	unsigned code;

	if (n == 0) {
		r->counts.close_code = NO_CODE;
		return WS_E_OK;
	}
	if (n == 1)
		return WS_E_CLOSE;
	memcpy(text, r->control, n);
	if (r->frame.masked)
		ws_mask(text, n, r->frame.mask, 0);
	code = (unsigned)(unsigned char)text[0] << 8 | (unsigned char)text[1];
	if (!is_close_code(code) || !utf8_is_valid(str_make(text + 2, n - 2)))
		return WS_E_CLOSE;
	r->counts.close_code = (uint16_t)code;
	return WS_E_OK;
}

/* Report the frame: a data frame after its head, a control frame when it is complete. */
static enum ws_result give_head(struct ws_reader *r)
{
	struct ws_frame *f = &r->frame;

	r->counts.frames++;
	r->counts.bytes += f->length;
	if (is_control(f->opcode)) {
		r->give_control = f->length > 0;
		r->closed = f->opcode == WS_CLOSE;
		return WS_HEAD;
	}
	r->in_message = !f->fin;
	if (f->fin) {
		r->counts.messages++;
		r->message = 0;
	}
	return WS_HEAD;
}

/* WS_MORE if the head is not complete. */
static enum ws_result read_head(struct ws_reader *r, struct str *in)
{
	enum ws_error e = WS_E_OK;

	while (e == WS_E_OK && in->n > 0) {
		r->head[r->have++] = (unsigned char)in->p[0];
		*in = str_from_index(*in, 1);
		if (r->have == 1) {
			e = judge_first(r);
			continue;
		}
		if (r->have == 2)
			e = judge_second(r);
		if (e != WS_E_OK || r->have < head_length(r->head))
			continue;
		e = begin_frame(r);
		if (e == WS_E_OK)
			return WS_HEAD;
	}
	return e == WS_E_OK ? WS_MORE : ws_broken(r, e);
}

static enum ws_result read_control(struct ws_reader *r, struct str *in)
{
	size_t n = (size_t)MIN((uint64_t)in->n, r->left);
	enum ws_error e = WS_E_OK;

	if (n > 0)
		memcpy(r->control + r->have, in->p, n);
	*in = str_from_index(*in, n);
	r->have += (unsigned)n;
	r->left -= n;
	if (r->left > 0)
		return WS_MORE;
	r->have = 0;
	if (r->frame.opcode == WS_CLOSE)
		e = judge_close(r);
	return e == WS_E_OK ? give_head(r) : ws_broken(r, e);
}

static enum ws_result read_data(struct ws_reader *r, struct str *in, struct str *ret_piece)
{
	size_t n = (size_t)MIN((uint64_t)in->n, r->left);

	*ret_piece = str_prefix(*in, n);
	*in = str_from_index(*in, n);
	r->left -= n;
	return WS_DATA;
}

enum ws_result ws_read(struct ws_reader *r, struct str *in, struct str *ret_piece)
{
	enum ws_result result;

	if (r->error != WS_E_OK)
		return WS_ERROR;
	if (r->give_control) {
		r->give_control = false;
		*ret_piece = str_make(r->control, (size_t)r->frame.length);
		return WS_DATA;
	}
	if (r->closed)
		return WS_CLOSED;
	if (in->n == 0)
		return WS_MORE;
	if (r->left > 0)
		return is_control(r->frame.opcode) ? read_control(r, in)
						   : read_data(r, in, ret_piece);
	result = read_head(r, in);
	if (result != WS_HEAD)
		return result;
	if (!is_control(r->frame.opcode))
		return give_head(r);
	/* A control frame without payload is complete now. */
	return r->left > 0 && in->n == 0 ? WS_MORE : read_control(r, in);
}

bool ws_reader_is_between(const struct ws_reader *r)
{
	return r->have == 0 && r->left == 0 && !r->give_control;
}

const char *ws_error_text(enum ws_error e)
{
	static const char *const texts[] = {
		[WS_E_OK] = "no error",
		[WS_E_RESERVED] = "a WebSocket frame has a reserved bit set",
		[WS_E_OPCODE] = "a WebSocket frame has a reserved opcode",
		[WS_E_UNMASKED] = "a WebSocket frame of a client is not masked",
		[WS_E_MASKED] = "a WebSocket frame of a server is masked",
		[WS_E_LENGTH] = "the length of a WebSocket frame is not in its shortest form",
		[WS_E_CONTROL] = "a WebSocket control frame is fragmented or longer than 125 bytes",
		[WS_E_CONTINUATION] =
			"a WebSocket frame continues no message, or begins one within another",
		[WS_E_CLOSE] = "a WebSocket close frame has an invalid code or reason",
		[WS_E_FRAME_SIZE] = "a WebSocket frame is longer than 16 MiB",
		[WS_E_MESSAGE_SIZE] = "a WebSocket message is longer than 64 MiB",
	};

	return texts[e];
}

uint16_t ws_error_code(enum ws_error e)
{
	return e == WS_E_FRAME_SIZE || e == WS_E_MESSAGE_SIZE ? 1009 : 1002;
}

size_t ws_write_head(char to[WS_HEAD_MAX], const struct ws_frame *f)
{
	uint16_t n16 = htobe16((uint16_t)f->length);
	uint64_t n64 = htobe64(f->length);
	size_t n = 2;

	to[0] = (char)((f->fin ? FIN : 0) | (unsigned)f->opcode);
	if (f->length < 126) {
		to[1] = (char)f->length;
	} else if (f->length <= UINT16_MAX) {
		to[1] = 126;
		memcpy(to + n, &n16, sizeof(n16));
		n += sizeof(n16);
	} else {
		to[1] = 127;
		memcpy(to + n, &n64, sizeof(n64));
		n += sizeof(n64);
	}
	if (f->masked) {
		to[1] = (char)((unsigned char)to[1] | MASKED);
		memcpy(to + n, f->mask, sizeof(f->mask));
		n += sizeof(f->mask);
	}
	return n;
}

size_t ws_write_close(char to[4], uint16_t code)
{
	to[0] = (char)(FIN | WS_CLOSE);
	to[1] = code ? 2 : 0;
	to[2] = (char)(code >> 8);
	to[3] = (char)code;
	return code ? 4 : 2;
}

void ws_mask(char *p, size_t n, const unsigned char mask[4], uint64_t at)
{
	unsigned char turned[8];
	uint64_t word, key;
	size_t i = 0;

	for (size_t k = 0; k < sizeof(turned); k++)
		turned[k] = mask[(at + k) % 4];
	memcpy(&key, turned, sizeof(key));
	for (; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		word ^= key;
		memcpy(p + i, &word, sizeof(word));
	}
	for (; i < n; i++)
		p[i] = (char)((unsigned char)p[i] ^ turned[i % 4]);
}

bool ws_is_key(struct str key)
{
	/* Only two bits of the last digit belong to the 16 bytes. */
	return key.n == WS_KEY_LEN && str_ends(key, STR("==")) &&
	       str_is_all(str_prefix(key, WS_KEY_LEN - 2), STR_LOWER STR_UPPER STR_DIGITS "+/") &&
	       strchr("AQgw", key.p[WS_KEY_LEN - 3]);
}

/* Write n bytes in base64 with a terminator. bytes has two more, which are zero: what the
 * characters of these would be is padding. */
static void write_base64(const char *bytes, size_t n, char *ret)
{
	size_t padding = (3 - n % 3) % 3, length = (n + padding) / 3 * 4;

	base64_inner(str_make(bytes, n + padding), 0, ret);
	memset(ret + length - padding, '=', padding);
	ret[length] = '\0';
}

void ws_accept(struct str key, char ret[WS_ACCEPT_LEN + 1])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[WS_KEY_LEN + sizeof(guid)], digest[SHA1_BYTES + 2] = "";

	key = str_prefix(key, WS_KEY_LEN);
	memcpy(text, key.p, key.n);
	memcpy(text + key.n, guid, sizeof(guid) - 1);
	sha1_text(str_make(text, key.n + sizeof(guid) - 1), (uint8_t *)digest);
	write_base64(digest, SHA1_BYTES, ret);
}

void ws_make_key(char ret[WS_KEY_LEN + 1])
{
	char bytes[16 + 2] = "";

	rand_bytes(bytes, 16);
	write_base64(bytes, 16, ret);
}
