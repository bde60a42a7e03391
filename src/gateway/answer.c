/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/answer.h"
#include "gateway/conn.h"
#include "gateway/state.h"
#include "http/h1_write.h"

enum { DETAIL_MAX = 512, BODY_MAX = 8192 };

/* The bytes come from the room: shown as printable ASCII, anything else as \u00XX. */
static int add_text(struct buf *b, struct str s)
{
	int r = buf_add_char(b, '"');

	for (size_t i = 0; i < s.n && r >= 0; i++) {
		unsigned char ch = (unsigned char)s.p[i];

		if (ch < 0x20 || ch > 0x7e || ch == '"' || ch == '\\' || ch == '<')
			r = buf_printf(b, "\\u%04x", ch);
		else
			r = buf_add_char(b, (char)ch);
	}
	return r < 0 ? r : buf_add_char(b, '"');
}

static int add_body(struct buf *b, const struct answer *a)
{
	int r = buf_printf(b, "{\"error\": \"%s\", \"status\": %u, \"message\": ", a->code,
		(unsigned)a->status);

	if (r >= 0)
		r = add_text(b, str_from(a->message));
	if (r >= 0 && a->detail.n > 0)
		r = buf_add_str(b, STR(", \"detail\": "));
	if (r >= 0 && a->detail.n > 0)
		r = add_text(b, str_prefix(a->detail, DETAIL_MAX));
	return r < 0 ? r : buf_add_str(b, STR("}\n"));
}

static int add_head(struct conn *c, const struct answer *a, size_t length)
{
	struct http_head *h = &c->g->answer;
	unsigned flags = a->close ? H1_W_CLOSE : a->http10 ? H1_W_KEEP_ALIVE : 0;
	int r = http_head_set_response(h, a->status, STR_NULL);

	if (r >= 0)
		r = http_fields_add(&h->fields, STR("Content-Type"), STR("application/json"));
	if (r >= 0)
		r = http_fields_add(&h->fields, STR("Cache-Control"), STR("no-store"));
	if (r < 0)
		return r;
	http_head_set_body(h, HTTP_BODY_LENGTH, length);
	return h1_write_response(&c->out, h, flags, NULL);
}

void answer_write(struct conn *c, const struct answer *a)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(BODY_MAX);
	int r = add_body(&body, a);

	if (r >= 0)
		r = add_head(c, a, buf_len(&body));
	if (r >= 0 && !a->to_head)
		r = buf_add_str(&c->out, buf_str(&body));
	if (r < 0)
		conn_close(c);
	else
		conn_mark(c);
}
