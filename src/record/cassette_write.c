/* SPDX-License-Identifier: Apache-2.0 */
#include "record/cassette_write.h"
#include "base/base64.h"
#include "base/jsonout.h"

static void begin(struct jsonout *o, uint64_t usec, uint64_t number)
{
	jsonout_open(o, NULL, '{');
	jsonout_number(o, "t", usec);
	if (number)
		jsonout_number(o, "e", number);
}

static int finish(struct jsonout *o)
{
	jsonout_close(o, '}');
	return o->error < 0 ? o->error : buf_add_char(o->b, '\n');
}

/* Write each byte as one character. */
static int cassette_write_add_bytes(struct buf *b, struct str s)
{
	int r = buf_add_char(b, '"');

	for (size_t i = 0; r == 0 && i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < ' ' || c >= 0x7f)
			r = buf_printf(b, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			r = buf_printf(b, "\\%c", c);
		else
			r = buf_add_char(b, s.p[i]);
	}
	return r < 0 ? r : buf_add_char(b, '"');
}

static void add_value(struct jsonout *o, struct str s)
{
	jsonout_raw(o, NULL, STR("")); /* adds the comma */
	if (o->error == 0)
		o->error = cassette_write_add_bytes(o->b, s);
}

static void add_headers(struct jsonout *o, const char *key, const struct cassette_headers *headers)
{
	jsonout_open(o, key, '[');
	for (unsigned i = 0; i < headers->n; i++) {
		struct str name, value;

		headers->get(headers->of, i, &name, &value);
		jsonout_open(o, NULL, '[');
		add_value(o, name);
		add_value(o, value);
		jsonout_close(o, ']');
	}
	jsonout_close(o, ']');
}

int cassette_write_request(struct buf *out, uint64_t usec, uint64_t number, struct str method,
	struct str url, const struct cassette_headers *headers)
{
	struct jsonout o = {.b = out};

	begin(&o, usec, number);
	jsonout_open(&o, "request", '{');
	jsonout_str(&o, "method", method);
	jsonout_str(&o, "url", url);
	add_headers(&o, "headers", headers);
	jsonout_close(&o, '}');
	return finish(&o);
}

int cassette_write_refused(
	struct buf *out, uint64_t usec, uint64_t number, unsigned status, struct str reason)
{
	struct jsonout o = {.b = out};

	begin(&o, usec, number);
	jsonout_open(&o, "refused", '{');
	jsonout_number(&o, "status", status);
	jsonout_str(&o, "reason", reason);
	jsonout_close(&o, '}');
	return finish(&o);
}

int cassette_write_response(struct buf *out, uint64_t usec, uint64_t number, unsigned status,
	const struct cassette_headers *headers)
{
	struct jsonout o = {.b = out};

	begin(&o, usec, number);
	jsonout_open(&o, "response", '{');
	jsonout_number(&o, "status", status);
	add_headers(&o, "headers", headers);
	jsonout_close(&o, '}');
	return finish(&o);
}

int cassette_write_piece(
	struct buf *out, uint64_t usec, uint64_t number, const char *key, struct str bytes)
{
	struct jsonout o = {.b = out};

	begin(&o, usec, number);
	jsonout_raw(&o, key, STR("\""));
	if (o.error == 0)
		o.error = base64_encode(out, bytes);
	if (o.error == 0)
		o.error = buf_add_char(out, '"');
	return finish(&o);
}

int cassette_write_end(struct buf *out, uint64_t usec, uint64_t number, const char *key,
	const struct cassette_headers *trailers, const char *error)
{
	struct jsonout o = {.b = out};

	begin(&o, usec, number);
	jsonout_bool(&o, key, true);
	if (trailers && trailers->n > 0)
		add_headers(&o, "trailers", trailers);
	if (error)
		jsonout_text(&o, "error", error);
	return finish(&o);
}

int cassette_write_word(struct buf *out, uint64_t usec, uint64_t number, const char *key)
{
	return cassette_write_end(out, usec, number, key, NULL, NULL);
}
