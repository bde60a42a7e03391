/* SPDX-License-Identifier: Apache-2.0 */
/* The chain, with filters of this test in place of the real ones: who is asked, in which order, and
 * what stops it. Their names are those of the table in chain.c. */
#include "broker/chain.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "tap.h"

static struct buf said; /* a letter for each call */
static bool refuses, waits, frees_twice;
static int prepared;
static char state[CHAIN_FILTERS];

static void say(char letter)
{
	must(buf_add_char(&said, letter) == 0);
}

static void start(struct stream *s)
{
	*s = (struct stream){.body = BUF_INIT(64)};
	buf_done(&said);
	said = BUF_INIT(64);
	refuses = waits = frees_twice = false;
	prepared = 0;
}

static void activate(struct stream *s, enum chain_place place)
{
	s->filter[place] = &state[place];
}

static void free_state(struct stream *s, enum chain_place place)
{
	frees_twice |= s->filter[place] != &state[place];
	say('f');
}

/* --- the filters --- */

static bool websocket_data(struct stream *s, struct str bytes)
{
	say('W');
	return chain_response_data(s, CHAIN_WEBSOCKET + 1, bytes);
}
static void websocket_free(struct stream *s)
{
	free_state(s, CHAIN_WEBSOCKET);
}
const struct filter filter_websocket = {.response_data = websocket_data, .free = websocket_free};

static int aws_head(_unused_ struct stream *s, size_t *whole)
{
	say('A');
	*whole = MIN(*whole, (size_t)100);
	return 0;
}
static int aws_data(struct stream *s, struct str bytes, struct cloche_err *err)
{
	say('a');
	return chain_request_data(s, CHAIN_AWS + 1, bytes, err);
}
static int aws_end(struct stream *s, struct cloche_err *err)
{
	say('e');
	return chain_request_end(s, CHAIN_AWS + 1, err);
}
static void aws_free(struct stream *s)
{
	free_state(s, CHAIN_AWS);
}
const struct filter filter_aws = {
	.judge_head = aws_head, .request_data = aws_data, .request_end = aws_end, .free = aws_free};

static int bodies_head(_unused_ struct stream *s, size_t *whole)
{
	say('B');
	*whole = MIN(*whole, (size_t)50);
	return refuses ? -1 : 0;
}
static void bodies_large(_unused_ struct stream *s)
{
	say('L');
}
static void bodies_free(struct stream *s)
{
	free_state(s, CHAIN_BODIES);
}
const struct filter filter_bodies = {
	.judge_head = bodies_head, .judge_large = bodies_large, .free = bodies_free};

static bool codings_data(struct stream *s, struct str bytes)
{
	say('C');
	return chain_response_data(s, CHAIN_CODINGS + 1, bytes);
}
static bool codings_waits(_unused_ const struct stream *s)
{
	return waits;
}
static void codings_free(struct stream *s)
{
	free_state(s, CHAIN_CODINGS);
}
const struct filter filter_codings = {
	.response_data = codings_data, .response_waits = codings_waits, .free = codings_free};

static int secrets_prepare(_unused_ struct stream *s)
{
	say('S');
	return prepared;
}
const struct filter filter_secrets = {.prepare = secrets_prepare};

static int github_head(_unused_ struct stream *s, _unused_ size_t *whole)
{
	say('G');
	return 0;
}
static int github_prepare(_unused_ struct stream *s)
{
	say('g');
	return 0;
}
const struct filter filter_github = {.judge_head = github_head, .prepare = github_prepare};
const struct filter filter_renew = {0};

static bool scrub_data(struct stream *s, struct str bytes)
{
	say('R');
	return chain_response_data(s, CHAIN_SCRUB + 1, bytes);
}
static void scrub_free(struct stream *s)
{
	free_state(s, CHAIN_SCRUB);
}
const struct filter filter_scrub = {.response_data = scrub_data, .free = scrub_free};

/* --- behind the last one --- */

void response_count(_unused_ struct stream *s, _unused_ size_t n)
{
	say('#');
}
bool response_send(_unused_ struct stream *s, _unused_ struct str bytes)
{
	say('>');
	return true;
}
bool response_close(_unused_ struct stream *s, _unused_ struct http_fields *trailers)
{
	say('.');
	return true;
}

/* --- the tests --- */

static void heads_are_judged_in_order_until_one_refuses(void)
{
	struct stream s;
	size_t whole = 0;

	start(&s);
	check_int(chain_judge_head(&s, &whole), 0);
	check_str(buf_str(&said), "ABG");
	check_int(whole, 50);
	start(&s);
	refuses = true;
	check_int(chain_judge_head(&s, &whole), -1);
	check_str(buf_str(&said), "AB");
}

static void who_waits_stops_what_follows(void)
{
	struct stream s;

	start(&s);
	check_int(chain_prepare(&s), 0);
	check_str(buf_str(&said), "Sg");
	start(&s);
	prepared = 1;
	check_int(chain_prepare(&s), 1);
	check_str(buf_str(&said), "S");
}

static void a_request_body_goes_through_active_filters(void)
{
	struct stream s;
	struct cloche_err err = CLOCHE_ERR_INIT;

	start(&s);
	check_int(chain_request_data(&s, 0, STR("one"), &err), 0);
	check_str(buf_str(&said), "");
	activate(&s, CHAIN_AWS);
	activate(&s, CHAIN_BODIES);
	check_int(chain_request_data(&s, 0, STR(" two"), &err), 0);
	check_int(chain_request_end(&s, 0, &err), 0);
	check_str(buf_str(&said), "ae");
	check_str(buf_str(&s.body), "one two");
	buf_done(&s.body);
}

static void an_answer_is_counted_before_what_keeps_its_length(void)
{
	struct stream s;

	start(&s);
	check(chain_response_data(&s, 0, STR("plain")));
	check(chain_response_end(&s, 0, NULL));
	check_str(buf_str(&said), "#>.");
	start(&s);
	activate(&s, CHAIN_WEBSOCKET);
	activate(&s, CHAIN_CODINGS);
	activate(&s, CHAIN_SCRUB);
	check(chain_response_data(&s, 0, STR("all")));
	check_str(buf_str(&said), "WC#R>");
}

static void only_an_active_filter_may_hold_an_answer(void)
{
	struct stream s;

	start(&s);
	waits = true;
	check(!chain_may_wait(&s) && !chain_waiting(&s));
	activate(&s, CHAIN_CODINGS);
	check(chain_may_wait(&s) && chain_waiting(&s) == &filter_codings);
	waits = false;
	check(chain_may_wait(&s) && !chain_waiting(&s));
}

static void an_active_filter_refuses_what_is_too_large(void)
{
	struct stream s;

	start(&s);
	check(!chain_judge_large(&s));
	activate(&s, CHAIN_BODIES);
	check(chain_judge_large(&s));
	check_str(buf_str(&said), "L");
}

static void each_state_is_freed_once(void)
{
	struct stream s;

	start(&s);
	activate(&s, CHAIN_WEBSOCKET);
	activate(&s, CHAIN_AWS);
	activate(&s, CHAIN_SCRUB);
	chain_free(&s);
	chain_free(&s);
	check_str(buf_str(&said), "fff");
	check(!frees_twice);
}

int main(void)
{
	run_test(heads_are_judged_in_order_until_one_refuses);
	run_test(who_waits_stops_what_follows);
	run_test(a_request_body_goes_through_active_filters);
	run_test(an_answer_is_counted_before_what_keeps_its_length);
	run_test(only_an_active_filter_may_hold_an_answer);
	run_test(an_active_filter_refuses_what_is_too_large);
	run_test(each_state_is_freed_once);
	buf_done(&said);
	return tap_done();
}
