/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/answer.h"
#include "gateway/conn.h"
#include "gateway/state.h"
#include "http/h1_write.h"

#include <arpa/inet.h>
#include <errno.h>

enum { DETAIL_MAX = 512 };

const struct answer answer_too_slow = {
	.status = 408,
	.code = "request_timeout",
	.message = "The request did not arrive in time.",
	.close = true,
};
const struct answer answer_no_response = {
	.status = 504,
	.code = "response_timeout",
	.message = "The host did not answer in time.",
	.close = true,
};
const struct answer answer_full = {
	.status = 503,
	.code = "gateway_full",
	.message = "The gateway has no room for this request now. Try again.",
	.close = true,
};
const struct answer answer_bad_response = {
	.status = 502,
	.code = "bad_response",
	.message = "The host's answer could not be understood.",
	.close = true,
};
const struct answer answer_failed = {
	.status = 502,
	.code = "upstream_failed",
	.message = "The connection to the host ended before it answered.",
	.close = true,
};
const struct answer answer_limit = {
	.status = 503,
	.code = "limit_reached",
	.message = "A limit of the gateway was reached. Try again later.",
	.close = true,
};

/* The bytes come from the room: shown as printable ASCII, anything else as \u00XX. */
static int add_escaped(struct buf *b, struct str s)
{
	int r = 0;

	for (size_t i = 0; i < s.n && r >= 0; i++) {
		unsigned char ch = (unsigned char)s.p[i];

		if (ch < 0x20 || ch > 0x7e || ch == '"' || ch == '\\' || ch == '<')
			r = buf_printf(b, "\\u%04x", ch);
		else
			r = buf_add_char(b, (char)ch);
	}
	return r;
}

static int add_text(struct buf *b, struct str s)
{
	int r = buf_add_char(b, '"');

	if (r >= 0)
		r = add_escaped(b, s);
	return r < 0 ? r : buf_add_char(b, '"');
}

/* Existing tools look for these members in a refusal by the allowlist. */
static int add_connect(struct buf *b, struct str host, uint16_t port)
{
	int r = buf_add_str(b, STR(", \"host\": \""));

	if (r >= 0)
		r = add_escaped(b, str_prefix(host, DETAIL_MAX));
	if (r >= 0 && port)
		r = buf_printf(b, ":%u", port);
	return r < 0 ? r
		     : buf_add_str(b, STR("\", \"path\": \"\", \"method\": \"CONNECT\", "
					  "\"reason\": \"connect\""));
}

static int add_body(struct buf *b, const struct answer *a)
{
	int r = buf_printf(b, "{\"error\": \"%s\", \"status\": %u, \"message\": ", a->code,
		(unsigned)a->status);

	if (r >= 0)
		r = add_text(b, str_from(a->message));
	if (r >= 0 && a->connect.n > 0)
		r = add_connect(b, a->connect, a->port);
	if (r >= 0 && a->detail.n > 0)
		r = buf_add_str(b, STR(", \"detail\": "));
	if (r >= 0 && a->detail.n > 0)
		r = add_text(b, str_prefix(a->detail, DETAIL_MAX));
	return r < 0 ? r : buf_add_str(b, STR("}\n"));
}

int answer_make(struct http_head *head, struct buf *body, const struct answer *a)
{
	int r = http_head_set_response(head, a->status, STR_NULL);

	if (r >= 0)
		r = http_fields_add(&head->fields, STR("Content-Type"), STR("application/json"));
	if (r >= 0)
		r = http_fields_add(&head->fields, STR("Cache-Control"), STR("no-store"));
	if (r >= 0)
		r = add_body(body, a);
	if (r >= 0)
		http_head_set_body(head, HTTP_BODY_LENGTH, buf_len(body));
	return r;
}

void answer_write(struct conn *c, const struct answer *a)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(ANSWER_BODY_MAX);
	unsigned flags = a->close ? H1_W_CLOSE : a->http10 ? H1_W_KEEP_ALIVE : 0;
	int r = answer_make(&c->g->answer, &body, a);

	if (r >= 0)
		r = h1_write_response(&c->out, &c->g->answer, flags);
	if (r >= 0 && !a->to_head)
		r = buf_add_str(&c->out, buf_str(&body));
	if (r < 0)
		conn_close(c);
	else
		conn_mark(c);
}

static int add_ssh_int(struct buf *b, uint32_t value)
{
	value = htonl(value);
	return buf_add(b, &value, sizeof(value));
}

/* The version line, and one packet in plain text, because no keys are exchanged yet. Its padding is
 * at least four bytes and makes its length a multiple of eight (RFC 4253 4.2, 6, 11.1). */
int answer_ssh(struct buf *out, struct str why)
{
	enum { DISCONNECT = 1, NOT_AVAILABLE = 7, LENGTH = 4, PADDING_MIN = 4 };
	static const char padding[PADDING_MIN + 7];
	uint32_t n = 1 + 1 + 4 + 4 + (uint32_t)why.n + 4;
	uint8_t pad = (uint8_t)(PADDING_MIN + (8 - (LENGTH + n + PADDING_MIN) % 8) % 8);
	int r;

	if (why.n > ANSWER_SSH_MAX)
		return -E2BIG;
	r = buf_add_str(out, STR("SSH-2.0-cloche\r\n"));
	if (r == 0)
		r = add_ssh_int(out, n + pad);
	if (r == 0)
		r = buf_add_char(out, (char)pad);
	if (r == 0)
		r = buf_add_char(out, DISCONNECT);
	if (r == 0)
		r = add_ssh_int(out, NOT_AVAILABLE);
	if (r == 0)
		r = add_ssh_int(out, (uint32_t)why.n);
	if (r == 0)
		r = buf_add_str(out, why);
	if (r == 0)
		r = add_ssh_int(out, 0); /* no language */
	return r == 0 ? buf_add(out, padding, pad) : r;
}
