/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of rooms that services/cloudflare-isolator makes in its containers, or `cloche-far
 * serve` anywhere (docs/design/provider-protocol.md). The room's own program is there already, so
 * the script of a request is not needed. A room is found again by its id, so nothing about it is
 * kept here. */
#include "asked/asked.h"
#include "asked/request.h"
#include "base/fd.h"
#include "carry.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Less than the supervisor waits: 30 seconds for probe, 20 for reap. A container may have to be
 * started first. */
enum { PROBE_SEC = 12, MAKE_SEC = 90, JOIN_SEC = 60, REMOVE_SEC = 15 };
enum { FAILED = 125, ID_MAX = 64 };
enum { MADE = 201, SWITCHED = 101, OK = 200, GONE = 410 };

static int main_check(const struct request *q, struct cloche_err *err)
{
	if (!q->place) {
		err_set(err, E_USAGE, "it has to be said where the service is");
		err_hint(err, "--place https://HOST, as wrangler deploy says it");
		return -E_USAGE;
	}
	if (!q->id || !q->id[0] || strlen(q->id) > ID_MAX ||
		!str_is_all(str_from(q->id), STR_LOWER STR_UPPER STR_DIGITS "_-"))
		return err_set(err, E_PROTOCOL, "the request has no id");
	if (q->image) {
		err_set(err, E_UNSUPPORTED, "the service's containers have an image of their own");
		err_hint(err, "leave --root out; the Dockerfile of the service says what is in it");
		return -E_UNSUPPORTED;
	}
	return 0;
}

/* Become the stream. Never return. */
_noreturn_ static void main_carry(struct service *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r = fd_write_all(STDOUT_FILENO, "far\n", 4);

	if (r == 0)
		r = carry_run(s, &err);
	if (r < 0)
		fprintf(stderr, "cloche-provider-cloudflare: %s\n",
			err.message[0] ? err.message : "nobody reads");
	_exit(r < 0 ? FAILED : 0);
}

static int main_remove(struct service *s, const char *id, struct cloche_err *err)
{
	struct service_answer a;
	int r = service_ask(s,
		&(struct service_ask){.method = "DELETE", .id = id, .patience_sec = REMOVE_SEC}, &a,
		err);

	return r < 0 || a.ok ? r : service_refused(s, &a, err);
}

static int main_make(struct service *s, const char *id, struct cloche_err *err)
{
	struct service_answer a;
	int r = service_ask(s,
		&(struct service_ask){.method = "POST", .id = id, .patience_sec = MAKE_SEC}, &a,
		err);

	return r < 0 || (a.ok && a.status == MADE) ? r : service_refused(s, &a, err);
}

static int main_join(struct service *s, const char *id, struct asked_answer *answer)
{
	struct service_answer a;
	int r = service_ask(s,
		&(struct service_ask){
			.method = "GET", .id = id, .joins = true, .patience_sec = JOIN_SEC},
		&a, &answer->err);

	if (r < 0)
		return r;
	if (a.status == SWITCHED)
		main_carry(s);
	answer->gone = a.status == GONE;
	return service_refused(s, &a, &answer->err);
}

static int main_create(
	struct service *s, const struct request *q, bool again, struct asked_answer *answer)
{
	int r = again ? 0 : main_make(s, q->id, &answer->err);

	if (r < 0)
		return r;
	r = main_join(s, q->id, answer);
	if (!again)
		(void)main_remove(s, q->id, NULL);
	return r;
}

/* A service that makes the rooms itself says what they can have; the Worker would have to start a
 * container. Return only if it does not say. */
static void main_probe_there(struct service *s)
{
	struct service_answer a;
	int r = service_ask(s,
		&(struct service_ask){.method = "GET", .joins = true, .patience_sec = PROBE_SEC},
		&a, NULL);

	if (r == 0 && a.status == SWITCHED)
		main_carry(s);
}

static int main_probe(struct service *s, const struct request *q, struct cloche_err *err)
{
	struct service_answer a;
	int r;

	if (!q->place) {
		puts("hint a room is made where --place says; whether the key is good there was "
		     "not tried");
		return 0;
	}
	r = service_ask(
		s, &(struct service_ask){.method = "GET", .patience_sec = PROBE_SEC}, &a, err);
	if (r == 0 && (!a.ok || a.status != OK))
		return service_refused(s, &a, err);
	if (r == 0 && q->script)
		main_probe_there(s);
	return r;
}

static int main_answer(const char *verb, struct asked_answer *ret)
{
	_cleanup_(request_donep) struct request q = {0};
	_cleanup_(service_donep) struct service s = {0};
	int r = request_read(&q, STDIN_FILENO, &ret->err);

	if (r < 0)
		return r;
	/* No room was made without a place. */
	if (strcmp(verb, "reap") == 0 && !q.place)
		return 0;
	r = strcmp(verb, "probe") == 0 ? 0 : main_check(&q, &ret->err);
	if (r == 0)
		r = service_init(&s, q.place, &ret->err);
	if (r < 0)
		return r;
	if (strcmp(verb, "probe") == 0)
		return main_probe(&s, &q, &ret->err);
	if (strcmp(verb, "reap") == 0)
		return main_remove(&s, q.id, &ret->err);
	return main_create(&s, &q, strcmp(verb, "connect") == 0, ret);
}

int main(int argc, char **argv)
{
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? FAILED : asked_main(argc, argv, main_answer);
}
