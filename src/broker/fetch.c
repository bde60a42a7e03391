/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a request of the broker itself is handled like any other (addresses are
 * judged, TLS is verified, the log has its line), but its stream is not in the gateway's table, and
 * its answer is collected here. However it ends, its stream is closed. The result is reported in
 * the loop's next iteration, when nothing of the stream is on the stack any more. */
#include "broker/fetch.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/stream.h"
#include "loop/loop.h"
#include "policy/allowlist.h"
#include "policy/decide.h"

#include <errno.h>

enum { ANSWER_MAX = 4 * 1024 * 1024 };

static int set_head(struct stream *s, const struct fetch_request *m)
{
	struct http_fields *f = &s->head.fields;
	int r = http_head_set_request(&s->head, m->method, STR("https"), host_str(m->host),
		m->port == 443 ? 0 : m->port, m->target);

	if (r == 0 && m->authorization.n > 0)
		r = http_fields_add(f, STR("Authorization"), m->authorization);
	if (r == 0)
		r = http_fields_add(f, STR("User-Agent"), STR("cloche"));
	if (r == 0)
		r = http_fields_add(f, STR("Accept-Encoding"), STR("identity"));
	for (size_t i = 0; r == 0 && i < m->n_headers; i++)
		r = http_fields_add(f, m->headers[i][0], m->headers[i][1]);
	if (r == 0 && m->body.n > 0) {
		r = buf_add_str(&s->body, m->body);
		http_head_set_body(&s->head, HTTP_BODY_LENGTH, m->body.n);
	}
	return r;
}

/* No rule is needed, but a rule may allow further addresses for the host. */
static bool has_rule(struct stream *s, struct verdict *ret)
{
	const struct policy_request what = decide_what(s);

	return policy_decide(s->broker->policy, &what, ret) == 0 && ret->allow;
}

static void find_rule(struct stream *s)
{
	struct verdict v;

	if (!has_rule(s, &v))
		return;
	s->verdict = v;
	s->policy = allowlist_ref(s->broker->policy);
	s->policy_number = s->broker->policy_number;
}

void fetch_judge_again(struct fetch *f)
{
	struct stream *s = f->stream;
	struct verdict v;

	if (!s || allow_rule_same_addresses(s->verdict.rule, has_rule(s, &v) ? v.rule : NULL))
		return;
	stream_note(s, "broken off: the policy was replaced");
	stream_close(s);
}

static void fetch_on_late(struct loop_timer *t)
{
	struct fetch *f = container_of(t, struct fetch, late);

	if (!f->stream)
		return;
	stream_note(f->stream, "no answer in time");
	stream_close(f->stream);
}

int fetch_start(struct fetch *f, struct broker *b, const struct fetch_request *m)
{
	struct stream *s = stream_internal(b, m->host, m->port);

	if (!s)
		return -ENOMEM;
	buf_done_wiped(&f->answer); /* of the previous request */
	f->answer = BUF_INIT(ANSWER_MAX);
	f->complete = false;
	f->status = 0;
	f->error[0] = '\0';
	s->secret = true; /* the authorization, or the body */
	s->idempotent = !m->once;
	f->stream = s;
	s->fetch = f;
	if (set_head(s, m) < 0 || loop_timer_set(b->loop, &f->late, clock_mono_usec() + FETCH_USEC,
					  fetch_on_late) < 0) {
		stream_note(s, "no memory for a request");
		stream_close(s);
		return 0; /* done() reports it */
	}
	find_rule(s);
	request_ready(s);
	return 0;
}

static void on_done(struct loop_job *job)
{
	struct fetch *f = container_of(job, struct fetch, job);

	f->done(f);
}

void fetch_closed(struct fetch *f)
{
	struct stream *s = f->stream;

	memcpy(f->error, s->note, sizeof(f->error));
	f->stream = NULL;
	loop_timer_clear(&f->late);
	loop_defer(s->broker->loop, &f->job, on_done);
}

bool fetch_data(struct fetch *f, struct str bytes)
{
	if (buf_add_str(&f->answer, bytes) == 0)
		return true;
	stream_note(f->stream, "the answer is too long");
	stream_close(f->stream);
	return false;
}

void fetch_done(struct fetch *f)
{
	if (f->stream) {
		f->stream->fetch = NULL;
		stream_close(f->stream);
		f->stream = NULL;
	}
	loop_timer_clear(&f->late);
	buf_done_wiped(&f->answer);
}
