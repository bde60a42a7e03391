/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: nghttp2 keeps the state of frames, streams, windows and compression; this
 * code decides what a peer may make it do. Each stream of the library has a struct h2_stream from
 * its first head (h2_request() for a client) until the library closes it.
 *
 * What a peer can make us do without giving anything (resets, frames that break a rule, frames that
 * carry nothing) is paid from token buckets; when one is empty, the connection ends. The library's
 * own limits stand behind ours; it has none for resets that a peer provokes (CVE-2025-8671). */
#include "http/h2_internal.h"
#include "http/limits.h"

#include <errno.h>
#include <malloc.h>
#include <utlist.h>

enum {
	OUTBOUND_ACKS_MAX = 1000,
	SETTINGS_MAX = 32, /* entries of one frame */
	TABLE_SIZE = 4096, /* of the compression tables, both ways */
	FRAME_HEADER = 9,
	PREFACE = 24, /* of a client, before its first frame */
};

int h2_calm(struct h2 *h, const char *why)
{
	if (!*h->error) {
		h->error = why;
		h->calm = true;
		(void)nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
	}
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int h2_glitch(struct h2 *h)
{
	return http_rate_take(&h->glitches) ? 0 : h2_calm(h, "too many frames that break a rule");
}

struct h2_stream *h2_stream_new(struct h2 *h)
{
	struct h2_stream *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->h = h;
	st->window = h->c.stream_window;
	st->trailers = HTTP_FIELDS_INIT;
	DL_APPEND(h->streams, st);
	h->open++;
	return st;
}

static void stream_free(struct h2_stream *st)
{
	struct h2 *h = st->h;

	DL_DELETE(h->streams, st);
	h->open--;
	http_fields_done(&st->trailers);
	free(st);
}

struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id)
{
	struct h2_stream *st;

	DL_FOREACH (h->streams, st)
		if (st->id == id)
			return st;
	return NULL;
}

void h2_stream_closed(struct h2_stream *st, enum h2_error error)
{
	struct h2 *h = st->h;

	if (st->told && !st->detached)
		h->c.on->closed(h->c.arg, st, error);
	if (st->held > st->ahead)
		(void)nghttp2_session_consume_connection(h->session, st->held - st->ahead);
	stream_free(st);
}

/* --- memory that held secrets --- */

static void *wiping_malloc(size_t n, void *arg)
{
	return malloc(n);
}

static void *wiping_calloc(size_t n, size_t size, void *arg)
{
	return calloc(n, size);
}

static void wiping_free(void *p, void *arg)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *wiping_realloc(void *p, size_t n, void *arg)
{
	void *q = malloc(n);

	if (p && q) {
		memcpy(q, p, MIN(n, malloc_usable_size(p)));
		wiping_free(p, arg);
	}
	return q;
}

/* --- a connection --- */

static int make_session(struct h2 *h, nghttp2_session_callbacks *cb, nghttp2_option *o)
{
	static nghttp2_mem wiping = {
		NULL, wiping_malloc, wiping_free, wiping_calloc, wiping_realloc};
	nghttp2_mem *mem = h->c.wipe ? &wiping : NULL;

	h2_recv_callbacks(cb);
	h2_send_callbacks(cb);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_max_deflate_dynamic_table_size(o, TABLE_SIZE);
	nghttp2_option_set_max_send_header_block_length(o, 2 * HTTP_STORE_MAX);
	nghttp2_option_set_max_outbound_ack(o, OUTBOUND_ACKS_MAX);
	nghttp2_option_set_max_settings(o, SETTINGS_MAX);
	if (h->c.peer_streams > 0)
		nghttp2_option_set_peer_max_concurrent_streams(o, h->c.peer_streams);
	nghttp2_option_set_stream_reset_rate_limit(o, 2 * H2_RESETS_BURST, 2 * H2_RESETS_RATE);
	/* The library counts each piece of a frame's header that comes separately. */
	nghttp2_option_set_max_continuations(o, FRAME_HEADER * (H2_CONTINUATIONS_MAX + 1));
	return h->c.role == H2_SERVER ? nghttp2_session_server_new3(&h->session, cb, h, o, mem)
				      : nghttp2_session_client_new3(&h->session, cb, h, o, mem);
}

static int say_settings(struct h2 *h)
{
	nghttp2_settings_entry server[] = {
		{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, TABLE_SIZE},
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, h->c.stream_window},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX},
		{NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	/* What curl says, in its order, so that an origin sees a client that it knows. Only its
	 * window is smaller: it would be given to each stream before the room has read any. */
	nghttp2_settings_entry client[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, h->c.stream_window},
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	bool s = h->c.role == H2_SERVER;
	int r = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, s ? server : client,
		s ? ARRAY_SIZE(server) : ARRAY_SIZE(client));

	return r < 0 ? r
		     : nghttp2_session_set_local_window_size(
			       h->session, NGHTTP2_FLAG_NONE, 0, (int32_t)h->c.window);
}

struct h2 *h2_new(const struct h2_config *config)
{
	_cleanup_(h2_freep) struct h2 *h = calloc(1, sizeof(*h));
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *option = NULL;
	int r = NGHTTP2_ERR_NOMEM;

	if (!h)
		return NULL;
	h->c = *config;
	h->error = "";
	h->head = HTTP_HEAD_INIT;
	h->trailers = HTTP_FIELDS_INIT;
	h->cookie = BUF_INIT(HTTP_VALUE_MAX);
	h->text = BUF_INIT(HTTP_STORE_MAX);
	h->frame_left = config->role == H2_SERVER ? PREFACE : 0;
	h->resets = http_rate_make(H2_RESETS_BURST, H2_RESETS_RATE);
	h->glitches = http_rate_make(H2_GLITCHES_BURST, H2_GLITCHES_RATE);
	h->control = http_rate_make(H2_CONTROL_BURST, H2_CONTROL_RATE);
	h->pieces = http_rate_make(HTTP_PIECES_BURST, HTTP_PIECES_RATE);
	if (nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&option) == 0)
		r = make_session(h, cb, option);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(option);
	if (r == 0)
		r = say_settings(h);
	return r < 0 ? NULL : TAKE_PTR(h);
}

static void buf_end(const struct h2 *h, struct buf *b)
{
	if (h->c.wipe)
		buf_done_wiped(b);
	else
		buf_done(b);
}

struct h2 *h2_free(struct h2 *h)
{
	if (!h)
		return NULL;
	nghttp2_session_del(h->session);
	while (h->streams)
		stream_free(h->streams);
	http_head_done(&h->head);
	http_fields_done(&h->trailers);
	buf_end(h, &h->cookie);
	buf_end(h, &h->text);
	free(h);
	return NULL;
}

/* Handle a fatal error of the library. Return -ENOMEM or -EPROTO. */
static int fatal(struct h2 *h, int r)
{
	if (r == NGHTTP2_ERR_NOMEM) {
		h->error = "out of memory";
		return -ENOMEM;
	}
	if (r == NGHTTP2_ERR_FLOODED || r == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS)
		(void)h2_calm(h, nghttp2_strerror(r));
	if (!*h->error) {
		h->error = nghttp2_strerror(r);
		(void)nghttp2_session_terminate_session(h->session, NGHTTP2_PROTOCOL_ERROR);
	}
	return -EPROTO;
}

int h2_feed(struct h2 *h, struct str bytes)
{
	while (!*h->error && bytes.n > 0) {
		ssize_t n = h2_frame_next(h, bytes), r;

		if (n < 0)
			break;
		r = nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes.p, (size_t)n);
		if (r < 0)
			return fatal(h, (int)r);
		bytes = str_from_index(bytes, (size_t)n);
	}
	return *h->error ? -EPROTO : 0;
}

int h2_output(struct h2 *h, struct buf *out, size_t enough)
{
	int r = 0;

	h->out = out;
	h->enough = enough;
	while (buf_len(out) < enough && buf_room(out) >= H2_OUT_MIN) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(h->session, &p);

		if (n < 0)
			r = fatal(h, (int)n);
		else if (n > 0)
			r = buf_add(out, p, (size_t)n);
		if (n <= 0 || r < 0)
			break;
	}
	h->out = NULL;
	return r;
}

bool h2_wants_output(const struct h2 *h)
{
	return nghttp2_session_want_write(h->session);
}

bool h2_is_done(const struct h2 *h)
{
	return !h2_wants_output(h) && (*h->error || !nghttp2_session_want_read(h->session));
}

const char *h2_error_text(const struct h2 *h)
{
	return h->error;
}

bool h2_is_calmed(const struct h2 *h)
{
	return h->calm;
}

bool h2_is_within_head(const struct h2 *h)
{
	return h->within_head;
}

const char *h2_error_name(enum h2_error error)
{
	return nghttp2_http2_strerror(error);
}

void h2_reset(struct h2_stream *st, enum h2_error error)
{
	st->detached = st->expected = true;
	st->user = NULL;
	(void)nghttp2_submit_rst_stream(st->h->session, NGHTTP2_FLAG_NONE, st->id, error);
}

void h2_consume(struct h2_stream *st, size_t n)
{
	size_t ahead;

	n = MIN(n, st->held);
	ahead = MIN(n, st->ahead);
	st->held -= n;
	st->ahead -= ahead;
	(void)nghttp2_session_consume_stream(st->h->session, st->id, n);
	(void)nghttp2_session_consume_connection(st->h->session, n - ahead);
}

void h2_credit(struct h2_stream *st, size_t n)
{
	nghttp2_session *session = st->h->session;
	size_t back = MIN(n, st->held);

	st->held -= back;
	(void)nghttp2_session_consume_connection(session, back);
	if (nghttp2_submit_window_update(
		    session, NGHTTP2_FLAG_NONE, st->id, (int32_t)MIN(n, (size_t)INT32_MAX)) == 0 &&
		n > back)
		st->window += (uint32_t)(n - back);
}

int h2_widen(struct h2_stream *st, uint32_t window)
{
	int r = window > INT32_MAX ? NGHTTP2_ERR_INVALID_ARGUMENT
				   : nghttp2_session_set_local_window_size(st->h->session,
					     NGHTTP2_FLAG_NONE, st->id, (int32_t)window);

	if (r < 0)
		return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EINVAL;
	st->window = window;
	return 0;
}

void h2_consume_ahead(struct h2_stream *st, size_t n)
{
	n = MIN(n, st->held - st->ahead);
	st->ahead += n;
	(void)nghttp2_session_consume_connection(st->h->session, n);
}

void h2_goaway(struct h2 *h, enum h2_error error)
{
	nghttp2_session *s = h->session;

	if (*h->error || (h->going && error == H2_NO_ERROR))
		return;
	h->going = true;
	if (error == H2_NO_ERROR) {
		(void)nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE,
			nghttp2_session_get_last_proc_stream_id(s), NGHTTP2_NO_ERROR, NULL, 0);
		return;
	}
	h->error = h2_error_name(error);
	(void)nghttp2_session_terminate_session(s, error);
}

unsigned h2_streams_max(const struct h2 *h)
{
	return MIN((uint32_t)H2_STREAMS_MAX, nghttp2_session_get_remote_settings(h->session,
						     NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS));
}

unsigned h2_streams_free(const struct h2 *h)
{
	unsigned max = h2_streams_max(h);

	if (h->going || *h->error || !nghttp2_session_check_request_allowed(h->session))
		return 0;
	return max > h->open ? max - h->open : 0;
}

unsigned h2_streams_open(const struct h2 *h)
{
	return h->open;
}

void h2_stream_set_user(struct h2_stream *st, void *user)
{
	st->user = user;
}

void *h2_stream_user(const struct h2_stream *st)
{
	return st->user;
}

uint32_t h2_stream_id(const struct h2_stream *st)
{
	return (uint32_t)st->id;
}
