/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: for a GitHub App the room holds a surrogate of a token that does not exist
 * yet. The first request that carries it waits while a token is requested; others that come
 * meanwhile wait with it. Then all of them are prepared again, and the token is put in like any
 * other secret. A new token is requested a while before the old one expires. After the token, the
 * list of repositories that it reaches is requested, and GraphQL requests wait for the first such
 * list, too. What failed is requested again when a request needs it, but not at once.
 *
 * A token reaches what the installation reaches, which may be more than the repositories that the
 * room was meant for. The allowlist judges REST addresses. What a GraphQL request addresses is in
 * its body, so each repository in it is looked up in the list. While no list can be had, it is
 * empty. */
#include "broker/github.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/fetch.h"
#include "broker/log.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "filter/graphql_scope.h"
#include "github/app.h"
#include "ipc/netchan.h"
#include "secrets/secret_set.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#define EARLY_SEC 300 /* a token is not used this shortly before its end */
#define RETRY_USEC (5 * USEC_PER_SEC)
enum { BODY_LIMIT = 1024 * 1024, TARGET_MAX = 1024 };

struct github {
	struct github *next;
	struct broker *broker;
	struct github_app *app;
	size_t member; /* of the set of secrets */
	bool busy;
	uint64_t expires; /* seconds since 1970 */
	/* Monotonic; 0: it did not fail. */
	uint64_t failed_at, list_failed_at;
	char error[NOTE_MAX];
	struct graphql_scope *scope, *growing;
	unsigned page; /* page of the list that is requested; 0: the token is requested */
	struct fetch fetch;
};

/* A stream whose request is given a token. */
struct github_stream {
	const struct masked_secret *live; /* the secret that was put in */
	bool several;                     /* more than one was put in */
};

static struct github_stream *github_of(const struct stream *s)
{
	return s->filter[CHAIN_GITHUB];
}

static uint64_t github_now_sec(void)
{
	return clock_real_usec() / USEC_PER_SEC;
}

static const struct masked_secret *github_secret(const struct github *g)
{
	return secret_set_get(g->broker->secrets, g->member);
}

static struct github *github_find(const struct broker *b, const struct masked_secret *secret)
{
	struct github *g;

	LL_FOREACH (b->github, g)
		if (github_secret(g) == secret)
			break;
	return g;
}

/* Return whether the token has expired or soon will. */
static bool github_has_expired(const struct github *g)
{
	return github_now_sec() + EARLY_SEC >= g->expires;
}

/* --- what waits --- */

static void github_refuse_waiting(struct stream *s, const void *token)
{
	const struct github *g = token;

	refuse_upstream(s, 502, "github_app_token_refresh_failed", g->error);
}

static void github_fail(struct github *g, const char *what)
{
	snprintf(g->error, sizeof(g->error), "no token of GitHub App for %s: %s",
		github_secret(g)->spec.name, what);
	g->failed_at = clock_mono_usec();
	if (log_warning(g->broker, str_from(g->error)) < 0)
		g->broker->lines.unlogged++;
	g->busy = false;
	requests_wake(g->broker, g, github_refuse_waiting);
}

/* --- the token, then the list --- */

static int github_ask(struct github *g, struct fetch_request *m, struct buf *authorization)
{
	static const struct str headers[][2] = {
		{STR("Accept"), STR("application/vnd.github+json")},
		{STR("X-GitHub-Api-Version"), STR("2022-11-28")},
		{STR("Content-Type"), STR("application/json")},
	};

	m->host = github_app_host(g->app);
	m->port = github_app_port(g->app);
	m->authorization = buf_str(authorization);
	m->headers = headers;
	m->n_headers = m->body.n > 0 ? 3 : 2;
	return fetch_start(&g->fetch, g->broker, m);
}

static int github_ask_token(struct github *g)
{
	_cleanup_(buf_done_wipedp) struct buf authorization = BUF_INIT(8192);
	_cleanup_(buf_donep) struct buf target = BUF_INIT(TARGET_MAX), body = BUF_INIT(256 * 1024);
	struct fetch_request m = {.method = STR("POST")};
	int r = buf_add_str(&authorization, STR("Bearer "));

	if (r == 0)
		r = github_app_jwt(g->app, github_now_sec(), &authorization);
	if (r == 0)
		r = github_token_target(g->app, &target);
	if (r == 0)
		r = github_token_body(g->app, &body);
	m.target = buf_str(&target);
	m.body = buf_str(&body);
	g->page = 0;
	return r < 0 ? r : github_ask(g, &m, &authorization);
}

static int github_ask_page(struct github *g, unsigned page)
{
	_cleanup_(buf_done_wipedp) struct buf authorization = BUF_INIT(8192);
	_cleanup_(buf_donep) struct buf target = BUF_INIT(TARGET_MAX);
	struct fetch_request m = {.method = STR("GET")};
	int r = buf_add_str(&authorization, STR("Bearer "));

	if (r == 0)
		r = buf_add_str(&authorization, secret_reveal(github_secret(g)->value));
	if (r == 0)
		r = github_repositories_target(g->app, page, &target);
	m.target = buf_str(&target);
	g->page = page;
	return r < 0 ? r : github_ask(g, &m, &authorization);
}

static int github_ask_list(struct github *g)
{
	graphql_scope_free(g->growing);
	g->growing = graphql_scope_new();
	return g->growing ? github_ask_page(g, 1) : -ENOMEM;
}

/* Use the list, which is as complete as it will be. */
static void github_use_list(struct github *g)
{
	graphql_scope_free(g->scope);
	g->scope = g->growing;
	g->growing = NULL;
	g->busy = false;
	requests_wake(g->broker, g, NULL);
}

static void github_no_list(struct github *g, const char *why)
{
	char text[NOTE_MAX];

	snprintf(text, sizeof(text),
		"no list of repositories of GitHub App for %s, so GraphQL requests that name one "
		"are refused: %s",
		github_secret(g)->spec.name, why);
	if (log_warning(g->broker, str_from(text)) < 0)
		g->broker->lines.unlogged++;
	graphql_scope_free(g->growing);
	g->growing = graphql_scope_new();
	g->list_failed_at = clock_mono_usec();
	github_use_list(g);
}

static int github_add_repository(void *user, const struct github_repository *one)
{
	struct github *g = user;

	return graphql_scope_add(g->growing, one->node_id, one->full_name, one->id);
}

static void github_on_page(struct github *g)
{
	struct fetch *f = &g->fetch;
	struct cloche_err err = CLOCHE_ERR_INIT;
	char why[64];
	unsigned n = 0;

	if (!f->complete || f->status != 200) {
		snprintf(why, sizeof(why), "it answered %u", f->status);
		github_no_list(g, f->complete ? why : f->error);
		return;
	}
	if (github_repositories_read(
		    g->app, buf_str(&f->answer), github_add_repository, g, &n, &err) < 0) {
		github_no_list(g, err.message);
		return;
	}
	if (n < GITHUB_PAGE || g->page >= GITHUB_REPOSITORIES_MAX / GITHUB_PAGE) {
		g->list_failed_at = 0;
		github_use_list(g);
	} else if (github_ask_page(g, g->page + 1) < 0) {
		github_no_list(g, "out of memory");
	}
}

static int github_take_token(struct github *g, struct cloche_err *err)
{
	_cleanup_(secret_freep) struct secret *token = NULL;
	int r = github_token_read(buf_str(&g->fetch.answer), &token, &g->expires, err);

	if (r == 0 && github_has_expired(g))
		r = err_set(err, E_PROTOCOL,
			"it is about to expire already (is this machine's clock right?)");
	return r == 0 ? broker_renew_secret(g->broker, g->member, TAKE_PTR(token), err) : r;
}

static void github_on_token(struct github *g)
{
	struct fetch *f = &g->fetch;
	struct cloche_err err = CLOCHE_ERR_INIT;
	char why[64];

	if (!f->complete || f->status != 201) {
		snprintf(why, sizeof(why), "GitHub answered %u", f->status);
		github_fail(g, f->complete ? why : f->error);
		return;
	}
	if (github_take_token(g, &err) < 0) {
		github_fail(g, err.message);
		return;
	}
	g->failed_at = 0;
	if (github_ask_list(g) < 0)
		github_no_list(g, "out of memory");
	else
		requests_wake(g->broker, g, NULL);
}

static void github_on_fetched(struct fetch *f)
{
	struct github *g = container_of(f, struct github, fetch);

	if (g->page > 0)
		github_on_page(g);
	else
		github_on_token(g);
	if (!f->stream)
		buf_done_wiped(&f->answer);
}

/* --- what the others call --- */

int github_add(struct broker *b, struct github_app *app, size_t member)
{
	struct github *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->broker = b;
	g->app = app;
	g->member = member;
	g->fetch.done = github_on_fetched;
	LL_PREPEND(b->github, g);
	return 0;
}

void github_free(struct broker *b)
{
	while (b->github) {
		struct github *g = b->github;

		b->github = g->next;
		fetch_done(&g->fetch);
		github_app_free(g->app);
		graphql_scope_free(g->scope);
		graphql_scope_free(g->growing);
		free(g);
	}
}

void github_judge_again(struct broker *b)
{
	struct github *g;

	LL_FOREACH (b->github, g)
		fetch_judge_again(&g->fetch);
}

void github_expire(struct broker *b)
{
	struct github *g;

	LL_FOREACH (b->github, g)
		if (github_secret(g)->known && github_has_expired(g))
			(void)!secret_set_renew(b->secrets, g->member, NULL, NULL);
}

/* Return whether something failed a short time ago. */
static bool github_is_fresh(uint64_t failed_at)
{
	return failed_at && clock_mono_usec() - failed_at < RETRY_USEC;
}

static void github_wait(struct stream *s, const struct masked_secret *secret)
{
	struct github *g = github_find(s->broker, secret);

	request_wait(s, g);
	if (g->busy)
		return;
	if (!secret->known && github_is_fresh(g->failed_at)) {
		github_refuse_waiting(s, g);
		return;
	}
	g->busy = true;
	if ((secret->known ? github_ask_list(g) : github_ask_token(g)) < 0)
		github_fail(g, "the request for it could not be made");
}

/* Return whether s may be a GraphQL request. */
static bool github_is_graphql(const struct stream *s)
{
	struct path path;
	bool covered;

	if (path_parse(http_head_target(&s->head), &path) < 0)
		return true;
	covered = path.problem != PATH_OK || graphql_scope_covers(path.decoded);
	path_done(&path);
	return covered;
}

/* Return whether there is no valid list, but one is being requested or may be requested. */
static bool github_lacks_list(const struct github *g)
{
	return g->busy ? !g->scope || g->list_failed_at
		       : g->list_failed_at && !github_is_fresh(g->list_failed_at);
}

/* Return whether s has to wait: the secret's value is not known, or s is for GraphQL and the list
 * of repositories is not known. */
static bool github_must_wait(const struct stream *s, const struct masked_secret *secret)
{
	const struct github *g = github_find(s->broker, secret);

	return !secret->known || (g && github_lacks_list(g) && github_is_graphql(s));
}

int github_take(struct stream *s, const struct masked_secret *unknown,
	const struct masked_secret *live, bool several)
{
	const struct masked_secret *secret = unknown ? unknown : live;

	if (!secret)
		return 0;
	if (github_must_wait(s, secret)) {
		github_wait(s, secret);
		return 1;
	}
	if (!github_of(s))
		s->filter[CHAIN_GITHUB] = calloc(1, sizeof(struct github_stream));
	if (!github_of(s))
		return -ENOMEM;
	github_of(s)->live = live;
	github_of(s)->several = several;
	return 0;
}

static int github_judge_head(struct stream *s, size_t *whole)
{
	struct github *g;

	LL_FOREACH (s->broker->github, g)
		if (s->scheme == NET_HTTPS && masked_secret_covers(github_secret(g), &s->host) &&
			github_is_graphql(s)) {
			*whole = MIN(*whole, (size_t)BODY_LIMIT);
			break;
		}
	return 0;
}

static bool github_refuse(struct stream *s, const char *detail)
{
	refuse_body(s, "graphql_repo_scope_blocked",
		"The request addresses something outside of the repositories of the GitHub App's "
		"token, or cannot be read.",
		str_from(detail));
	return false;
}

/* Return whether the body could be read in another way. curl labels JSON as a form if no
 * Content-Type is given, and GitHub reads that as JSON. It has only one reading if it is a single
 * name when read as a form. */
static bool github_has_other_reading(const struct stream *s)
{
	const struct http_fields *f = &s->head.fields;
	struct str type = http_fields_get(f, STR("Content-Type")), body = buf_str(&s->body);

	type = str_trim(str_prefix(type, str_chr(type, ';')));
	if (http_fields_count(f, STR("Content-Type")) > 1 ||
		http_fields_find(f, STR("Content-Encoding"), 0) >= 0)
		return true;
	return str_ieq(type, STR("application/x-www-form-urlencoded")) &&
	       (str_chr(body, '&') < body.n || str_chr(body, ';') < body.n);
}

static bool github_check_body(struct stream *s, const struct github *g)
{
	_cleanup_(graphql_request_done) struct graphql_request req = {0};
	_cleanup_(buf_donep) struct buf detail = BUF_INIT(2 * GRAPHQL_SCOPE_DETAIL_MAX);
	const char *problem = NULL;
	int r;

	if (github_has_other_reading(s) ||
		str_chr(http_head_target(&s->head), '?') < http_head_target(&s->head).n)
		return github_refuse(s, "<unreadable>");
	if (graphql_request_read(buf_str(&s->body), &req, &problem) < 0)
		return github_refuse(s, "<unreadable>");
	if (problem)
		return github_refuse(s, problem);
	r = g->scope ? graphql_scope_check(g->scope, &req, &detail) : 1;
	if (r == 0)
		return true;
	return github_refuse(s, r > 0 && buf_cstr(&detail) ? buf_data(&detail) : "<unreadable>");
}

/* Check that what s addresses is within the reach of its credentials. */
static int github_prepare(struct stream *s)
{
	const struct github_stream *c = github_of(s);
	const struct github *g = c && c->live ? github_find(s->broker, c->live) : NULL;

	if (!g || !github_is_graphql(s))
		return 0;
	/* With several tokens it is unclear which one counts. */
	return (c->several ? github_refuse(s, "<several-tokens>") : github_check_body(s, g)) ? 0
											     : -1;
}

static void github_stream_free(struct stream *s)
{
	free(github_of(s));
}

const struct filter filter_github = {
	.judge_head = github_judge_head,
	.prepare = github_prepare,
	.free = github_stream_free,
};
