/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: IDLE -> OPENING (the supervisor is asked for the file) -> ASKING (the token
 * endpoint) -> SAVING (there is a token, and it is written into the file) -> IDLE. It ends early if
 * the file has a good token already, or with a failure. What the endpoint says is read by
 * login/login.c. */
#include "broker/renewal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/log.h"
#include "broker/renew.h"
#include "ipc/helper.h"
#include "secrets/secret_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#define EARLY_MSEC UINT64_C(60000) /* a token is not used this shortly before its end */
/* One that is said to live shorter than this is used for so long: else each request would have one
 * of its own. */
#define LIFE_MIN_MSEC UINT64_C(120000)
#define BUSY_USEC (200 * USEC_PER_MSEC)
#define LOOK_AGAIN_USEC (1 * USEC_PER_SEC)
enum { BUSY_TRIES = 200, SAVE_TRIES = 5 };

static uint64_t renewal_now_msec(void)
{
	return clock_real_usec() / USEC_PER_MSEC;
}

const struct masked_secret *renewal_secret(const struct renewal *g)
{
	return secret_set_get(g->broker->secrets, g->member);
}

static struct renewal *renewal_numbered(const struct broker *b, unsigned number)
{
	struct renewal *g;

	LL_FOREACH (b->renewals, g)
		if (g->number == number)
			break;
	return g;
}

struct secret *renewal_copy(const struct secret *s)
{
	return s ? secret_new(secret_reveal(s).p, secret_reveal(s).n) : NULL;
}

bool renewal_is_same(const struct secret *a, const struct secret *b)
{
	return a && b && str_eq(secret_reveal(a), secret_reveal(b));
}

bool renewal_is_over(uint64_t expires_msec)
{
	return expires_msec > 0 && renewal_now_msec() + EARLY_MSEC >= expires_msec;
}

/* Say what happened to the login, and, if only the person can do something, what. */
static void renewal_explain(
	const struct renewal *g, const char *what, bool in_again, char ret[NOTE_MAX])
{
	const char *again = login_spec_of(g->login)->again;

	snprintf(ret, NOTE_MAX, "the login in ~/%s %s%s%s%s", login_spec_of(g->login)->file, what,
		in_again ? ": log in again outside" : "", in_again && again ? ": " : "",
		in_again && again ? again : "");
}

/* For the log, and the end of the run. */
static void renewal_warn(const struct renewal *g, const char *why)
{
	char text[2 * NOTE_MAX];

	snprintf(text, sizeof(text), "%s: %s", renewal_secret(g)->spec.name, why);
	if (log_withheld(g->broker, str_from(text)) < 0)
		g->broker->lines.unlogged++;
}

static void renewal_warn_unwritten(const struct renewal *g)
{
	char text[NOTE_MAX];

	renewal_explain(g, "was renewed, but not written back", true, text);
	renewal_warn(g, text);
}

void renewal_close(struct renewal *g)
{
	g->fresh = fd_close(g->fresh);
	buf_done_wiped(&g->text);
	login_tokens_done(&g->got);
}

/* Give the files back; write: the new one is complete. */
static void renewal_end(struct renewal *g, bool write)
{
	const struct helper_login_end m = {.number = (uint8_t)g->number, .write = write};
	struct broker *b = g->broker;

	g->fresh = fd_close(g->fresh);
	if (helper_send_login_end(&b->supervisor, &m) < 0 || broker_flush_supervisor(b) < 0)
		loop_stop(b->loop, 0); /* the supervisor has gone */
}

bool renewals_are_busy(const struct broker *b)
{
	const struct renewal *g;

	LL_FOREACH (b->renewals, g)
		if (g->state != RENEW_IDLE)
			return true;
	return false;
}

static void renewal_idle(struct renewal *g)
{
	struct broker *b = g->broker;

	g->state = RENEW_IDLE;
	g->tries = 0;
	renewal_close(g);
	if (b->leaving && !renewals_are_busy(b))
		loop_stop(b->loop, 0);
}

/* A token that was only doubted is used on: what its origin says of it reaches the room. */
static bool renewal_trust_again(struct renewal *g)
{
	struct secret *token = TAKE_PTR(g->doubted);

	if (token && !renewal_is_over(g->expires_msec))
		return broker_renew_secret(g->broker, g->member, token, NULL) == 0;
	secret_free(token);
	return false;
}

static void renewal_fail(struct renewal *g, const char *what, bool in_again)
{
	if (g->state == RENEW_SAVING) { /* there is a token */
		renewal_warn_unwritten(g);
		renewal_idle(g);
		renew_wake(g, true);
		return;
	}
	renewal_explain(g, what, in_again, g->error);
	g->failed_at = clock_mono_usec();
	g->hopeless = in_again;
	renewal_warn(g, g->error);
	renewal_idle(g);
	renew_wake(g, renewal_trust_again(g));
}

/* The same after the files have come. */
static void renewal_end_failed(struct renewal *g, const char *what, bool in_again)
{
	renewal_end(g, false);
	renewal_fail(g, what, in_again);
}

/* --- the file --- */

static void renewal_open(struct renewal *g)
{
	const struct helper_login_open m = {.number = (uint8_t)g->number};
	struct broker *b = g->broker;

	if (helper_send_login_open(&b->supervisor, &m) < 0 || broker_flush_supervisor(b) < 0)
		loop_stop(b->loop, 0);
}

void renewal_start(struct renewal *g)
{
	if (g->state != RENEW_IDLE)
		return;
	g->state = RENEW_OPENING;
	renewal_open(g);
}

static void renewal_on_again(struct loop_timer *t)
{
	renewal_open(container_of(t, struct renewal, again));
}

static void renewal_open_later(struct renewal *g, uint64_t usec)
{
	struct loop *loop = g->broker->loop;

	if (loop_timer_set(loop, &g->again, loop_now(loop) + usec, renewal_on_again) < 0)
		renewal_fail(g, "could not be renewed: out of memory", false);
}

/* Use an access token. Takes it. */
static int renewal_use(
	struct renewal *g, struct secret *token, uint64_t expires_msec, struct cloche_err *err)
{
	int r = token ? broker_renew_secret(g->broker, g->member, token, err) : err_nomem(err);

	if (r < 0)
		return r;
	g->expires_msec = expires_msec ? MAX(expires_msec, renewal_now_msec() + LIFE_MIN_MSEC) : 0;
	g->doubted = secret_free(g->doubted);
	g->failed_at = 0;
	return 0;
}

static void renewal_save(struct renewal *g);

/* --- the endpoint --- */

static int renewal_ask(struct renewal *g)
{
	_cleanup_(buf_done_wipedp) struct buf body = BUF_INIT(4 * LOGIN_TOKEN_MAX);
	const struct str headers[][2] = {{STR("Accept"), STR("application/json")},
		{STR("Content-Type"), login_request_type(g->login)}};
	struct fetch_request m = {.method = STR("POST"),
		.target = login_target(g->login),
		.host = login_host(g->login),
		.port = login_port(g->login),
		.headers = headers,
		.n_headers = ARRAY_SIZE(headers),
		.once = true};
	int r = buf_reserve(&body, 3 * LOGIN_TOKEN_MAX, &(char *){NULL});

	if (r == 0)
		r = login_request_body(g->login, secret_reveal(g->last), &body);
	m.body = buf_str(&body);
	return r < 0 ? r : fetch_start(&g->fetch, g->broker, &m);
}

/* Choose the refresh token for a file that has this one. Return 0 or -ENOMEM. */
static int renewal_choose(struct renewal *g, const struct secret *in_file)
{
	if (renewal_is_same(in_file, g->seen) && g->last)
		return 0;
	secret_free(g->seen);
	secret_free(g->last);
	g->seen = renewal_copy(in_file);
	g->last = renewal_copy(in_file);
	g->refused = false;
	return g->seen && g->last ? 0 : -ENOMEM;
}

/* The file has come: take its token if that is a new one, else renew it. */
static void renewal_judge(struct renewal *g, struct login_tokens *file)
{
	bool good = file->access && !renewal_is_same(file->access, g->doubted) &&
		    !renewal_is_over(file->expires_msec);
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (good && renewal_use(g, TAKE_PTR(file->access), file->expires_msec, &err) == 0) {
		renewal_end(g, false);
		renewal_idle(g);
		renew_wake(g, true);
	} else if (good) {
		renewal_end_failed(g, err.message, false);
	} else if (!file->refresh) {
		renewal_end_failed(g, "has expired, and has no refresh token", true);
	} else if (renewal_choose(g, file->refresh) < 0) {
		renewal_end_failed(g, "cannot be renewed: out of memory", false);
	} else if (g->refused) {
		renewal_end_failed(g, "is not renewed any more by its vendor", true);
	} else {
		g->state = RENEW_ASKING;
		if (renewal_ask(g) < 0)
			renewal_end_failed(g, "cannot be renewed: out of memory", false);
	}
}

static void renewal_on_refused(struct renewal *g)
{
	const struct fetch *f = &g->fetch;
	char why[NOTE_MAX];

	g->refused = f->complete && (f->status == 400 || f->status == 401) &&
		     login_answer_refuses(buf_str(&f->answer));
	if (g->refused) {
		/* Perhaps a program has renewed it that knows no lock, and still writes it down. */
		g->state = RENEW_OPENING;
		renewal_end(g, false);
		renewal_open_later(g, LOOK_AGAIN_USEC);
		return;
	}
	if (f->complete)
		snprintf(why, sizeof(why), "could not be renewed: %.*s answered %u",
			STR_FMT(host_str(login_host(g->login))), f->status);
	else
		snprintf(why, sizeof(why), "could not be renewed: %.400s", f->error);
	renewal_end_failed(g, why, false);
}

static void renewal_on_token(struct renewal *g)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	bool used;

	if (login_answer_read(buf_str(&g->fetch.answer), renewal_now_msec(), &g->got, &err) < 0) {
		renewal_end_failed(
			g, "could not be renewed: the endpoint's answer is malformed", false);
		return;
	}
	if (g->got.refresh) {
		secret_free(g->last);
		g->last = renewal_copy(g->got.refresh);
	}
	used = renewal_use(g, renewal_copy(g->got.access), g->got.expires_msec, &err) == 0;
	if (!used) {
		snprintf(g->error, sizeof(g->error), "%.400s", err.message);
		g->failed_at = clock_mono_usec();
		g->hopeless = false;
	}
	/* Whether it can be used or not, the old one may not be valid any more. */
	g->state = RENEW_SAVING;
	renewal_save(g);
	renew_wake(g, used);
}

void renewal_fetched(struct fetch *f)
{
	struct renewal *g = container_of(f, struct renewal, fetch);

	if (f->complete && f->status == 200)
		renewal_on_token(g);
	else
		renewal_on_refused(g);
	if (!f->stream)
		buf_done_wiped(&f->answer);
}

/* --- writing it back --- */

/* Write the new file's text and hand it back. */
static void renewal_save(struct renewal *g)
{
	_cleanup_(buf_done_wipedp) struct buf out = BUF_INIT(LOGIN_FILE_MAX);
	struct str text = buf_str(&g->text);
	int r = buf_reserve(&out, MIN(2 * text.n + 4 * LOGIN_TOKEN_MAX, (size_t)LOGIN_FILE_MAX),
		&(char *){NULL});

	if (r == 0)
		r = login_file_write(g->login, text, &g->got, &out, NULL);
	if (r == 0)
		r = fd_write_all(g->fresh, buf_data(&out), buf_len(&out));
	buf_done_wiped(&g->text);
	renewal_end(g, r == 0);
	if (r < 0) {
		renewal_warn_unwritten(g);
		renewal_idle(g);
	}
}

/* Write it into a file that somebody else has changed, unless that was another login. */
static void renewal_save_again(struct renewal *g, const struct login_tokens *file)
{
	if (renewal_is_same(file->refresh, g->seen)) {
		renewal_save(g);
		return;
	}
	renewal_end(g, false);
	renewal_idle(g);
	renew_wake(g, true);
}

static void renewal_on_files(struct renewal *g)
{
	struct login_tokens file;
	int r = login_file_read(g->login, buf_str(&g->text), &file, NULL);

	if (r < 0)
		renewal_end_failed(g, "cannot be read", false);
	else if (g->state == RENEW_SAVING)
		renewal_save_again(g, &file);
	else
		renewal_judge(g, &file);
	login_tokens_done(&file);
}

/* Another program renews it. */
static void renewal_on_busy(struct renewal *g)
{
	if (++g->tries > BUSY_TRIES)
		renewal_fail(g, "could not be renewed: another program holds it", false);
	else
		renewal_open_later(g, BUSY_USEC);
}

bool renew_on_login(struct broker *b, struct chan_frame *f)
{
	struct helper_login m;
	struct renewal *g;
	char why[128];

	if (!helper_get_login(f->payload, &m) || f->fds_n != (m.problem ? 0 : 2))
		return false;
	g = renewal_numbered(b, m.number);
	if (!g || (g->state != RENEW_OPENING && g->state != RENEW_SAVING))
		return false;
	if (m.problem == EAGAIN) {
		renewal_on_busy(g);
		return true;
	}
	if (!m.problem && b->leaving && g->state == RENEW_OPENING) {
		renewal_end(g, false);
		renewal_idle(g); /* nobody waits for a token any more */
		return true;
	}
	if (m.problem) {
		snprintf(why, sizeof(why), "cannot be read: %s", strerror((int)m.problem));
		renewal_fail(g, why, false);
		return true;
	}
	g->text = BUF_INIT(LOGIN_FILE_MAX);
	g->fresh = TAKE_FD(f->fds[1]);
	if (fd_read_to_end(f->fds[0], &g->text) < 0)
		renewal_end_failed(g, "cannot be read", false);
	else
		renewal_on_files(g);
	return true;
}

bool renew_on_written(struct broker *b, struct str payload)
{
	struct helper_login m;
	struct renewal *g;

	if (!helper_get_login(payload, &m))
		return false;
	g = renewal_numbered(b, m.number);
	if (!g || g->state != RENEW_SAVING)
		return false;
	if (m.problem == ESTALE && ++g->tries < SAVE_TRIES) {
		renewal_open(g);
		return true;
	}
	if (m.problem) {
		renewal_warn_unwritten(g);
	} else {
		secret_free(g->seen);
		g->seen = renewal_copy(g->last);
	}
	renewal_idle(g);
	renew_wake(g, true); /* what has come meanwhile, if the token has ended already */
	return true;
}
