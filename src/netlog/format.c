/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-ONE-LINE): both forms are written from one event into a small buffer.
 * Each text has a share of the line, counted after escaping, so that the line keeps its maximum
 * length and its structure whatever the texts hold. Unescaped, a text contributes only printable
 * ASCII without '%', '[' and ']' to the plain form, and only ASCII to the JSON form. The JSON form
 * is written without jansson: there is a line for each request, and jansson would not count the
 * shares. */
#include "netlog/netlog.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/jsonout.h"
#include <stdio.h>

/* Shares of a line, in bytes after escaping. */
#define SHARE_URL 1000
#define SHARE_NOTE 300
#define SHARE_NAME 120
#define SHARE_TAG 1020 /* FILTER_TAG_MAX and the mark that the text was cut */
#define SHARE_WORD 40
#define SHARE_JSON_URL 760
#define SHARE_JSON_NOTE 200
#define SHARE_JSON_NAME 100
#define SHARE_JSON_TAG 900

const char *netlog_kind_word(enum netlog_kind kind)
{
	static const char *const words[] = {
		[NETLOG_REQUEST] = "request",
		[NETLOG_CONNECT] = "connect",
		[NETLOG_TUNNEL] = "tunnel",
		[NETLOG_TCP] = "tcp",
		[NETLOG_DNS] = "dns",
		[NETLOG_STRIPPED] = "stripped",
		[NETLOG_COLLAPSED] = "collapsed",
		[NETLOG_ERROR] = "error",
		[NETLOG_WARNING] = "warning",
		[NETLOG_TASK_START] = "task_start",
		[NETLOG_TASK_END] = "task_end",
		[NETLOG_SUPPRESSED] = "suppressed",
		[NETLOG_POLICY] = "policy",
		[NETLOG_WEBSOCKET] = "websocket",
		[NETLOG_INTENT] = "intent",
		[NETLOG_OTHER] = "other",
	};

	return (unsigned)kind < ARRAY_SIZE(words) ? words[kind] : "other";
}

/* --- the plain form --- */

/* A line in the making. After a failure nothing is added. */
struct line {
	struct buf *out;
	int error; /* 0 or negative errno */
};

static void line_add(struct line *l, struct str s)
{
	if (l->error == 0)
		l->error = buf_add_str(l->out, s);
}

_printf_(2, 3) static void line_printf(struct line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (l->error == 0)
		l->error = buf_vprintf(l->out, fmt, ap);
	va_end(ap);
}

static void line_number(struct line *l, uint64_t value)
{
	if (l->error == 0)
		l->error = buf_add_uint(l->out, value);
}

/* A text that is a single word in the line. */
static void line_word(struct line *l, struct str s, size_t share)
{
	size_t n = 0, used = 0;

	while (n < s.n) {
		unsigned char c = (unsigned char)s.p[n];
		size_t width = c >= 0x21 && c <= 0x7e && c != '%' && c != '[' && c != ']' ? 1 : 3;

		if (used + width > share)
			break;
		used += width;
		n++;
	}
	if (l->error == 0)
		l->error = escape_log(l->out, s, n);
}

/* A sentence: as a word, but spaces stay. */
static void line_sentence(struct line *l, struct str s, size_t share)
{
	size_t start = buf_len(l->out);

	for (size_t i = 0; l->error == 0 && i < s.n; i++) {
		if (buf_len(l->out) - start + 3 > share) {
			line_add(l, STR("..."));
			return;
		}
		if (s.p[i] == ' ')
			line_add(l, STR(" "));
		else
			l->error = escape_log(l->out, str_make(s.p + i, 1), 1);
	}
}

static void line_method_url(struct line *l, const struct netlog_event *ev)
{
	line_word(l, ev->method, SHARE_WORD);
	line_add(l, STR(" "));
	line_word(l, ev->url, SHARE_URL);
}

/* " (note)" */
static void line_note(struct line *l, struct str note)
{
	if (note.n == 0)
		return;
	line_add(l, STR(" ("));
	line_sentence(l, note, SHARE_NOTE);
	line_add(l, STR(")"));
}

static void line_tags(struct line *l, const struct netlog_event *ev)
{
	for (size_t i = 0; i < NETLOG_TAGS; i++) {
		const struct netlog_tag *tag = &ev->tags[i];

		if (tag->text.n == 0)
			continue;
		line_add(l, STR(" ["));
		line_word(l, tag->name, SHARE_WORD);
		line_add(l, STR(": "));
		line_sentence(l, tag->text, SHARE_TAG);
		line_add(l, STR("]"));
	}
}

/* " [by: curl 12 /usr/bin/curl]" */
static void line_owner(struct line *l, const struct netlog_event *ev)
{
	if (ev->pid == 0)
		return;
	line_add(l, STR(" [by: "));
	line_word(l, ev->process.n ? ev->process : STR("?"), SHARE_WORD);
	line_printf(l, ev->program.n > 0 ? " %u " : " %u", ev->pid);
	line_word(l, ev->program, SHARE_NAME);
	line_add(l, STR("]"));
}

static void line_region(struct line *l, struct str region)
{
	if (region.n == 0)
		return;
	line_add(l, STR(" [region: "));
	line_word(l, region, SHARE_NAME);
	line_add(l, STR("]"));
}

/* " [word: N]" */
static void line_count(struct line *l, const char *word, unsigned n)
{
	if (n > 0)
		line_printf(l, " [%s: %u]", word, n);
}

static void line_websocket(struct line *l, const struct netlog_event *ev)
{
	line_printf(l, " [websocket: %llu/%llu frames, %llu/%llu bytes",
		(unsigned long long)ev->frames_out, (unsigned long long)ev->frames_in,
		(unsigned long long)ev->payload_out, (unsigned long long)ev->payload_in);
	if (ev->close_code)
		line_printf(l, ", close %u", ev->close_code);
	line_add(l, STR("]"));
}

static void plain_request(struct line *l, const struct netlog_event *ev)
{
	bool closed = ev->kind == NETLOG_WEBSOCKET;

	line_add(l, closed ? STR("CLOSED ") : ev->allowed ? STR("ALLOWED ") : STR("BLOCKED "));
	line_method_url(l, ev);
	line_add(l, STR(" -> "));
	line_number(l, (uint64_t)MAX(ev->status, 0));
	line_note(l, ev->note);
	line_owner(l, ev);
	line_tags(l, ev);
	if (closed)
		line_websocket(l, ev);
	line_count(l, "masked", ev->masked);
	line_count(l, "dropped", ev->dropped);
	line_region(l, ev->region);
	line_count(l, "scrubbed", ev->scrubbed);
}

static void plain_connect(struct line *l, const struct netlog_event *ev)
{
	bool allowed = ev->kind != NETLOG_CONNECT;
	int status = allowed ? 200 : ev->status > 0 ? ev->status : 403;

	line_add(l, allowed ? STR("ALLOWED CONNECT ") : STR("BLOCKED CONNECT "));
	line_word(l, ev->host, SHARE_URL);
	line_printf(l, ":%u -> %d", ev->port, status);
	line_note(l, ev->note);
	line_owner(l, ev);
	if (ev->kind == NETLOG_TUNNEL)
		line_add(l, STR(" [tunnel]"));
	else if (allowed)
		line_printf(l, " [tcp: %llu/%llu bytes]", (unsigned long long)ev->bytes_out,
			(unsigned long long)ev->bytes_in);
}

static void plain_dns(struct line *l, const struct netlog_event *ev)
{
	line_add(l, STR("DNS "));
	line_word(l, ev->type, SHARE_WORD);
	line_add(l, STR(" "));
	line_word(l, ev->name, SHARE_URL);
	line_add(l, STR(" -> "));
	line_word(l, ev->answer, SHARE_NAME);
}

static void plain_stripped(struct line *l, const struct netlog_event *ev)
{
	line_add(l, STR("STRIPPED header '"));
	line_word(l, ev->name, SHARE_NAME);
	line_add(l, STR("' from "));
	line_method_url(l, ev);
	line_add(l, STR(" (foreign credential blocked)"));
}

static void plain_collapsed(struct line *l, const struct netlog_event *ev)
{
	line_printf(l, "COLLAPSED %llu duplicate '", (unsigned long long)ev->count);
	line_word(l, ev->name, SHARE_NAME);
	line_add(l, STR("' headers in "));
	line_method_url(l, ev);
	line_add(l, STR(" (duplicate credential headers removed)"));
}

static void plain_error(struct line *l, const struct netlog_event *ev)
{
	line_add(l, STR("ERROR "));
	line_method_url(l, ev);
	line_add(l, STR(" -> "));
	line_sentence(l, ev->note, SHARE_NOTE);
}

static void plain_mark(struct line *l, const struct netlog_event *ev)
{
	char when[CLOCK_ISO_MAX];

	clock_format_utc(ev->time_usec, when);
	line_printf(l, "=== TASK %s %s ===", ev->kind == NETLOG_TASK_START ? "START" : "END", when);
}

static void plain_body(struct line *l, const struct netlog_event *ev)
{
	switch (ev->kind) {
	case NETLOG_REQUEST:
	case NETLOG_WEBSOCKET:
		plain_request(l, ev);
		break;
	case NETLOG_CONNECT:
	case NETLOG_TUNNEL:
	case NETLOG_TCP:
		plain_connect(l, ev);
		break;
	case NETLOG_DNS:
		plain_dns(l, ev);
		break;
	case NETLOG_STRIPPED:
		plain_stripped(l, ev);
		break;
	case NETLOG_COLLAPSED:
		plain_collapsed(l, ev);
		break;
	case NETLOG_ERROR:
		plain_error(l, ev);
		break;
	case NETLOG_TASK_START:
	case NETLOG_TASK_END:
		plain_mark(l, ev);
		break;
	case NETLOG_SUPPRESSED:
		line_printf(l, "WARNING: %llu events suppressed (flood)",
			(unsigned long long)ev->count);
		break;
	case NETLOG_POLICY:
		line_printf(l, "POLICY %llu rules", (unsigned long long)ev->count);
		line_note(l, ev->note);
		break;
	case NETLOG_WARNING:
		line_add(l, STR("WARNING: "));
		line_sentence(l, ev->note, SHARE_URL);
		break;
	case NETLOG_INTENT:
	case NETLOG_OTHER:
		line_sentence(l, ev->note, SHARE_URL);
		break;
	}
}

int netlog_format_plain(const struct netlog_event *ev, struct buf *out)
{
	struct line l = {.out = out};

	plain_body(&l, ev);
	line_add(&l, STR("\n"));
	return l.error;
}

/* --- the JSON form --- */

static int json_add_text(struct buf *out, struct str s, size_t share)
{
	size_t used = 0;
	int r = buf_add_char(out, '"');

	while (r == 0 && s.n > 0) {
		char text[ESCAPE_JSON_MAX];
		size_t n = escape_json_plain(s, true), width = n;
		const char *from = s.p;

		if (n > 0) {
			n = width = MIN(n, share - used);
		} else {
			width = escape_json_char(s, text, &n);
			from = text;
		}
		if (width == 0 || used + width > share) {
			r = buf_add_str(out, STR("..."));
			break;
		}
		r = buf_add(out, from, width);
		used += width;
		s = str_from_index(s, n);
	}
	return r < 0 ? r : buf_add_char(out, '"');
}

/* "key":"text" if there is a text. */
static void json_put_text(struct jsonout *o, const char *key, struct str s, size_t share)
{
	if (s.n == 0)
		return;
	jsonout_raw(o, key, STR_NULL);
	if (o->error == 0)
		o->error = json_add_text(o->b, s, share);
}

/* Readers of JSON hold integers in 64 bits with a sign. */
static void json_number(struct jsonout *o, const char *key, uint64_t value)
{
	jsonout_number(o, key, MIN(value, (uint64_t)INT64_MAX));
}

static void json_transfer(struct jsonout *o, const struct netlog_event *ev)
{
	unsigned part = (unsigned)(ev->duration_usec % USEC_PER_MSEC);
	const char fraction[] = {'.', (char)('0' + part / 100), (char)('0' + part / 10 % 10),
		(char)('0' + part % 10)};

	if (!ev->has_transfer)
		return;
	jsonout_number(o, "duration_ms", ev->duration_usec / USEC_PER_MSEC);
	if (o->error == 0)
		o->error = buf_add(o->b, fraction, sizeof(fraction));
	json_number(o, "bytes_in", ev->bytes_in);
	json_number(o, "bytes_out", ev->bytes_out);
}

static void json_put_texts(struct jsonout *o, const struct netlog_event *ev)
{
	const struct {
		const char *key;
		struct str value;
		size_t share;
	} fields[] = {
		{"method", ev->method, SHARE_WORD},
		{"url", ev->url, SHARE_JSON_URL},
		{"host", ev->host, SHARE_JSON_NAME},
		{"name", ev->name, SHARE_JSON_NAME},
		{"type", ev->type, SHARE_WORD},
		{"answer", ev->answer, SHARE_JSON_NAME},
		{"region", ev->region, SHARE_JSON_NAME},
		{"process", ev->process, SHARE_WORD},
		{"program", ev->program, SHARE_JSON_NAME},
		{"rule", ev->rule, SHARE_JSON_NOTE},
		{"reason", ev->reason, SHARE_WORD},
		{"note", ev->note, SHARE_JSON_NOTE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		json_put_text(o, fields[i].key, fields[i].value, fields[i].share);
}

/* "tags":{"name":"text"} */
static void format_tags(struct jsonout *o, const struct netlog_event *ev)
{
	bool any = false;

	for (size_t i = 0; i < NETLOG_TAGS; i++) {
		const struct netlog_tag *tag = &ev->tags[i];

		if (tag->text.n == 0)
			continue;
		if (!any)
			jsonout_open(o, "tags", '{');
		any = true;
		jsonout_raw(o, NULL, STR_NULL);
		if (o->error == 0)
			o->error = json_add_text(o->b, tag->name, SHARE_WORD);
		if (o->error == 0)
			o->error = buf_add_char(o->b, ':');
		o->behind = false;
		json_put_text(o, NULL, tag->text, SHARE_JSON_TAG);
	}
	if (any)
		jsonout_close(o, '}');
}

static void json_numbers(struct jsonout *o, const struct netlog_event *ev)
{
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{"port", ev->port},
		{"pid", ev->pid},
		{"status", ev->status > 0 ? (uint64_t)ev->status : 0},
		{"count", ev->count},
		{"masked", ev->masked},
		{"dropped", ev->dropped},
		{"collapsed", ev->collapsed},
		{"scrubbed", ev->scrubbed},
		{"frames_out", ev->frames_out},
		{"frames_in", ev->frames_in},
		{"payload_out", ev->payload_out},
		{"payload_in", ev->payload_in},
		{"close_code", ev->close_code},
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (counts[i].value)
			json_number(o, counts[i].key, counts[i].value);
}

int netlog_format_json(const struct netlog_event *ev, struct buf *out)
{
	struct jsonout o = {.b = out};
	char when[CLOCK_ISO_MAX];

	jsonout_open(&o, NULL, '{');
	/* Most lines of the plain form have no time. */
	if (ev->time_usec) {
		clock_format_iso(ev->time_usec, when);
		jsonout_text(&o, "time", when);
	}
	jsonout_text(&o, "event", netlog_kind_word(ev->kind));
	if (netlog_event_is_allowed(ev))
		jsonout_text(&o, "decision", "allowed");
	else if (netlog_event_is_blocked(ev))
		jsonout_text(&o, "decision", "blocked");
	json_put_texts(&o, ev);
	format_tags(&o, ev);
	json_numbers(&o, ev);
	json_transfer(&o, ev);
	jsonout_close(&o, '}');
	return o.error < 0 ? o.error : buf_add_char(out, '\n');
}

/* --- for a terminal --- */

int netlog_event_show(const struct netlog_event *ev, struct buf *out)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(4 * NETLOG_LINE_MAX);
	uint64_t ms = ev->time_usec / USEC_PER_MSEC % 86400000;
	int r = 0;

	if (ev->time_usec && ev->kind != NETLOG_TASK_START && ev->kind != NETLOG_TASK_END)
		r = buf_printf(&line, "%02u:%02u:%02u.%03u ", (unsigned)(ms / 3600000),
			(unsigned)(ms / 60000 % 60), (unsigned)(ms / 1000 % 60),
			(unsigned)(ms % 1000));
	if (r == 0)
		r = netlog_format_plain(ev, &line);
	return r < 0 ? r : escape_terminal(out, buf_str(&line));
}
