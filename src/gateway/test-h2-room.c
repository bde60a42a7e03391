/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/test-h2-room.h"

struct rig rig;

bool has(const struct buf *b, const char *text)
{
	return str_find(buf_str(b), str_from(text)) < buf_len(b);
}

void room_start(struct room *r, uint32_t stream_window, uint32_t window)
{
	r->fed = 0;
	must(client_connect_tls(&r->c, &rig, "a.test"));
	must(tls_client_is_h2(r->c.tls));
	must(side_try(&r->s, H2_CLIENT, stream_window, window) == 0);
}

void room_stop(struct room *r)
{
	side_done(&r->s);
	client_close(&r->c);
}

void room_say(struct room *r)
{
	must(h2_output(r->s.h, &r->s.out, OUT_ENOUGH) == 0);
	while (buf_len(&r->s.out) > 0) {
		client_send_str(&r->c, buf_str(&r->s.out));
		buf_clear(&r->s.out);
		must(h2_output(r->s.h, &r->s.out, OUT_ENOUGH) == 0);
	}
}

bool room_turn(struct room *r, int timeout_ms)
{
	bool alive;

	room_say(r);
	alive = client_read(&r->c, timeout_ms) || !r->c.ended;
	if (buf_len(&r->c.in) > 0)
		r->fed = h2_feed(r->s.h, buf_str(&r->c.in));
	buf_clear(&r->c.in);
	if (r->fed == 0)
		room_say(r);
	return alive;
}

void room_settle(struct room *r)
{
	for (int i = 0; i < 100 && r->s.settings == 0; i++)
		(void)room_turn(r, 50);
	must(r->s.settings > 0);
}

bool room_told(struct room *r, const char *text)
{
	uint64_t until = clock_mono_usec() + 5 * USEC_PER_SEC;

	while (!has(&r->s.log, text)) {
		if (clock_mono_usec() > until || !room_turn(r, 100)) {
			printf("# not told %s, but %s\n", text, side_log(&r->s));
			return false;
		}
	}
	return true;
}

struct leg *room_prepare(struct room *r, const struct ask *a)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	struct leg *l = leg_new(&r->s);
	const char *host = a->host ? a->host : "a.test";
	struct str rest = str_from(a->fields);

	must(http_head_set_request(&h, str_from(a->method ? a->method : "GET"), STR("https"),
		     str_from(host), rig.port, str_from(a->target ? a->target : "/")) == 0);
	while (rest.n > 0) {
		struct str line = str_prefix(rest, str_chr(rest, '\n'));
		size_t colon = str_chr(line, ':');

		must(http_fields_add(&h.fields, str_prefix(line, colon),
			     str_trim(str_from_index(line, colon + 1))) == 0);
		rest = str_from_index(rest, line.n + 1);
	}
	if (a->body || a->goes_on)
		http_head_set_body(&h, a->length ? HTTP_BODY_LENGTH : HTTP_BODY_CHUNKED, a->length);
	if (a->body)
		must(buf_add_str(&l->out, str_from(a->body)) == 0);
	must(h2_request(r->s.h, &h, a->flags | (a->body || a->goes_on ? 0 : H2_END), l, &l->st) ==
		0);
	l->id = h2_stream_id(l->st);
	if (a->body && !a->goes_on)
		must(h2_end(l->st, NULL) == 0);
	return l;
}

struct leg *room_ask(struct room *r, const struct ask *a)
{
	struct leg *l = room_prepare(r, a);

	room_say(r);
	return l;
}
