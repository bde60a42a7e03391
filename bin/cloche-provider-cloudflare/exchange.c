/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"
#include "base/clock.h"
#include "config.h"
#include "http/body.h"
#include "http/h1.h"
#include "http/h1_write.h"
#include "http/ws.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EXCHANGE_PIECE = 16 * 1024, EXCHANGE_IN_MAX = 64 * 1024, EXCHANGE_REQUEST_MAX = 8 * 1024 };

/* One request, and its answer as far as it has come. */
struct exchange {
	struct service *service;
	const struct service_ask *ask;
	uint64_t until;
	char key[WS_KEY_LEN + 1]; /* of a handshake */
	struct buf request, body;
	struct http_head head;
	struct h1_parser parser;
	struct http_body reader;
};

/* --- the service --- */

static int service_refuse_place(int r, struct cloche_err *err)
{
	if (r == -EPERM)
		err_set(err, E_USAGE, "the key is not sent without TLS, but to this machine");
	else
		err_set(err, E_USAGE, "this is not the URL of a service");
	err_hint(err, "--place https://HOST[:PORT][/PATH], as wrangler deploy says it");
	return -E_USAGE;
}

int service_init(struct service *ret, const char *place, struct cloche_err *err)
{
	char key[KEY_MAX + 1];
	int r = key_find("CLOCHE_CLOUDFLARE_TOKEN", "CLOCHE_CLOUDFLARE_TOKEN_FILE",
		"the service's secret (ISOLATOR_TOKEN)", key, err);

	if (r == 0)
		snprintf(ret->key, sizeof(ret->key), "Bearer %s", key);
	explicit_bzero(key, sizeof(key));
	if (r < 0)
		return r;
	ret->line.sock = -1;
	ret->in = BUF_INIT(EXCHANGE_IN_MAX);
	r = place ? url_read(str_from(place), &ret->line.url) : 0;
	if (r < 0)
		return service_refuse_place(r, err);
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : err_nomem(err);
}

void service_done(struct service *s)
{
	line_close(&s->line);
	buf_done(&s->in);
	explicit_bzero(s->key, sizeof(s->key));
}

/* --- the request --- */

static int exchange_add_fields(struct exchange *x)
{
	const struct {
		const char *name, *value;
		bool wanted;
	} rows[] = {
		{"Authorization", x->service->key, true},
		{"User-Agent", "cloche/" CLOCHE_VERSION, true},
		{"Cloche-Version", CLOCHE_VERSION, true},
		{"Upgrade", "websocket", x->ask->joins},
		{"Sec-WebSocket-Version", "13", x->ask->joins},
		{"Sec-WebSocket-Key", x->key, x->ask->joins},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++)
		if (rows[i].wanted)
			r = http_fields_add(
				&x->head.fields, str_from(rows[i].name), str_from(rows[i].value));
	return r;
}

static int exchange_write(struct exchange *x, struct cloche_err *err)
{
	const struct url *u = &x->service->line.url;
	_cleanup_(buf_donep) struct buf target = BUF_INIT(EXCHANGE_REQUEST_MAX);
	int r = buf_printf(&target, "%.*s/far%s%s", STR_FMT(u->path), x->ask->id ? "?session=" : "",
		x->ask->id ? x->ask->id : "");

	if (x->ask->joins)
		ws_make_key(x->key);
	if (r == 0)
		r = http_head_set_request(&x->head, str_from(x->ask->method), STR(""), u->host,
			u->port, buf_str(&target));
	if (r == 0)
		r = exchange_add_fields(x);
	if (r == 0)
		r = h1_write_request(&x->request, &x->head, x->ask->joins ? H1_W_UPGRADE : 0, NULL);
	return r < 0 ? err_set(err, E_LIMIT, "the request is too long") : 0;
}

/* --- moving bytes --- */

static int exchange_wait(struct exchange *x, short events, struct cloche_err *err)
{
	struct pollfd p = {.fd = x->service->line.sock, .events = events};
	uint64_t now = clock_mono_usec();

	if (now >= x->until) {
		err_set(err, E_NETWORK, "%.*s says nothing for %d s",
			STR_FMT(x->service->line.url.text), x->ask->patience_sec);
		err_hint(err, "try again; see whether --place is the address of the service");
		return -E_NETWORK;
	}
	if (poll(&p, 1, (int)((x->until - now) / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
		return err_sys(err, errno, "wait for the service");
	return 0;
}

static int exchange_send(struct exchange *x, struct cloche_err *err)
{
	struct line *l = &x->service->line;
	int r = 0;

	while (r == 0 && buf_len(&x->request)) {
		ssize_t n = line_write(l, buf_data(&x->request), buf_len(&x->request));

		if (n < 0)
			return line_cut(l, err);
		buf_consume(&x->request, (size_t)n);
		r = n ? 0 : exchange_wait(x, POLLOUT, err);
	}
	return r;
}

/* Read more. Return 1 at the end. */
static int exchange_read(struct exchange *x, struct cloche_err *err)
{
	struct buf *in = &x->service->in;
	char *at;
	ssize_t n;
	int r = buf_reserve(in, EXCHANGE_PIECE, &at);

	if (r < 0)
		return err_set(err, E_LIMIT, "the service's answer is too long");
	n = line_read(&x->service->line, at, EXCHANGE_PIECE);
	if (n < 0)
		return 1;
	buf_commit(in, (size_t)n);
	return n ? 0 : exchange_wait(x, POLLIN, err);
}

/* --- the answer --- */

static int exchange_no_sense(const struct exchange *x, struct cloche_err *err)
{
	err_set(err, E_PROTOCOL, "%.*s answers in another way than the service does",
		STR_FMT(x->service->line.url.text));
	err_hint(err, "see whether --place is the address of services/cloudflare-isolator or of "
		      "\"cloche-far serve\"");
	return -E_PROTOCOL;
}

static int exchange_take_head(struct exchange *x, struct cloche_err *err)
{
	struct buf *in = &x->service->in;

	h1_parser_response(&x->parser, &x->head, x->ask->joins ? H1_UPGRADE_ASKED : 0);
	for (;;) {
		size_t used;
		enum h1_result result = h1_parse(&x->parser, buf_str(in), &used);
		int r = 0;

		buf_consume(in, used);
		if (result == H1_ERROR)
			return exchange_no_sense(x, err);
		if (result == H1_DONE && (x->head.status >= 200 || x->head.status == 101))
			return 0;
		if (result == H1_DONE)
			h1_parser_next(&x->parser);
		else
			r = exchange_read(x, err);
		if (r != 0)
			return r < 0 ? r : line_cut(&x->service->line, err);
	}
}

/* Take what has come of the body. Return 1 if it is complete. */
static int exchange_take_piece(struct exchange *x, struct cloche_err *err)
{
	struct buf *buf = &x->service->in;
	struct str in = buf_str(buf), data;
	enum http_body_result result;

	do {
		result = http_body_read(&x->reader, &in, &data);
		if (result == HTTP_BODY_DATA && buf_add_str(&x->body, data) < 0)
			return err_set(err, E_LIMIT, "the service's answer is too long");
	} while (result == HTTP_BODY_DATA);
	buf_consume(buf, buf_len(buf) - in.n);
	if (result == HTTP_BODY_BAD)
		return exchange_no_sense(x, err);
	return result == HTTP_BODY_DONE;
}

static int exchange_take_body(struct exchange *x, struct cloche_err *err)
{
	int r;

	http_body_init(&x->reader, &x->head, NULL);
	while ((r = exchange_take_piece(x, err)) == 0) {
		r = exchange_read(x, err);
		if (r < 0)
			return r;
		if (r > 0)
			return http_body_eof(&x->reader) < 0 ? line_cut(&x->service->line, err) : 0;
	}
	return r < 0 ? r : 0;
}

/* The answer to a handshake has to be one to this key. */
static int exchange_check_switch(struct exchange *x, struct cloche_err *err)
{
	struct str said = http_fields_get(&x->head.fields, STR("Sec-WebSocket-Accept"));
	char accept[WS_ACCEPT_LEN + 1];

	ws_accept(str_from(x->key), accept);
	if (!(x->head.flags & HTTP_UPGRADE_WS) || !str_eq(said, str_from(accept)) ||
		http_fields_count(&x->head.fields, STR("Sec-WebSocket-Extensions")) ||
		http_fields_count(&x->head.fields, STR("Sec-WebSocket-Protocol")))
		return exchange_no_sense(x, err);
	return 0;
}

static int exchange_run(struct exchange *x, struct service_answer *ret, struct cloche_err *err)
{
	int r = exchange_write(x, err);

	if (r == 0)
		r = line_open(&x->service->line, x->until, err);
	if (r == 0)
		r = exchange_send(x, err);
	if (r == 0)
		r = exchange_take_head(x, err);
	if (r < 0)
		return r;
	*ret = (struct service_answer){.status = x->head.status};
	if (ret->status == 101)
		return exchange_check_switch(x, err);
	r = exchange_take_body(x, err);
	if (r < 0)
		return r;
	ret->ok = answer_read(buf_str(&x->body), ret->said);
	if (!(x->head.flags & HTTP_KEEP_ALIVE) || buf_len(&x->service->in))
		line_close(&x->service->line);
	buf_clear(&x->service->in);
	return 0;
}

int service_ask(struct service *s, const struct service_ask *ask, struct service_answer *ret,
	struct cloche_err *err)
{
	struct exchange x = {.service = s,
		.ask = ask,
		.until = clock_mono_usec() + (unsigned)ask->patience_sec * USEC_PER_SEC,
		.request = BUF_INIT(EXCHANGE_REQUEST_MAX),
		.body = BUF_INIT(ANSWER_MAX),
		.head = HTTP_HEAD_INIT};
	int r = exchange_run(&x, ret, err);

	buf_done_wiped(&x.request);
	buf_done(&x.body);
	http_body_done(&x.reader);
	http_head_done(&x.head);
	if (r < 0)
		line_close(&s->line);
	return r;
}

static const char *service_hint(unsigned status)
{
	switch (status) {
	case 401:
	case 403:
		return "see whether CLOCHE_CLOUDFLARE_TOKEN (or the file "
		       "CLOCHE_CLOUDFLARE_TOKEN_FILE) is the secret of this service";
	case 404:
		return "see whether --place is the address of services/cloudflare-isolator or of "
		       "\"cloche-far serve\", of this version of cloche";
	case 503:
		return "end sandboxes that you do not need, or raise MAX_INSTANCES of the "
		       "service (--max of \"cloche-far serve\")";
	default:
		return status >= 500 ? "try again; the service's log may say more (wrangler tail)"
				     : "see what the service says, and whether --place is right";
	}
}

int service_refused(const struct service *s, const struct service_answer *a, struct cloche_err *err)
{
	struct str place = s->line.url.text;

	if (a->status >= 300 && a->status < 400) {
		err_set(err, E_NETWORK, "%.*s leads elsewhere (%u), where the key is not sent",
			STR_FMT(place), a->status);
		err_hint(err, "--place is the address of the service itself");
		return -E_NETWORK;
	}
	err_set(err, E_DENIED, "%.*s %s (%u)%s%s", STR_FMT(place),
		a->status == 401 || a->status == 403 ? "does not take the key"
		: a->status == 503                   ? "has no place for another room"
		: a->status >= 500                   ? "fails"
						     : "refuses",
		a->status, a->said[0] ? ": " : "", a->said);
	err_hint(err, "%s", service_hint(a->status));
	return -E_DENIED;
}
