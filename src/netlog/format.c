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

/* A text that is a single word in the line. */
static int add_word(struct buf *out, struct str s, size_t share)
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
	return escape_log(out, s, n);
}

/* A sentence: as a word, but spaces stay. */
static int add_sentence(struct buf *out, struct str s, size_t share)
{
	size_t start = buf_len(out);
	int r = 0;

	for (size_t i = 0; r == 0 && i < s.n; i++) {
		if (buf_len(out) - start + 3 > share)
			return buf_add_str(out, STR("..."));
		if (s.p[i] == ' ')
			r = buf_add_char(out, ' ');
		else
			r = escape_log(out, str_make(s.p + i, 1), 1);
	}
	return r;
}

static int add_method_url(struct buf *out, const struct netlog_event *ev)
{
	int r = add_word(out, ev->method, SHARE_WORD);

	if (r == 0)
		r = buf_add_char(out, ' ');
	return r < 0 ? r : add_word(out, ev->url, SHARE_URL);
}

/* " (note)" */
static int add_note(struct buf *out, struct str note)
{
	int r;

	if (note.n == 0)
		return 0;
	r = buf_add_str(out, STR(" ("));
	if (r == 0)
		r = add_sentence(out, note, SHARE_NOTE);
	return r < 0 ? r : buf_add_char(out, ')');
}

static int add_tags(struct buf *out, const struct netlog_event *ev)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < NETLOG_TAGS; i++) {
		const struct netlog_tag *tag = &ev->tags[i];

		if (tag->text.n == 0)
			continue;
		r = buf_add_str(out, STR(" ["));
		if (r == 0)
			r = add_word(out, tag->name, SHARE_WORD);
		if (r == 0)
			r = buf_add_str(out, STR(": "));
		if (r == 0)
			r = add_sentence(out, tag->text, SHARE_TAG);
		if (r == 0)
			r = buf_add_char(out, ']');
	}
	return r;
}

/* " [by: curl 12 /usr/bin/curl]" */
static int add_owner(struct buf *out, const struct netlog_event *ev)
{
	int r;

	if (ev->pid == 0)
		return 0;
	r = buf_add_str(out, STR(" [by: "));
	if (r == 0)
		r = add_word(out, ev->process.n ? ev->process : STR("?"), SHARE_WORD);
	if (r == 0)
		r = buf_printf(out, " %u", ev->pid);
	if (r == 0 && ev->program.n > 0)
		r = buf_add_char(out, ' ');
	if (r == 0)
		r = add_word(out, ev->program, SHARE_NAME);
	return r < 0 ? r : buf_add_char(out, ']');
}

static int add_region(struct buf *out, struct str region)
{
	int r = buf_add_str(out, STR(" [region: "));

	if (r == 0)
		r = add_word(out, region, SHARE_NAME);
	return r < 0 ? r : buf_add_char(out, ']');
}

static int add_websocket(const struct netlog_event *ev, struct buf *out)
{
	int r = buf_printf(out, " [websocket: %llu/%llu frames, %llu/%llu bytes",
		(unsigned long long)ev->frames_out, (unsigned long long)ev->frames_in,
		(unsigned long long)ev->payload_out, (unsigned long long)ev->payload_in);

	if (r == 0 && ev->close_code)
		r = buf_printf(out, ", close %u", ev->close_code);
	return r < 0 ? r : buf_add_char(out, ']');
}

static int plain_request(const struct netlog_event *ev, struct buf *out)
{
	bool closed = ev->kind == NETLOG_WEBSOCKET;
	int r = buf_add_str(out, closed        ? STR("CLOSED ")
				 : ev->allowed ? STR("ALLOWED ")
					       : STR("BLOCKED "));

	if (r == 0)
		r = add_method_url(out, ev);
	if (r == 0)
		r = buf_add_str(out, STR(" -> "));
	if (r == 0)
		r = buf_add_uint(out, ev->status > 0 ? (uint64_t)ev->status : 0);
	if (r == 0)
		r = add_note(out, ev->note);
	if (r == 0)
		r = add_owner(out, ev);
	if (r == 0)
		r = add_tags(out, ev);
	if (r == 0 && closed)
		r = add_websocket(ev, out);
	if (r == 0 && ev->masked)
		r = buf_printf(out, " [masked: %u]", ev->masked);
	if (r == 0 && ev->dropped)
		r = buf_printf(out, " [dropped: %u]", ev->dropped);
	if (r == 0 && ev->region.n > 0)
		r = add_region(out, ev->region);
	if (r == 0 && ev->scrubbed)
		r = buf_printf(out, " [scrubbed: %u]", ev->scrubbed);
	return r;
}

static int plain_connect(const struct netlog_event *ev, struct buf *out)
{
	bool tunnel = ev->kind == NETLOG_TUNNEL;
	int status = tunnel ? 200 : ev->status > 0 ? ev->status : 403;
	int r = buf_add_str(out, tunnel ? STR("ALLOWED CONNECT ") : STR("BLOCKED CONNECT "));

	if (r == 0)
		r = add_word(out, ev->host, SHARE_URL);
	if (r == 0)
		r = buf_printf(out, ":%u -> %d", ev->port, status);
	if (r == 0)
		r = add_note(out, ev->note);
	if (r == 0)
		r = add_owner(out, ev);
	return r == 0 && tunnel ? buf_add_str(out, STR(" [tunnel]")) : r;
}

static int plain_dns(const struct netlog_event *ev, struct buf *out)
{
	int r = buf_add_str(out, STR("DNS "));

	if (r == 0)
		r = add_word(out, ev->type, SHARE_WORD);
	if (r == 0)
		r = buf_add_char(out, ' ');
	if (r == 0)
		r = add_word(out, ev->name, SHARE_URL);
	if (r == 0)
		r = buf_add_str(out, STR(" -> "));
	return r < 0 ? r : add_word(out, ev->answer, SHARE_NAME);
}

static int plain_stripped(const struct netlog_event *ev, struct buf *out)
{
	int r = buf_add_str(out, STR("STRIPPED header '"));

	if (r == 0)
		r = add_word(out, ev->name, SHARE_NAME);
	if (r == 0)
		r = buf_add_str(out, STR("' from "));
	if (r == 0)
		r = add_method_url(out, ev);
	return r < 0 ? r : buf_add_str(out, STR(" (foreign credential blocked)"));
}

static int plain_collapsed(const struct netlog_event *ev, struct buf *out)
{
	int r = buf_printf(out, "COLLAPSED %llu duplicate '", (unsigned long long)ev->count);

	if (r == 0)
		r = add_word(out, ev->name, SHARE_NAME);
	if (r == 0)
		r = buf_add_str(out, STR("' headers in "));
	if (r == 0)
		r = add_method_url(out, ev);
	return r < 0 ? r : buf_add_str(out, STR(" (duplicate credential headers removed)"));
}

static int plain_error(const struct netlog_event *ev, struct buf *out)
{
	int r = buf_add_str(out, STR("ERROR "));

	if (r == 0)
		r = add_method_url(out, ev);
	if (r == 0)
		r = buf_add_str(out, STR(" -> "));
	return r < 0 ? r : add_sentence(out, ev->note, SHARE_NOTE);
}

static int plain_mark(const struct netlog_event *ev, struct buf *out)
{
	char when[CLOCK_ISO_MAX];

	clock_format_utc(ev->time_usec, when);
	return buf_printf(
		out, "=== TASK %s %s ===", ev->kind == NETLOG_TASK_START ? "START" : "END", when);
}

static int plain_warning(const struct netlog_event *ev, struct buf *out)
{
	int r = buf_add_str(out, STR("WARNING: "));

	return r < 0 ? r : add_sentence(out, ev->note, SHARE_URL);
}

static int plain_body(const struct netlog_event *ev, struct buf *out)
{
	int r;

	switch (ev->kind) {
	case NETLOG_REQUEST:
	case NETLOG_WEBSOCKET:
		return plain_request(ev, out);
	case NETLOG_CONNECT:
	case NETLOG_TUNNEL:
		return plain_connect(ev, out);
	case NETLOG_DNS:
		return plain_dns(ev, out);
	case NETLOG_STRIPPED:
		return plain_stripped(ev, out);
	case NETLOG_COLLAPSED:
		return plain_collapsed(ev, out);
	case NETLOG_ERROR:
		return plain_error(ev, out);
	case NETLOG_WARNING:
		return plain_warning(ev, out);
	case NETLOG_TASK_START:
	case NETLOG_TASK_END:
		return plain_mark(ev, out);
	case NETLOG_SUPPRESSED:
		return buf_printf(out, "WARNING: %llu events suppressed (flood)",
			(unsigned long long)ev->count);
	case NETLOG_POLICY:
		r = buf_printf(out, "POLICY %llu rules", (unsigned long long)ev->count);
		return r < 0 ? r : add_note(out, ev->note);
	case NETLOG_INTENT:
	case NETLOG_OTHER:
		break;
	}
	return add_sentence(out, ev->note, SHARE_URL);
}

int netlog_format_plain(const struct netlog_event *ev, struct buf *out)
{
	int r = plain_body(ev, out);

	return r < 0 ? r : buf_add_char(out, '\n');
}

static int add_json_text(struct buf *out, struct str s, size_t share)
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

/* ,"key": */
static int add_key(struct buf *out, const char *key)
{
	int r = buf_add_str(out, STR(",\""));

	if (r == 0)
		r = buf_add_str(out, str_from(key));
	return r < 0 ? r : buf_add_str(out, STR("\":"));
}

/* ,"key":"text" if there is a text. */
static int add_field(struct buf *out, const char *key, struct str s, size_t share)
{
	int r;

	if (s.n == 0)
		return 0;
	r = add_key(out, key);
	return r < 0 ? r : add_json_text(out, s, share);
}

/* Readers of JSON hold integers in 64 bits with a sign. */
static int add_number(struct buf *out, const char *key, uint64_t value)
{
	int r = add_key(out, key);

	return r < 0 ? r : buf_add_uint(out, MIN(value, (uint64_t)INT64_MAX));
}

static int add_count(struct buf *out, const char *key, uint64_t value)
{
	return value ? add_number(out, key, value) : 0;
}

/* Milliseconds with three digits behind the point. */
static int add_duration(struct buf *out, uint64_t usec)
{
	unsigned part = (unsigned)(usec % USEC_PER_MSEC);
	char fraction[4] = {'.', (char)('0' + part / 100), (char)('0' + part / 10 % 10),
		(char)('0' + part % 10)};
	int r = add_key(out, "duration_ms");

	if (r == 0)
		r = buf_add_uint(out, usec / USEC_PER_MSEC);
	return r < 0 ? r : buf_add(out, fraction, sizeof(fraction));
}

static int add_transfer(struct buf *out, const struct netlog_event *ev)
{
	int r;

	if (!ev->has_transfer)
		return 0;
	r = add_duration(out, ev->duration_usec);
	if (r == 0)
		r = add_number(out, "bytes_in", ev->bytes_in);
	return r < 0 ? r : add_number(out, "bytes_out", ev->bytes_out);
}

static const char *decision_word(const struct netlog_event *ev)
{
	if (ev->kind == NETLOG_REQUEST)
		return ev->allowed ? "allowed" : "blocked";
	if (ev->kind == NETLOG_CONNECT)
		return "blocked";
	return ev->kind == NETLOG_TUNNEL ? "allowed" : NULL;
}

static int json_texts(const struct netlog_event *ev, struct buf *out)
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
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++)
		r = add_field(out, fields[i].key, fields[i].value, fields[i].share);
	return r;
}

/* ,"tags":{"name":"text"} */
static int json_tags(const struct netlog_event *ev, struct buf *out)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < NETLOG_TAGS; i++) {
		const struct netlog_tag *tag = &ev->tags[i];

		if (tag->text.n == 0)
			continue;
		r = buf_add_str(out, any ? STR(",") : STR(",\"tags\":{"));
		if (r == 0)
			r = add_json_text(out, tag->name, SHARE_WORD);
		if (r == 0)
			r = buf_add_char(out, ':');
		if (r == 0)
			r = add_json_text(out, tag->text, SHARE_JSON_TAG);
		any = true;
	}
	return r == 0 && any ? buf_add_char(out, '}') : r;
}

static int json_numbers(const struct netlog_event *ev, struct buf *out)
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
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(counts); i++)
		r = add_count(out, counts[i].key, counts[i].value);
	return r;
}

/* {"time":"...", or { if the time is not known: most lines of the plain form have none. */
static int json_time(uint64_t usec, struct buf *out)
{
	char when[CLOCK_ISO_MAX];
	int r;

	if (usec == 0)
		return buf_add_char(out, '{');
	clock_format_iso(usec, when);
	r = buf_add_str(out, STR("{\"time\":\""));
	if (r == 0)
		r = buf_add_str(out, str_from(when));
	return r < 0 ? r : buf_add_str(out, STR("\","));
}

int netlog_format_json(const struct netlog_event *ev, struct buf *out)
{
	const char *decision = decision_word(ev);
	int r = json_time(ev->time_usec, out);

	if (r == 0)
		r = buf_add_str(out, STR("\"event\":\""));
	if (r == 0)
		r = buf_add_str(out, str_from(netlog_kind_word(ev->kind)));
	if (r == 0)
		r = buf_add_char(out, '"');
	if (r == 0)
		r = add_field(out, "decision", str_from(decision), SHARE_WORD);
	if (r == 0)
		r = json_texts(ev, out);
	if (r == 0)
		r = json_tags(ev, out);
	if (r == 0)
		r = json_numbers(ev, out);
	if (r == 0)
		r = add_transfer(out, ev);
	return r < 0 ? r : buf_add_str(out, STR("}\n"));
}
