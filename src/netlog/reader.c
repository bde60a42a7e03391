/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: lines are cut from a buffer that read() fills. A line that begins with '{'
 * is parsed as JSON, any other by the grammar of the plain form. The file is not trusted: a line
 * that does not parse becomes NETLOG_OTHER, and everything is escaped again when it is shown. Texts
 * of the plain form are unescaped in place, so that an event is the same from either form. */
#include "netlog/reader.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define LINE_MAX_READ 65536
#define CHUNK 16384

struct netlog_reader {
	int fd;
	bool at_end, skipping; /* skipping: inside a line that is too long, or that has lost its
				* front */
	bool follow;
	bool any, known; /* a line was read; one that is of a log */
	struct buf in;
	struct buf line; /* the current line */
	json_t *json;    /* what the views of the current event point into */
};

/* Returns whether fd is a file that begins with a hole, and goes to its end. */
static bool reader_pass_hole(int fd)
{
	return lseek(fd, 0, SEEK_CUR) == 0 && lseek(fd, 0, SEEK_DATA) > 0;
}

struct netlog_reader *netlog_reader_new(int fd)
{
	struct netlog_reader *r = calloc(1, sizeof(*r));

	if (r) {
		r->fd = fd;
		r->skipping = reader_pass_hole(fd);
		r->in = BUF_INIT(LINE_MAX_READ + CHUNK);
		r->line = BUF_INIT(LINE_MAX_READ + 1);
	}
	return r;
}

struct netlog_reader *netlog_reader_free(struct netlog_reader *r)
{
	if (!r)
		return NULL;
	json_decref(r->json);
	buf_done(&r->in);
	buf_done(&r->line);
	free(r);
	return NULL;
}

/* Takes `prefix` off *s; false if it is not there. */
static bool take(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	*s = str_from_index(*s, prefix.n);
	return true;
}

/* Takes what is before `separator`, and the separator, off *s. */
static bool take_until(struct str *s, struct str separator, struct str *ret)
{
	size_t at = str_find(*s, separator);

	if (at == s->n)
		return false;
	*ret = str_prefix(*s, at);
	*s = str_from_index(*s, at + separator.n);
	return true;
}

/* Takes decimal digits off *s. */
static bool take_number(struct str *s, uint64_t max, uint64_t *ret)
{
	size_t n = 0;

	while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
		n++;
	if (parse_u64(str_prefix(*s, n), max, ret) < 0)
		return false;
	*s = str_from_index(*s, n);
	return true;
}

/* " [word: N]" */
static bool take_annotation(struct str *s, struct str start, unsigned *ret)
{
	uint64_t n;

	if (!take(s, start))
		return true;
	if (!take_number(s, UINT_MAX, &n) || !take(s, STR("]")))
		return false;
	*ret = (unsigned)n;
	return true;
}

/* " (note)". No note holds a bracket, so the first that follows begins an annotation. */
static bool take_note(struct str *s, struct str *ret)
{
	struct str note;
	const char *close;

	if (!take(s, STR(" (")))
		return true;
	note = str_prefix(*s, str_find(*s, STR(") [")) + 1);
	close = note.n ? memrchr(note.p, ')', note.n) : NULL;
	if (!close)
		return false;
	*ret = str_prefix(*s, (size_t)(close - s->p));
	*s = str_from_index(*s, ret->n + 1);
	return true;
}

/* Whether s is a word that does not begin an annotation of another kind. */
static bool is_tag_name(struct str s)
{
	static const struct str others[] = {STR("masked"), STR("dropped"), STR("region"),
		STR("scrubbed"), STR("by"), STR("websocket")};

	return !str_is_one_of(s, others, ARRAY_SIZE(others)) && s.n > 0 && str_chr(s, ']') == s.n;
}

/* " [name: text]", as many as there are. */
static void take_tags(struct str *s, struct netlog_event *ev)
{
	for (size_t i = 0; i < NETLOG_TAGS; i++) {
		struct str rest = *s, name, text;

		if (!take(&rest, STR(" [")) || !take_until(&rest, STR(": "), &name) ||
			!is_tag_name(name) || !take_until(&rest, STR("]"), &text))
			return;
		ev->tags[i] = (struct netlog_tag){.name = name, .text = text};
		*s = rest;
	}
}

static bool take_method_url(struct str *s, struct netlog_event *ev)
{
	return take_until(s, STR(" "), &ev->method) && take_until(s, STR(" "), &ev->url);
}

/* " [by: NAME PID PROGRAM]", where PROGRAM may be missing. */
static void take_owner(struct str *s, struct netlog_event *ev)
{
	struct str rest = *s, text, name, number;
	uint64_t pid;

	if (!take(&rest, STR(" [by: ")) || !take_until(&rest, STR("]"), &text))
		return;
	name = str_prefix(text, str_chr(text, ' '));
	text = str_from_index(text, name.n + 1);
	number = str_prefix(text, str_chr(text, ' '));
	if (parse_u64(number, UINT32_MAX, &pid) < 0)
		return;
	ev->process = name;
	ev->pid = (uint32_t)pid;
	ev->program = str_from_index(text, number.n + 1);
	*s = rest;
}

/* Parses the text after "ALLOWED CONNECT " or "BLOCKED CONNECT ". */
static bool parse_connect(struct str s, struct netlog_event *ev)
{
	uint64_t port, status;
	struct str target;
	const char *colon;

	if (!take_until(&s, STR(" -> "), &target))
		return false;
	colon = target.n ? memrchr(target.p, ':', target.n) : NULL;
	if (!colon)
		return false;
	ev->host = str_prefix(target, (size_t)(colon - target.p));
	if (parse_u64(str_from_index(target, ev->host.n + 1), 65535, &port) < 0 ||
		!take_number(&s, 999, &status) || !take_note(&s, &ev->note))
		return false;
	ev->port = (uint16_t)port;
	ev->status = (int)status;
	take_owner(&s, ev);
	ev->kind = ev->allowed ? NETLOG_TUNNEL : NETLOG_CONNECT;
	if (take(&s, STR(" [tcp: "))) {
		ev->kind = NETLOG_TCP;
		return ev->allowed && take_number(&s, UINT64_MAX, &ev->bytes_out) &&
		       take(&s, STR("/")) && take_number(&s, UINT64_MAX, &ev->bytes_in) &&
		       str_eq(s, STR(" bytes]"));
	}
	(void)take(&s, STR(" [tunnel]"));
	return s.n == 0;
}

/* The region may be missing, like the other annotations. */
static bool take_region(struct str *s, struct str *ret)
{
	struct str before = *s;

	if (take(s, STR(" [region: ")) && !take_until(s, STR("]"), ret))
		*s = before;
	return true;
}

/* " [websocket: 12/7 frames, 3401/220 bytes, close 1000]" */
static bool take_websocket(struct str *s, struct netlog_event *ev)
{
	uint64_t code = 0;
	bool ok = take(s, STR(" [websocket: ")) && take_number(s, UINT64_MAX, &ev->frames_out) &&
		  take(s, STR("/")) && take_number(s, UINT64_MAX, &ev->frames_in) &&
		  take(s, STR(" frames, ")) && take_number(s, UINT64_MAX, &ev->payload_out) &&
		  take(s, STR("/")) && take_number(s, UINT64_MAX, &ev->payload_in) &&
		  take(s, STR(" bytes"));

	if (ok && take(s, STR(", close ")))
		ok = take_number(s, UINT16_MAX, &code);
	ev->close_code = (uint16_t)code;
	return ok && take(s, STR("]"));
}

static bool parse_request(struct str s, struct netlog_event *ev)
{
	struct str rest = s;
	uint64_t status;

	ev->kind = NETLOG_REQUEST;
	if (take(&rest, STR("CONNECT ")) && parse_connect(rest, ev))
		return true;
	*ev = (struct netlog_event){.kind = NETLOG_REQUEST, .allowed = ev->allowed};
	if (!take_method_url(&s, ev) || !take(&s, STR("-> ")) || !take_number(&s, 999, &status) ||
		!take_note(&s, &ev->note))
		return false;
	ev->status = (int)status;
	take_owner(&s, ev);
	take_tags(&s, ev);
	/* Annotations by other writers of this format are ignored. */
	(void)(take_annotation(&s, STR(" [masked: "), &ev->masked) &&
		take_annotation(&s, STR(" [dropped: "), &ev->dropped) &&
		take_region(&s, &ev->region) &&
		take_annotation(&s, STR(" [scrubbed: "), &ev->scrubbed));
	return s.n == 0 || str_starts(s, STR(" ["));
}

static bool parse_closed(struct str s, struct netlog_event *ev)
{
	uint64_t status;

	ev->kind = NETLOG_WEBSOCKET;
	if (!take_method_url(&s, ev) || !take(&s, STR("-> ")) || !take_number(&s, 999, &status) ||
		!take_note(&s, &ev->note) || !take_websocket(&s, ev))
		return false;
	ev->status = (int)status;
	return take_annotation(&s, STR(" [masked: "), &ev->masked) &&
	       take_annotation(&s, STR(" [dropped: "), &ev->dropped) &&
	       take_annotation(&s, STR(" [scrubbed: "), &ev->scrubbed) && s.n == 0;
}

static bool parse_dns(struct str s, struct netlog_event *ev)
{
	ev->kind = NETLOG_DNS;
	if (!take_until(&s, STR(" "), &ev->type) || !take_until(&s, STR(" -> "), &ev->name))
		return false;
	ev->answer = s;
	return true;
}

static bool parse_stripped(struct str s, struct netlog_event *ev)
{
	ev->kind = NETLOG_STRIPPED;
	return take_until(&s, STR("' from "), &ev->name) && take_method_url(&s, ev);
}

static bool parse_collapsed(struct str s, struct netlog_event *ev)
{
	ev->kind = NETLOG_COLLAPSED;
	return take_number(&s, UINT64_MAX, &ev->count) && take(&s, STR(" duplicate '")) &&
	       take_until(&s, STR("' headers in "), &ev->name) && take_method_url(&s, ev);
}

static bool parse_error(struct str s, struct netlog_event *ev)
{
	ev->kind = NETLOG_ERROR;
	if (!take_method_url(&s, ev) || !take(&s, STR("-> ")))
		return false;
	ev->note = s;
	return true;
}

static bool parse_warning(struct str s, struct netlog_event *ev)
{
	struct str rest = s;

	ev->kind = NETLOG_SUPPRESSED;
	if (take_number(&rest, UINT64_MAX, &ev->count) &&
		str_eq(rest, STR(" events suppressed (flood)")))
		return true;
	ev->kind = NETLOG_WARNING;
	ev->count = 0;
	ev->note = s;
	return true;
}

static bool parse_policy(struct str s, struct netlog_event *ev)
{
	ev->kind = NETLOG_POLICY;
	return take_number(&s, UINT64_MAX, &ev->count) && take(&s, STR(" rules")) &&
	       take_note(&s, &ev->note) && s.n == 0;
}

/* 0 if it is no time. */
static uint64_t time_of(struct str s)
{
	int64_t usec = 0;

	return parse_time(s, &usec) == 0 && usec > 0 ? (uint64_t)usec : 0;
}

static bool parse_mark(struct str s, struct netlog_event *ev)
{
	struct str when;

	ev->kind = NETLOG_TASK_START;
	if (!take(&s, STR("START "))) {
		ev->kind = NETLOG_TASK_END;
		if (!take(&s, STR("END ")))
			return false;
	}
	if (!take_until(&s, STR(" ==="), &when))
		return false;
	ev->time_usec = time_of(when);
	return s.n == 0 && ev->time_usec;
}

static bool parse_plain(struct str line, struct netlog_event *ev)
{
	static const struct {
		struct str start;
		bool (*parse)(struct str s, struct netlog_event *ev);
		bool allowed;
	} forms[] = {
		{STR("ALLOWED "), parse_request, true},
		{STR("BLOCKED "), parse_request, false},
		{STR("CLOSED "), parse_closed, false},
		{STR("DNS "), parse_dns, false},
		{STR("STRIPPED header '"), parse_stripped, false},
		{STR("COLLAPSED "), parse_collapsed, false},
		{STR("ERROR "), parse_error, false},
		{STR("WARNING: "), parse_warning, false},
		{STR("POLICY "), parse_policy, false},
		{STR("=== TASK "), parse_mark, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct str rest = line;

		*ev = (struct netlog_event){.allowed = forms[i].allowed};
		if (take(&rest, forms[i].start) && forms[i].parse(rest, ev))
			return true;
	}
	return false;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes escape_log() in place, in the reader's own line. */
static void reader_unescape(struct str *s)
{
	char *p = (char *)(uintptr_t)s->p;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		int high = i + 2 < s->n ? hex_value(p[i + 1]) : -1;
		int low = i + 2 < s->n ? hex_value(p[i + 2]) : -1;

		if (p[i] == '%' && high >= 0 && low >= 0) {
			p[n++] = (char)(high << 4 | low);
			i += 2;
		} else {
			p[n++] = p[i];
		}
	}
	s->n = n;
}

static void unescape_event(struct netlog_event *ev)
{
	struct str *texts[] = {&ev->method, &ev->url, &ev->host, &ev->note, &ev->name, &ev->type,
		&ev->answer, &ev->process, &ev->program, &ev->region};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i]->p)
			reader_unescape(texts[i]);
	for (size_t i = 0; i < NETLOG_TAGS; i++)
		if (ev->tags[i].text.p)
			reader_unescape(&ev->tags[i].text);
}

static uint64_t json_u64(const json_t *o, const char *key, uint64_t max)
{
	return MIN(json_count_at(o, key), max);
}

static bool kind_from_word(struct str word, enum netlog_kind *ret)
{
	for (int kind = NETLOG_REQUEST; kind < NETLOG_OTHER; kind++)
		if (str_eq(word, str_from(netlog_kind_word((enum netlog_kind)kind)))) {
			*ret = (enum netlog_kind)kind;
			return true;
		}
	return false;
}

static void reader_tags(json_t *o, struct netlog_event *ev)
{
	const char *name;
	json_t *text;
	size_t i = 0;

	json_object_foreach (o, name, text) {
		if (i < NETLOG_TAGS && json_is_string(text))
			ev->tags[i++] =
				(struct netlog_tag){.name = str_from(name), .text = json_str(text)};
	}
}

static bool parse_json(json_t *o, struct netlog_event *ev)
{
	const json_t *duration = json_object_get(o, "duration_ms");
	double ms = json_is_number(duration) ? json_number_value(duration) : 0;

	*ev = (struct netlog_event){
		.time_usec = time_of(json_str_at(o, "time")),
		.allowed = str_eq(json_str_at(o, "decision"), STR("allowed")),
		.method = json_str_at(o, "method"),
		.url = json_str_at(o, "url"),
		.host = json_str_at(o, "host"),
		.port = (uint16_t)json_u64(o, "port", UINT16_MAX),
		.status = (int)json_u64(o, "status", 999),
		.rule = json_str_at(o, "rule"),
		.reason = json_str_at(o, "reason"),
		.note = json_str_at(o, "note"),
		.name = json_str_at(o, "name"),
		.type = json_str_at(o, "type"),
		.answer = json_str_at(o, "answer"),
		.region = json_str_at(o, "region"),
		.pid = (uint32_t)json_u64(o, "pid", UINT32_MAX),
		.process = json_str_at(o, "process"),
		.program = json_str_at(o, "program"),
		.count = json_count_at(o, "count"),
		.has_transfer = duration != NULL,
		.duration_usec = ms > 0 && ms < 1e12 ? (uint64_t)(ms * 1000 + 0.5) : 0,
		.bytes_in = json_count_at(o, "bytes_in"),
		.bytes_out = json_count_at(o, "bytes_out"),
		.masked = (unsigned)json_u64(o, "masked", UINT_MAX),
		.dropped = (unsigned)json_u64(o, "dropped", UINT_MAX),
		.collapsed = (unsigned)json_u64(o, "collapsed", UINT_MAX),
		.scrubbed = (unsigned)json_u64(o, "scrubbed", UINT_MAX),
		.frames_out = json_count_at(o, "frames_out"),
		.frames_in = json_count_at(o, "frames_in"),
		.payload_out = json_count_at(o, "payload_out"),
		.payload_in = json_count_at(o, "payload_in"),
		.close_code = (uint16_t)json_u64(o, "close_code", UINT16_MAX),
	};
	reader_tags(json_object_get(o, "tags"), ev);
	return kind_from_word(json_str_at(o, "event"), &ev->kind);
}

static void parse_line(struct netlog_reader *r, struct netlog_event *ret)
{
	struct str line = buf_str(&r->line);
	bool whole = !r->skipping; /* else it is only the front of a line */

	json_decref(r->json);
	r->json = NULL;
	if (whole && line.p[0] == '{')
		r->json = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (r->json && parse_json(r->json, ret))
		return;
	if (whole && !r->json && parse_plain(line, ret))
		unescape_event(ret);
	else
		*ret = (struct netlog_event){.kind = NETLOG_OTHER, .note = line};
}

/* Reads more into r->in. */
static int reader_fill(struct netlog_reader *r, struct cloche_err *err)
{
	char *at;
	ssize_t n;

	if (buf_reserve(&r->in, CHUNK, &at) < 0)
		return err_nomem(err);
	do
		n = read(r->fd, at, CHUNK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "read the network log");
	buf_commit(&r->in, (size_t)n);
	r->at_end = n == 0;
	return 0;
}

/* Cuts the next line into r->line. Returns 1, 0 at the end, or negative. */
static int next_line(struct netlog_reader *r, struct cloche_err *err)
{
	for (;;) {
		struct str in = buf_str(&r->in);
		size_t end = str_chr(in, '\n');
		bool was_skipping = r->skipping;
		int result;

		if (end == in.n && !r->at_end && in.n < LINE_MAX_READ) {
			result = reader_fill(r, err);
			if (result < 0)
				return result;
			continue;
		}
		if (end == in.n && in.n < LINE_MAX_READ && r->follow) {
			r->at_end = false;
			return 0;
		}
		if (in.n == 0)
			return 0;
		/* Keep the front of a line that is too long and skip the rest. */
		r->skipping = end == in.n && !r->at_end;
		buf_clear(&r->line);
		if (!was_skipping && buf_add_str(&r->line, str_prefix(in, end)) < 0)
			return err_nomem(err);
		buf_consume(&r->in, MIN(end + 1, in.n));
		if (buf_len(&r->line) > 0)
			return 1;
	}
}

int netlog_reader_skip(struct netlog_reader *r, struct cloche_err *err)
{
	if (lseek(r->fd, 0, SEEK_END) < 0)
		return err_sys(err, errno, "go to the end of the network log");
	buf_clear(&r->in);
	r->at_end = r->skipping = false;
	return 0;
}

void netlog_reader_follow(struct netlog_reader *r)
{
	r->follow = true;
}

int netlog_reader_next(struct netlog_reader *r, struct netlog_event *ret, struct cloche_err *err)
{
	int result;

	do {
		result = next_line(r, err);
		if (result <= 0)
			return result;
		parse_line(r, ret);
		r->any = true;
		r->known |= ret->kind != NETLOG_OTHER;
		/* The event at the end of the request repeats all of this; it is missing only after
		 * a crash. */
	} while (ret->kind == NETLOG_INTENT);
	return 1;
}

int netlog_reader_check(const struct netlog_reader *r, const char *path, struct cloche_err *err)
{
	if (!r->any || r->known)
		return 0;
	return err_set(err, E_CONFIG,
		"%s is not a network log: no line of it is one of a network log", path);
}

void netlog_summary_add(cloche_network_summary *sum, const struct netlog_event *ev)
{
	sum->blocked += netlog_event_is_blocked(ev);
	sum->allowed += netlog_event_is_allowed(ev);
	sum->dns += ev->kind == NETLOG_DNS;
	sum->errors += ev->kind == NETLOG_ERROR;
	sum->stripped += ev->kind == NETLOG_STRIPPED;
	sum->masked += ev->masked;
	sum->bytes_in += ev->bytes_in;
	sum->bytes_out += ev->bytes_out;
}
