/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The network log: one line per event, in the plain form that people and older tools read, and as
 * JSON Lines. Text from the room or a network is escaped in both (base/escape.h in the plain form,
 * pure ASCII JSON in the other), so no event can look like another or control a terminal. */

#include "base/buf.h"
#include "base/macro.h"
#include "base/str.h"

/* A line is never longer, newline included; long fields are cut and end in "...". */
#define NETLOG_LINE_MAX 4096

enum netlog_kind {
	NETLOG_REQUEST, /* ALLOWED|BLOCKED METHOD URL -> STATUS[ (note)][ annotations] */
	NETLOG_CONNECT, /* refused connection: BLOCKED CONNECT HOST:PORT -> STATUS (note) */
	NETLOG_TUNNEL,  /* ALLOWED CONNECT HOST:PORT -> 200 [tunnel] */
	/* ALLOWED CONNECT HOST:PORT -> 200 [tcp: OUT/IN bytes] */
	NETLOG_TCP,
	NETLOG_DNS,        /* DNS TYPE NAME -> ANSWER */
	NETLOG_STRIPPED,   /* STRIPPED header 'NAME' from METHOD URL (foreign credential blocked) */
	NETLOG_COLLAPSED,  /* COLLAPSED N duplicate 'NAME' headers in METHOD URL (...) */
	NETLOG_ERROR,      /* ERROR METHOD URL -> NOTE */
	NETLOG_WARNING,    /* WARNING: NOTE */
	NETLOG_TASK_START, /* === TASK START 2026-01-31T12:00:00Z === */
	NETLOG_TASK_END,   /* === TASK END 2026-01-31T12:00:00Z === */
	NETLOG_SUPPRESSED, /* WARNING: N events suppressed (flood) */
	NETLOG_POLICY,    /* POLICY COUNT rules[ (note)]: another policy is in force from here on */
	NETLOG_WEBSOCKET, /* WebSocket end: CLOSED METHOD URL -> 101[ (note)] [websocket: ...] */
	NETLOG_INTENT,    /* an allowed request begins: JSON Lines only, not counted */
	NETLOG_OTHER,     /* reader only: a line that is none of these */
};

/* A remark of a request filter: " [name: text]" after the status. */
struct netlog_tag {
	struct str name; /* a word of ours, different for each tag */
	struct str text;
};
enum { NETLOG_TAGS = 2 };

/* One event; all views are borrowed. Zero what does not apply. */
struct netlog_event {
	enum netlog_kind kind;
	uint64_t time_usec;     /* wall clock; 0: the writer fills in now */
	bool allowed;           /* request */
	struct str method, url; /* url as the client meant it: scheme://host[:port]/path?query */
	struct str host;
	uint16_t port;
	int status;        /* 0: none */
	struct str rule;   /* label of the rule that decided, or came nearest */
	struct str reason; /* policy_reason_word(), "ssrf", ...; JSON only */
	struct str note; /* short text: "host mismatch: header=a, url=b", upstream error, warning */
	struct str name; /* header (stripped, collapsed), DNS name */
	struct str type; /* DNS type */
	struct str answer; /* DNS answer */
	/* The process of the room that asked, if it was looked up: number, name, path; any
	 * bytes. */
	uint32_t pid;
	struct str process, program;
	struct str region; /* of an AWS signature that was made again */
	uint64_t count;    /* collapsed, suppressed, rules of a policy */
	bool has_transfer; /* the next three are known */
	uint64_t duration_usec, bytes_in,
		bytes_out; /* in: towards the room; out: to the upstream */
	unsigned masked, dropped, collapsed, scrubbed;
	struct netlog_tag tags[NETLOG_TAGS]; /* for a request; those without a text are skipped */
	/* websocket: frames of the room and of the origin, bytes of their payloads, and the code of
	 * the close frame that came first, 0: none */
	uint64_t frames_out, frames_in, payload_out, payload_in;
	uint16_t close_code;
};

/* Whether the event says that something was allowed, or refused. */
static inline bool netlog_event_is_allowed(const struct netlog_event *ev)
{
	return (ev->kind == NETLOG_REQUEST && ev->allowed) || ev->kind == NETLOG_TUNNEL ||
	       ev->kind == NETLOG_TCP;
}

static inline bool netlog_event_is_blocked(const struct netlog_event *ev)
{
	return (ev->kind == NETLOG_REQUEST && !ev->allowed) || ev->kind == NETLOG_CONNECT;
}

struct netlog_config {
	int plain_fd, json_fd; /* opened with O_APPEND by the caller; -1: not wanted; borrowed */
	int live_fd; /* plain lines after "[net] ", best effort; -1: not wanted; borrowed */
	/* JSON lines without NETLOG_INTENT, best effort; -1: not wanted; borrowed. A new file of
	 * our own: from kept_max bytes on, the oldest lines are dropped by a hole at its front. */
	int kept_fd;
	uint64_t kept_max;
	/* The average limit per second, and the burst, for events other than allowed traffic,
	 * policies and task marks; 0: no limit. Further events are only counted, and the count is
	 * reported at most once a second. */
	unsigned flood_per_sec, flood_burst;
};

#define NETLOG_CONFIG_DEFAULT                                                                      \
	((struct netlog_config){.plain_fd = -1,                                                    \
		.json_fd = -1,                                                                     \
		.live_fd = -1,                                                                     \
		.kept_fd = -1,                                                                     \
		.kept_max = 16 << 20,                                                              \
		.flood_per_sec = 200,                                                              \
		.flood_burst = 2000})

struct netlog;

/* NULL on lack of memory. Copies config. */
struct netlog *netlog_new(const struct netlog_config *config);
/* Write waiting events, report suppressed ones and free. The descriptors stay open. Return
 * NULL. */
struct netlog *netlog_free(struct netlog *log);
DEFINE_CLEANUP(struct netlog, netlog_free)

/* Write an event, with one write() per form. Return 0 (also if the flood limit swallowed it), or
 * -errno if a log could not be written completely (disk full): then the event is not on record and
 * a request must not go on. After a torn write the next one starts on a new line. */
_warn_unused_ int netlog_write(struct netlog *log, const struct netlog_event *ev);

/* As netlog_write, but the event may wait: it is written with the next one that does not wait, or
 * by netlog_flush. The caller has to call netlog_flush soon, and before anything happens that must
 * be on record. Return 0, or negative if the event will not be written. */
_warn_unused_ int netlog_write_later(struct netlog *log, const struct netlog_event *ev);

/* Write waiting events. Return 0 if everything since the last call is on record, or -errno if a
 * log could not be written completely, by this call or an earlier one. */
_warn_unused_ int netlog_flush(struct netlog *log);

/* Return how many waiting events could not be written since the last call; intents do not
 * count. */
unsigned netlog_take_lost(struct netlog *log);

/* Report suppressed events if that is due; call it about once a second while idle. Return the
 * same as netlog_write. */
_warn_unused_ int netlog_tick(struct netlog *log);

/* Counts of everything that was passed to netlog_write, suppressed or not. */
struct netlog_counts {
	uint64_t allowed, blocked, suppressed;
};
struct netlog_counts netlog_counts(const struct netlog *log);

/* Append the event in one form, newline included. Return 0 or negative errno. */
_warn_unused_ int netlog_format_plain(const struct netlog_event *ev, struct buf *out);
_warn_unused_ int netlog_format_json(const struct netlog_event *ev, struct buf *out);
/* Append a line that is safe for a terminal: the plain form, after "12:00:00.123 " in UTC if the
 * time is known. Return 0 or negative errno. */
_warn_unused_ int netlog_event_show(const struct netlog_event *ev, struct buf *out);
/* "request", "dns", ...; never NULL. */
const char *netlog_kind_word(enum netlog_kind kind);
