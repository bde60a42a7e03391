/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of rooms on machines that ssh reaches (docs/design/provider-protocol.md). It makes
 * no room itself: it becomes the stream to the script that does. */
#include "asked/asked.h"
#include "asked/request.h"
#include "carrier.h"
#include "remote.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Less than the supervisor waits: 30 seconds for probe, 20 for reap. */
enum { CONNECT_SEC = 20, REAP_CONNECT_SEC = 9, REAP_SEC = 9 };

static int main_check(const struct request *q, bool needs_script, struct cloche_err *err)
{
	if (!q->place) {
		err_set(err, E_USAGE, "it has to be said where the room is made");
		err_hint(err, "--place HOST: what you would say to ssh");
		return -E_USAGE;
	}
	if (!remote_is_place(str_from(q->place))) {
		err_set(err, E_USAGE, "ssh is not given \"%s\" as the name of a machine", q->place);
		err_hint(err, "give it a plain name in your ~/.ssh/config");
		return -E_USAGE;
	}
	return q->script || !needs_script
		       ? 0
		       : err_set(err, E_PROTOCOL, "the request has no script for the other place");
}

/* A place costs a connection, or a round trip by one that is there. */
static int main_probe(const struct request *q, struct cloche_err *err)
{
	_cleanup_(carrier_donep) struct carrier c = {0};
	int r = q->place ? main_check(q, false, err) : 0;

	if (r == 0)
		r = carrier_init(&c, q->place ? q->place : "", err);
	if (r == 0 && !q->place)
		puts("hint a room is made where --place HOST says; \"ssh HOST\" has to work "
		     "without a question");
	if (r == 0 && q->place)
		r = carrier_connect(&c, true, CONNECT_SEC, err);
	return r == 0 && q->place && q->script ? carrier_become(&c, q->script, err) : r;
}

/* An earlier stream may have been cut because its connection is dead, without having noticed yet.
 */
static int main_become(const struct request *q, bool again, struct cloche_err *err)
{
	_cleanup_(carrier_donep) struct carrier c = {0};
	int r = main_check(q, true, err);

	if (r == 0)
		r = carrier_init(&c, q->place, err);
	if (r == 0)
		r = carrier_connect(&c, again, CONNECT_SEC, err);
	return r == 0 ? carrier_become(&c, q->script, err) : r;
}

static int main_reap(const struct request *q, struct cloche_err *err)
{
	_cleanup_(carrier_donep) struct carrier c = {0};
	int r = q->script ? main_check(q, true, err) : 0;

	if (r < 0 || !q->script)
		return r;
	r = carrier_init(&c, q->place, err);
	if (r == 0)
		r = carrier_connect(&c, false, REAP_CONNECT_SEC, err);
	return r == 0 ? carrier_run(&c, q->script, REAP_SEC, err) : r;
}

static int main_answer(const char *verb, struct asked_answer *ret)
{
	_cleanup_(request_donep) struct request q = {0};
	int r = request_read(&q, STDIN_FILENO, &ret->err);

	if (r < 0)
		return r;
	if (strcmp(verb, "probe") == 0)
		return main_probe(&q, &ret->err);
	if (strcmp(verb, "reap") == 0)
		return main_reap(&q, &ret->err);
	return main_become(&q, strcmp(verb, "connect") == 0, &ret->err);
}

int main(int argc, char **argv)
{
	return asked_main(argc, argv, main_answer);
}
