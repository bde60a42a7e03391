/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: three requests at most are under way. One is the process (Start): its answer
 * goes on as long as the process lives, and has what that writes. One brings it input (SendInput),
 * a piece at a time, as nothing but an answer says that a piece has come before the next. The third
 * tells the service every minute that the sandbox is still wanted; if we die, it ends by itself.
 *
 * Both ways are bounded. If our reader waits, the answer is not read any further, and if the
 * process does not read, its service does not answer, and we read no more. A piece that got no
 * answer may have come or not: then the stream is over. Who uses it has numbered what is on its
 * way, and goes on by another stream. */
#include "stream.h"
#include "asked/asked.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE_MAX = 256 * 1024,
	OUT_ENOUGH = 256 * 1024,
	OUT_MAX = OUT_ENOUGH + 2 * ANSWER_MAX,
	BODY_MAX = 4 * PIECE_MAX,
	REFUSAL_MAX = 64 * 1024,
	WORDS_MAX = 16 * 1024, /* no more is ever shown */
	READ_BYTES = 64 * 1024,
	START_SEC = 30,
	INPUT_SEC = 300, /* a process that does not read */
	PROLONG_EVERY_SEC = 60,
	PROLONG_SEC = 30,
	LAST_SEC = 5, /* for the end of a process that takes no more input */
	LOOK_MSEC = 1000,
};

#define OK_STATUS 200

/* --- what comes --- */

/* Show what the process says to a person. Those who wait for it read that much, so this never
 * blocks. */
static void stream_pass_words(struct stream *s, struct str words)
{
	words = str_prefix(words, s->words_left);
	s->words_left -= words.n;
	(void)!fd_write_all(STDERR_FILENO, words.p, words.n);
}

static bool stream_take_event(struct stream *s, enum answer_event event)
{
	switch (event) {
	case ANSWER_START:
		s->pid = s->events.number;
		return true;
	case ANSWER_OUT:
		return buf_add_str(&s->out, buf_str(&s->events.data)) == 0;
	case ANSWER_ERR:
		stream_pass_words(s, buf_str(&s->events.data));
		return true;
	case ANSWER_END:
		s->status = (int)s->events.number;
		return true;
	case ANSWER_OVER:
		if (s->status < 0)
			err_set(&s->why, E_NETWORK, "the process in the sandbox is cut off%s%s",
				s->events.text[0] ? ": " : "", s->events.text);
		return true;
	case ANSWER_NOTHING:
	default:
		return true;
	}
}

static bool stream_take(void *user, struct str bytes, bool *ret_pause)
{
	struct stream *s = user;
	enum answer_event event;
	long status = 0;
	int r;

	(void)curl_easy_getinfo(s->start.easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != OK_STATUS)
		return buf_add_str(&s->refusal, bytes) == 0;
	s->paused = *ret_pause = buf_len(&s->out) > OUT_ENOUGH;
	if (s->paused)
		return true;
	if (answer_events_feed(&s->events, bytes) < 0)
		return false;
	while ((r = answer_events_next(&s->events, &event)) > 0)
		if (!stream_take_event(s, event))
			return false;
	return r == 0;
}

static bool stream_pass_over(void *user, struct str bytes, bool *ret_pause)
{
	return true;
}

/* --- requests to the sandbox --- */

static int stream_write_start(struct stream *s, const char *script)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(BODY_MAX);
	struct jsonout o = {.b = &text};
	unsigned char head[5] = {0};
	int r;

	jsonout_open(&o, NULL, '{');
	jsonout_open(&o, "process", '{');
	jsonout_text(&o, "cmd", "/bin/sh");
	jsonout_open(&o, "args", '[');
	jsonout_text(&o, NULL, "-c");
	jsonout_text(&o, NULL, script);
	jsonout_close(&o, ']');
	jsonout_close(&o, '}');
	jsonout_bool(&o, "stdin", true);
	jsonout_close(&o, '}');
	for (unsigned i = 1; i < sizeof(head); i++)
		head[i] = (unsigned char)(buf_len(&text) >> (8 * (sizeof(head) - 1 - i)));
	r = o.error;
	if (r == 0)
		r = buf_add(&s->start_body, head, sizeof(head));
	return r == 0 ? buf_add_str(&s->start_body, buf_str(&text)) : r;
}

/* The service tells sandboxes apart by the host's name, or by fields if all have one address. */
static void stream_write_fields(struct stream *s)
{
	if (s->sandbox.token[0])
		snprintf(
			s->fields[0], sizeof(s->fields[0]), "X-Access-Token: %s", s->sandbox.token);
	snprintf(s->fields[1], sizeof(s->fields[1]), "E2b-Sandbox-Id: %s", s->sandbox.id);
	snprintf(s->fields[2], sizeof(s->fields[2]), "E2b-Sandbox-Port: 49983");
}

static int stream_begin_start(struct stream *s, const char *script, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf url = BUF_INIT(sizeof(s->input_url));
	const char *const headers[] = {"Content-Type: application/connect+json",
		"Connect-Protocol-Version: 1", "Keepalive-Ping-Interval: 20", s->fields[1],
		s->fields[2], s->fields[0][0] ? s->fields[0] : NULL, NULL};
	int r = stream_write_start(s, script);

	if (r == 0)
		r = buf_printf(&url, "%s/process.Process/Start", s->envd);
	if (r < 0 || !buf_cstr(&url))
		return err_set(err, E_LIMIT, "the script for the other place is too long");
	s->start = (struct service_call){.method = "POST",
		.url = buf_data(&url),
		.body = buf_str(&s->start_body),
		.headers = headers,
		.take = stream_take,
		.user = s};
	/* libcurl keeps copies of the address and of the fields. */
	return service_begin(s->service, &s->start, err);
}

static int stream_begin_input(struct stream *s, const char *what, struct cloche_err *err)
{
	const char *const headers[] = {"Content-Type: application/json",
		"Connect-Protocol-Version: 1", s->fields[1], s->fields[2],
		s->fields[0][0] ? s->fields[0] : NULL, NULL};

	snprintf(s->input_url, sizeof(s->input_url), "%s/process.Process/%s", s->envd, what);
	s->input = (struct service_call){.method = "POST",
		.url = s->input_url,
		.body = buf_str(&s->input_body),
		.headers = headers,
		.take = stream_pass_over,
		.user = s,
		.patience_sec = INPUT_SEC};
	return service_begin(s->service, &s->input, err);
}

static void stream_write_process(const struct stream *s, struct jsonout *o)
{
	jsonout_open(o, NULL, '{');
	jsonout_open(o, "process", '{');
	jsonout_number(o, "pid", s->pid);
	jsonout_close(o, '}');
}

/* Send what has come, or that no more comes. */
static int stream_send(struct stream *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(BODY_MAX);
	struct str piece = str_prefix(buf_str(&s->in), PIECE_MAX);
	struct jsonout o = {.b = &s->input_body};

	if (s->input.easy || s->closed || s->give_up_at || (!piece.n && !s->in_ended))
		return 0;
	buf_clear(&s->input_body);
	stream_write_process(s, &o);
	if (piece.n) {
		if (base64_encode(&text, piece) < 0)
			return err_nomem(err);
		jsonout_open(&o, "input", '{');
		jsonout_str(&o, "stdin", buf_str(&text));
		jsonout_close(&o, '}');
	}
	jsonout_close(&o, '}');
	if (o.error)
		return err_nomem(err);
	s->sent = piece.n;
	s->closed = !piece.n;
	return stream_begin_input(s, piece.n ? "SendInput" : "CloseStdin", err);
}

/* A process that has ended takes no input, and its end may be told later. */
static void stream_take_sent(struct stream *s)
{
	if (!s->input.easy || !s->input.is_over)
		return;
	if (s->input.status == OK_STATUS) {
		buf_consume(&s->in, s->sent);
	} else if (!s->closed) {
		s->give_up_at = clock_mono_usec() + LAST_SEC * USEC_PER_SEC;
		if (s->input.status)
			(void)service_refused(s->service, s->input.status, STR_NULL, &s->why);
		else
			(void)service_failed(s->service, &s->input, &s->why);
	}
	service_end(s->service, &s->input);
}

/* --- the sandbox's life --- */

/* One that is not prolonged still has some minutes, and the next time may be better. */
static void stream_end_prolong(struct stream *s)
{
	if (!s->warned && (s->prolong.status < OK_STATUS || s->prolong.status >= 300)) {
		fprintf(stderr,
			"cloche-provider-e2b: the service does not prolong the sandbox (%u)\n",
			s->prolong.status);
		s->warned = true;
	}
	service_end(s->service, &s->prolong);
}

static int stream_prolong(struct stream *s, struct cloche_err *err)
{
	static const char body[] = "{\"timeout\":300}";
	const char *const headers[] = {s->service->key, "Content-Type: application/json", NULL};
	uint64_t now = clock_mono_usec();

	_Static_assert(STREAM_LIFETIME_SEC == 300, "as in the body");
	if (s->prolong.easy && s->prolong.is_over)
		stream_end_prolong(s);
	if (s->prolong.easy || now < s->prolong_at)
		return 0;
	s->prolong_at = now + PROLONG_EVERY_SEC * USEC_PER_SEC;
	s->prolong = (struct service_call){.method = "POST",
		.url = s->prolong_url,
		.body = str_from(body),
		.headers = headers,
		.take = stream_pass_over,
		.user = s,
		.patience_sec = PROLONG_SEC};
	return service_begin(s->service, &s->prolong, err);
}

/* --- our side --- */

static int stream_read(struct stream *s, struct cloche_err *err)
{
	char *at;
	ssize_t n;

	if (s->in_ended || buf_room(&s->in) < READ_BYTES)
		return 0;
	if (buf_reserve(&s->in, READ_BYTES, &at) < 0)
		return err_nomem(err);
	n = read(STDIN_FILENO, at, READ_BYTES);
	if (n > 0)
		buf_commit(&s->in, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		s->in_ended = true;
	return 0;
}

static int stream_write(struct stream *s, struct cloche_err *err)
{
	int r = asked_write(&s->out, err);

	if (r < 0)
		return r;
	if (s->paused && buf_len(&s->out) <= OUT_ENOUGH / 2) {
		s->paused = false;
		if (curl_easy_pause(s->start.easy, CURLPAUSE_CONT) != CURLE_OK)
			return err_set(err, E_SYSTEM, "libcurl does not go on");
	}
	return 0;
}

/* --- the whole --- */

/* Fail if the process is cut off, as its request says. */
static int stream_check(struct stream *s, struct cloche_err *err)
{
	if (s->status >= 0)
		return 0;
	if (s->start.is_over && s->start.status && s->start.status != OK_STATUS)
		return service_refused(s->service, s->start.status, buf_str(&s->refusal), err);
	if (s->why.code && (s->start.is_over || clock_mono_usec() >= s->give_up_at)) {
		if (err)
			*err = s->why;
		return -s->why.code;
	}
	if (s->start.is_over && s->start.code != CURLE_OK)
		return service_failed(s->service, &s->start, err);
	return s->start.is_over ? err_set(err, E_NETWORK, "the process in the sandbox is cut off")
				: 0;
}

int stream_open(struct stream *s, struct service *service, const struct answer_sandbox *sandbox,
	const char *script, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf envd = BUF_INIT(PLACE_TEXT_MAX + PLACE_ID_MAX),
					api = BUF_INIT(PLACE_TEXT_MAX + PLACE_ID_MAX);
	uint64_t until = clock_mono_usec() + START_SEC * USEC_PER_SEC;
	int r;

	*s = (struct stream){.service = service,
		.sandbox = *sandbox,
		.start_body = BUF_INIT(BODY_MAX),
		.input_body = BUF_INIT(BODY_MAX),
		.events = ANSWER_EVENTS_INIT,
		.in = BUF_INIT(2 * PIECE_MAX),
		.out = BUF_INIT(OUT_MAX),
		.refusal = BUF_INIT(REFUSAL_MAX),
		.status = -1,
		.words_left = WORDS_MAX};
	if (place_add_envd(
		    &service->place, str_from(sandbox->id), str_from(sandbox->domain), &envd) < 0 ||
		place_add_api(&service->place, &api) < 0 || !buf_cstr(&api))
		return err_set(err, E_LIMIT, "the address is too long");
	s->envd = str_dup(buf_str(&envd));
	if (!s->envd)
		return err_nomem(err);
	snprintf(s->prolong_url, sizeof(s->prolong_url), "%s/sandboxes/%s/timeout", buf_data(&api),
		sandbox->id);
	stream_write_fields(s);
	r = stream_begin_start(s, script, err);
	while (r == 0 && !s->pid) {
		r = service_run(service, err);
		if (r == 0)
			r = stream_check(s, err);
		if (r == 0 && !s->pid && clock_mono_usec() >= until)
			r = err_set(err, E_NETWORK, "no process starts in the sandbox for %d s",
				START_SEC);
		if (r == 0 && !s->pid &&
			curl_multi_poll(service->multi, NULL, 0, LOOK_MSEC, NULL) != CURLM_OK)
			r = err_set(err, E_SYSTEM, "libcurl does not wait");
	}
	return r;
}

static int stream_wait(struct stream *s, struct cloche_err *err)
{
	struct curl_waitfd fds[2];
	unsigned n = 0;

	if (!s->in_ended && buf_room(&s->in) >= READ_BYTES)
		fds[n++] = (struct curl_waitfd){.fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN};
	if (buf_len(&s->out))
		fds[n++] = (struct curl_waitfd){.fd = STDOUT_FILENO, .events = CURL_WAIT_POLLOUT};
	return curl_multi_poll(s->service->multi, fds, n, LOOK_MSEC, NULL) == CURLM_OK
		       ? 0
		       : err_set(err, E_SYSTEM, "libcurl does not wait");
}

int stream_run(struct stream *s, struct cloche_err *err)
{
	int r = 0;

	if (fd_set_nonblock(STDIN_FILENO, true) < 0 || fd_set_nonblock(STDOUT_FILENO, true) < 0)
		return err_sys(err, errno, "carry bytes");
	while (r == 0) {
		r = service_run(s->service, err);
		if (r == 0)
			r = stream_write(s, err);
		if (r == 0 && s->status >= 0 && !buf_len(&s->out))
			return s->status;
		if (r == 0)
			r = stream_check(s, err);
		stream_take_sent(s);
		if (r == 0)
			r = stream_read(s, err);
		if (r == 0)
			r = stream_send(s, err);
		if (r == 0)
			r = stream_prolong(s, err);
		if (r == 0)
			r = stream_wait(s, err);
	}
	return r;
}

void stream_done(struct stream *s)
{
	if (s->service) {
		service_end(s->service, &s->start);
		service_end(s->service, &s->input);
		service_end(s->service, &s->prolong);
	}
	answer_events_donep(&s->events);
	buf_done(&s->start_body);
	buf_done(&s->input_body);
	buf_done(&s->in);
	buf_done(&s->out);
	buf_done(&s->refusal);
	free(s->envd);
	explicit_bzero(s, sizeof(*s));
}
