/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their responses, among the entries by their time. */
#include "base/utf8.h"
#include "report/internal.h"
#include <errno.h>

enum { BODY = 8 << 10 };

struct drawing {
	struct report *r;
	uint64_t until_usec;
	struct cloche_err *err;
	int error;
};

static bool take_piece(const void *bytes, size_t length, void *user)
{
	struct buf *b = user;
	size_t n = MIN(length, buf_room(b));

	return n && buf_add(b, bytes, n) == 0 && buf_room(b) > 0;
}

/* Text that was cut may end within a character. */
static bool is_text(struct str s, bool is_cut)
{
	bool is_valid = utf8_is_valid(s);

	for (size_t n = 1; is_cut && !is_valid && n < 4 && n < s.n; n++)
		is_valid = utf8_is_valid(str_prefix(s, s.n - n));
	return is_valid && str_chr(s, '\0') == s.n;
}

static void draw_body(struct drawing *d, const cloche_request *q, enum cloche_body which)
{
	struct report *r = d->r;
	_cleanup_(buf_donep) struct buf b = BUF_INIT(BODY);
	bool is_request = which == CLOCHE_BODY_REQUEST;
	uint64_t size = is_request ? q->request_bytes : q->response_bytes;

	if (size == 0)
		return;
	HTML(&r->html, "<p class=k><b>");
	html_constant(&r->html, is_request ? "sent" : "received");
	HTML(&r->html, "</b> ");
	draw_size(&r->html, size);
	if (!(is_request ? q->request_is_whole : q->response_is_whole))
		HTML(&r->html, ", not all of it is on record");
	HTML(&r->html, "</p>");
	d->error = r->source->body(r->source->user, q->number, which, take_piece, &b, d->err);
	if (d->error == 0 && buf_len(&b) && is_text(buf_str(&b), buf_len(&b) < size)) {
		draw_text(r, buf_str(&b));
		if (buf_len(&b) < size)
			HTML(&r->html, "<p><i>The rest is not shown here.</i></p>");
	}
}

static void draw_headers(struct report *r, const json_t *headers)
{
	const json_t *one;
	size_t i;

	HTML(&r->html, "<pre>\n");
	json_array_foreach (headers, i, one) {
		struct str value = json_str(json_array_get(one, 1));

		html_text(&r->html, json_str(json_array_get(one, 0)), HTML_LINE);
		HTML(&r->html, ": ");
		html_text(&r->html, text_prefix(value, report_take(r, MIN(value.n, (size_t)BODY))),
			HTML_LINE);
		HTML(&r->html, "\n");
	}
	HTML(&r->html, "</pre>");
}

static void draw_head(struct report *r, const cloche_request *q)
{
	HTML(&r->html, "<b>");
	html_text(&r->html, str_from(q->method), HTML_LINE);
	HTML(&r->html, "</b> <code>");
	html_text(&r->html, text_prefix(str_from(q->url), 2048), HTML_LINE);
	HTML(&r->html, "</code> <small class=r>");
	if (q->refused) {
		HTML(&r->html, "refused: ");
		html_text(&r->html, str_from(q->refused), HTML_LINE);
	} else if (q->status) {
		html_number(&r->html, q->status);
	} else {
		HTML(&r->html, "no answer");
	}
	if (q->ended_us > q->time_us) {
		HTML(&r->html, ", ");
		draw_duration(&r->html, q->ended_us - q->time_us);
	}
	HTML(&r->html, "</small>");
}

/* Whether the host is this one or lies below it. */
static bool is_host(struct str host, const char *name)
{
	struct str n = str_from(name);

	return str_ends(host, n) && (host.n == n.n || host.p[host.n - n.n - 1] == '.');
}

bool report_is_telemetry(const cloche_request *request)
{
	static const char *const hosts[] = {"statsig.com", "statsigapi.net", "featuregates.org",
		"featureassets.org", "statsig.anthropic.com", "sentry.io", "datadoghq.com",
		"datadoghq.eu", "segment.io", "growthbook.io", "launchdarkly.com", "posthog.com",
		"amplitude.com", "mixpanel.com"};
	static const char *const paths[] = {"api.anthropic.com/api/event_logging/",
		"api.anthropic.com/api/claude_code/metrics", "play.googleapis.com/log"};
	struct str url = str_from(request->url), host, path;
	size_t at = 0;

	while (at < url.n && !str_starts(str_from_index(url, at), STR("://")))
		at++;
	url = str_from_index(url, MIN(at + 3, url.n));
	at = str_chr(url, '/');
	path = str_from_index(url, at);
	host = str_prefix(url, at);
	host = str_prefix(host, str_chr(host, ':'));
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		if (is_host(host, hosts[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct str p = str_from(paths[i]);
		size_t slash = str_chr(p, '/');

		if (str_eq(host, str_prefix(p, slash)) &&
			str_starts(path, str_from_index(p, slash)))
			return true;
	}
	return false;
}

static bool draw_one(const cloche_request *q, void *user)
{
	struct drawing *d = user;
	struct report *r = d->r;
	_cleanup_json_ json_t *all = NULL;
	const json_t *args;
	bool is_telemetry;

	if (q->time_us > d->until_usec) {
		r->request_usec = q->time_us;
		return false;
	}
	r->request_after = q->number;
	if (json_text_read(str_from(q->json), JSON_ALLOW_NUL, &all, NULL) == -ENOMEM) {
		d->error = err_nomem(d->err);
		return false;
	}
	args = json_object_get(all, "args");
	is_telemetry = report_is_telemetry(q);
	row_begin(r, is_telemetry ? ROW_OWN : ROW_NETWORK, q->refused && !is_telemetry, false,
		q->time_us);
	draw_head(r, q);
	row_body(r);
	draw_headers(r, json_object_get(args, "headers"));
	draw_body(d, q, CLOCHE_BODY_REQUEST);
	if (json_object_get(args, "response"))
		draw_headers(r, json_object_get(json_object_get(args, "response"), "headers"));
	if (d->error == 0)
		draw_body(d, q, CLOCHE_BODY_RESPONSE);
	if (q->upgraded)
		HTML(&r->html, "<p><i>What went over it from then on is not on record.</i></p>");
	row_end(r);
	return d->error == 0 && r->html.error == 0;
}

int draw_requests(struct report *r, uint64_t until_usec, struct cloche_err *err)
{
	struct drawing d = {.r = r, .until_usec = until_usec, .err = err};
	int e;

	if (until_usec < r->request_usec)
		return 0;
	r->request_usec = UINT64_MAX;
	e = r->source->requests(r->source->user, r->request_after, draw_one, &d, err);
	return e < 0 ? e : d.error;
}
