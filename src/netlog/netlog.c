/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: events are formatted into one buffer per form and written as whole lines
 * with one write() per form, so that lines of several writers with O_APPEND do not mix. A partial
 * write is an error for the caller: a request that cannot be recorded must not happen. Events that
 * have happened already may wait for other lines (netlog_write_later): a busy gateway then makes a
 * few system calls per iteration of its loop instead of two per request.
 *
 * A room can make events much faster than anyone reads them. Except for allowed requests (they cost
 * a round trip and are what the log is for), events pass a token bucket. Events that do not fit are
 * only counted, and the count is written once a second. */
#include "netlog/netlog.h"

#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { WAITING_MAX = 32 * 1024 };

struct sink {
	int fd;
	bool torn;      /* the last line was not written whole */
	struct buf out; /* lines that wait */
};

struct netlog {
	struct sink plain, json, live, kept;
	uint64_t kept_max, kept_bytes, kept_dropped;
	unsigned per_sec, burst;
	uint64_t tokens_usec; /* fill level of the bucket; an event costs USEC_PER_SEC / per_sec */
	uint64_t refilled_usec; /* monotonic */
	uint64_t reported_usec; /* monotonic; when suppressed events were last reported */
	uint64_t pending;       /* suppressed and not yet reported */
	struct netlog_counts counts;
	struct buf line;
	unsigned waiting, lost; /* events of netlog_write_later; intents are not counted */
	int failed;             /* the first failure since the last netlog_flush */
};

struct netlog *netlog_new(const struct netlog_config *config)
{
	struct netlog *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->plain.fd = config->plain_fd;
	log->json.fd = config->json_fd;
	log->live.fd = config->live_fd;
	log->kept.fd = config->kept_fd;
	log->kept_max = config->kept_max;
	log->per_sec = config->flood_per_sec;
	log->burst = MAX(config->flood_burst, 1U);
	log->refilled_usec = clock_mono_usec();
	if (log->per_sec)
		log->tokens_usec = (uint64_t)log->burst * (USEC_PER_SEC / log->per_sec);
	log->line = BUF_INIT(2 * NETLOG_LINE_MAX);
	log->plain.out = log->json.out = log->live.out = log->kept.out =
		BUF_INIT(WAITING_MAX + (size_t)4 * NETLOG_LINE_MAX);
	return log;
}

/* Writes all waiting lines with one write(). After a torn write, starts on a new line. Whether it
 * succeeds or not, no line waits afterwards. */
static int sink_flush(struct sink *sink)
{
	struct str s = buf_str(&sink->out);
	ssize_t n;

	if (s.n == 0)
		return 0;
	buf_clear(&sink->out); /* s stays readable */
	if (sink->torn) {
		n = write(sink->fd, "\n", 1);
		if (n != 1)
			return n < 0 ? -errno : -ENOSPC;
		sink->torn = false;
	}
	do
		n = write(sink->fd, s.p, s.n);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)s.n)
		return 0;
	sink->torn = n > 0 && s.p[n - 1] != '\n';
	return n < 0 ? -errno : -ENOSPC;
}

/* Drops lines of the kept log when it is a quarter too long. Where that is not possible the log
 * ends. */
static void flush_kept(struct netlog *log)
{
	size_t n = buf_len(&log->kept.out);
	uint64_t most = log->kept_max, end;

	if (log->kept.fd < 0 || n == 0 || sink_flush(&log->kept) < 0)
		return;
	log->kept_bytes += n;
	if (log->kept_bytes - log->kept_dropped <= most + most / 4)
		return;
	end = (log->kept_bytes - most) & ~4095ULL;
	if (fallocate(log->kept.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)end) < 0)
		log->kept.fd = -1;
	log->kept_dropped = end;
}

/* Returns the first failure of a file. The live view and the kept log may fail. */
static int flush_all(struct netlog *log)
{
	int r = sink_flush(&log->plain), json_r = sink_flush(&log->json);

	(void)sink_flush(&log->live);
	flush_kept(log);
	return r < 0 ? r : json_r;
}

static int write_waiting(struct netlog *log)
{
	int r = flush_all(log);

	if (r < 0) {
		log->lost += log->waiting;
		log->failed = log->failed ? log->failed : r;
	}
	log->waiting = 0;
	return r;
}

int netlog_flush(struct netlog *log)
{
	int r;

	(void)!write_waiting(log);
	r = log->failed;
	log->failed = 0;
	return r;
}

static int sink_add(struct sink *sink, const struct buf *line, size_t offset)
{
	return sink->fd < 0 ? 0 : buf_add_str(&sink->out, str_from_index(buf_str(line), offset));
}

/* Adds one event to the waiting lines, in all forms. */
static int netlog_add(struct netlog *log, const struct netlog_event *ev)
{
	static const char live_mark[] = "[net] ";
	size_t mark = sizeof(live_mark) - 1;
	int r = 0;

	buf_clear(&log->line);
	if (ev->kind != NETLOG_INTENT && (log->plain.fd >= 0 || log->live.fd >= 0)) {
		r = buf_add(&log->line, live_mark, mark);
		if (r == 0)
			r = netlog_format_plain(ev, &log->line);
		if (r == 0)
			r = sink_add(&log->plain, &log->line, mark);
		if (r == 0)
			(void)!sink_add(&log->live, &log->line, 0);
		buf_clear(&log->line);
	}
	if (r < 0 || (log->json.fd < 0 && log->kept.fd < 0))
		return r;
	r = netlog_format_json(ev, &log->line);
	if (r == 0 && ev->kind != NETLOG_INTENT)
		(void)!sink_add(&log->kept, &log->line, 0);
	return r < 0 ? r : sink_add(&log->json, &log->line, 0);
}

/* Writes one event, after those that wait. */
static int netlog_put(struct netlog *log, const struct netlog_event *ev)
{
	int r = netlog_add(log, ev), e = write_waiting(log);

	return r < 0 ? r : e;
}

static bool is_limited(const struct netlog_event *ev)
{
	if (ev->kind == NETLOG_TASK_START || ev->kind == NETLOG_TASK_END ||
		ev->kind == NETLOG_POLICY || ev->kind == NETLOG_INTENT)
		return false;
	/* An error may have come after the request was sent. */
	return !((ev->kind == NETLOG_REQUEST || ev->kind == NETLOG_ERROR) && ev->allowed) &&
	       ev->kind != NETLOG_TUNNEL && ev->kind != NETLOG_TCP && ev->kind != NETLOG_WEBSOCKET;
}

/* Takes a token. False: the event is over the limit. */
static bool take_token(struct netlog *log)
{
	uint64_t now = clock_mono_usec(), price, full;

	if (!log->per_sec)
		return true;
	price = MAX(USEC_PER_SEC / log->per_sec, 1ULL);
	full = price * log->burst;
	log->tokens_usec = MIN(full, log->tokens_usec + (now - log->refilled_usec));
	log->refilled_usec = now;
	if (log->tokens_usec < price)
		return false;
	log->tokens_usec -= price;
	return true;
}

static int report_suppressed(struct netlog *log)
{
	struct netlog_event ev = {
		.kind = NETLOG_SUPPRESSED, .time_usec = clock_real_usec(), .count = log->pending};
	int r = netlog_put(log, &ev);

	if (r == 0)
		log->pending = 0;
	log->reported_usec = clock_mono_usec();
	return r;
}

int netlog_tick(struct netlog *log)
{
	if (!log->pending || clock_mono_usec() - log->reported_usec < USEC_PER_SEC)
		return 0;
	return report_suppressed(log);
}

/* Counts an event. Returns 1 if it is to be written, 0 if it was only counted, or a failure. */
static int netlog_admit(struct netlog *log, const struct netlog_event *ev)
{
	bool over = is_limited(ev) && !take_token(log);
	int r;

	log->counts.allowed += netlog_event_is_allowed(ev);
	log->counts.blocked += netlog_event_is_blocked(ev);
	if (over) {
		log->counts.suppressed++;
		log->pending++;
	}
	r = netlog_tick(log);
	return r < 0 ? r : !over;
}

static struct netlog_event netlog_stamped(const struct netlog_event *ev)
{
	struct netlog_event copy = *ev;

	if (!copy.time_usec)
		copy.time_usec = clock_real_usec();
	return copy;
}

int netlog_write(struct netlog *log, const struct netlog_event *ev)
{
	struct netlog_event copy = netlog_stamped(ev);
	int r = netlog_admit(log, ev);

	return r <= 0 ? r : netlog_put(log, &copy);
}

int netlog_write_later(struct netlog *log, const struct netlog_event *ev)
{
	struct netlog_event copy = netlog_stamped(ev);
	int r = netlog_admit(log, ev);

	if (r <= 0)
		return r;
	r = netlog_add(log, &copy);
	if (r < 0)
		return r;
	log->waiting += ev->kind != NETLOG_INTENT;
	if (buf_len(&log->plain.out) > WAITING_MAX || buf_len(&log->json.out) > WAITING_MAX ||
		buf_len(&log->kept.out) > WAITING_MAX)
		(void)!write_waiting(log); /* netlog_flush reports it */
	return 0;
}

unsigned netlog_take_lost(struct netlog *log)
{
	unsigned n = log->lost;

	log->lost = 0;
	return n;
}

struct netlog_counts netlog_counts(const struct netlog *log)
{
	return log->counts;
}

struct netlog *netlog_free(struct netlog *log)
{
	if (!log)
		return NULL;
	if (log->pending)
		(void)report_suppressed(log);
	(void)!netlog_flush(log);
	buf_done(&log->plain.out);
	buf_done(&log->json.out);
	buf_done(&log->live.out);
	buf_done(&log->kept.out);
	buf_done(&log->line);
	free(log);
	return NULL;
}
