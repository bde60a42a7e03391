/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of rooms in sandboxes of a service that speaks E2B's protocol
 * (docs/design/provider-protocol.md): one sandbox for each room, in which the script runs that
 * makes it. A sandbox is found again by its metadata, so nothing about it is kept here. */
#include "asked/asked.h"
#include "asked/request.h"
#include "base/fd.h"
#include "base/jsonout.h"
#include "stream.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Less than the supervisor waits: 30 seconds for probe, 20 for reap. */
enum { PROBE_SEC = 20, CREATE_SEC = 120, FIND_SEC = 8, REMOVE_SEC = 8 };
enum { BODY_MAX = 64 * 1024, PATH_MAX_BYTES = 512, FAILED = 125 };

#define DEFAULT_TEMPLATE "base"
/* The label of every sandbox that says whose it is. */
#define LABEL_ID "cloche.sandbox"

static int main_check(const struct request *q, struct cloche_err *err)
{
	if (!q->place) {
		err_set(err, E_USAGE, "it has to be said where the sandbox is made");
		err_hint(err, "--place e2b.app, or the URL of another service that speaks its "
			      "protocol");
		return -E_USAGE;
	}
	if (!q->id || !place_is_id(str_from(q->id)))
		return err_set(err, E_PROTOCOL, "the request has no id");
	if (q->image && !place_is_template(str_from(q->image))) {
		err_set(err, E_USAGE, "no template has such a name");
		err_hint(err, "--root image:NAME is a template of your team at the service");
		return -E_USAGE;
	}
	return 0;
}

/* Ask, and fail unless the status is one of two. */
static int main_ask(struct service *s, const struct service_ask *ask, const unsigned good[2],
	struct buf *ret, struct cloche_err *err)
{
	unsigned status;
	int r = service_ask(s, ask, &status, ret, err);

	if (r < 0)
		return r;
	return status == good[0] || status == good[1]
		       ? 0
		       : service_refused(s, status, buf_str(ret), err);
}

static int main_no_sense(const struct service *s, struct cloche_err *err)
{
	err_set(err, E_PROTOCOL, "%.*s answers in another way than E2B does",
		STR_FMT(s->place.text));
	err_hint(err, "see whether --place is the address of the API");
	return -E_PROTOCOL;
}

/* --- sandboxes --- */

/* Such a list may have many pages of others, if the service does not look for metadata. */
static int main_each(struct service *s, const char *id, int (*each)(void *user, const char *id),
	void *user, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(ANSWER_MAX);
	char path[PATH_MAX_BYTES];
	int r;

	snprintf(path, sizeof(path),
		"/v2/sandboxes?metadata=" LABEL_ID "%%3D%s&state=running%%2Cpaused&limit=100", id);
	r = main_ask(s,
		&(struct service_ask){.method = "GET", .path = path, .patience_sec = FIND_SEC},
		(const unsigned[]){200, 200}, &body, err);
	if (r < 0)
		return r;
	r = answer_each_sandbox(buf_str(&body), LABEL_ID, id, each, user);
	return r < 0 ? main_no_sense(s, err) : r;
}

static int main_write_wish(const struct request *q, struct buf *out)
{
	struct jsonout o = {.b = out};

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "templateID", q->image ? q->image : DEFAULT_TEMPLATE);
	jsonout_number(&o, "timeout", STREAM_LIFETIME_SEC);
	jsonout_bool(&o, "secure", true);
	/* The room has the network of this side. */
	jsonout_bool(&o, "allow_internet_access", false);
	jsonout_open(&o, "metadata", '{');
	for (size_t i = 0; q->labels && q->labels[i]; i++) {
		struct str value = str_from(q->labels[i]), key = str_next(&value, '=');

		if (!str_eq(key, STR(LABEL_ID)))
			jsonout_member(&o, key, value);
	}
	jsonout_text(&o, LABEL_ID, q->id);
	jsonout_close(&o, '}');
	jsonout_close(&o, '}');
	return o.error;
}

static int main_make(struct service *s, const struct request *q, struct answer_sandbox *ret,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf wish = BUF_INIT(BODY_MAX), body = BUF_INIT(ANSWER_MAX);
	const char *name = q->image ? q->image : DEFAULT_TEMPLATE;
	unsigned status = 0;
	int r;

	if (main_write_wish(q, &wish) < 0)
		return err_set(err, E_LIMIT, "the labels of the sandbox are too long");
	r = service_ask(s,
		&(struct service_ask){.method = "POST",
			.path = "/sandboxes",
			.body = buf_str(&wish),
			.patience_sec = CREATE_SEC},
		&status, &body, err);
	if (r < 0)
		return r;
	if (status == 404) {
		(void)service_refused(s, status, buf_str(&body), err);
		err->hint[0] = '\0';
		err_hint(err,
			"--root image:NAME is a template of your team at %s; without it, that is "
			"\"" DEFAULT_TEMPLATE "\"",
			q->place);
		return err_wrap(err, -E_DENIED, "make a sandbox of the template \"%s\"", name);
	}
	if (status != 201 && status != 200)
		return service_refused(s, status, buf_str(&body), err);
	return answer_read_sandbox(buf_str(&body), ret) < 0 ? main_no_sense(s, err) : 0;
}

static int main_remove(struct service *s, const char *id, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(ANSWER_MAX);
	char path[PATH_MAX_BYTES];

	snprintf(path, sizeof(path), "/sandboxes/%s", id);
	return main_ask(s,
		&(struct service_ask){.method = "DELETE", .path = path, .patience_sec = REMOVE_SEC},
		(const unsigned[]){204, 404}, &body, err);
}

static int main_keep_id(void *user, const char *id)
{
	str_copy(user, PLACE_ID_MAX + 1, str_from(id));
	return 1;
}

static int main_find(
	struct service *s, const char *id, struct answer_sandbox *ret, struct asked_answer *answer)
{
	struct cloche_err *err = &answer->err;
	static const char wish[] = "{\"timeout\":300}";
	_cleanup_(buf_donep) struct buf body = BUF_INIT(ANSWER_MAX);
	char path[PATH_MAX_BYTES], found[PLACE_ID_MAX + 1];
	int r = main_each(s, id, main_keep_id, found, err);

	if (r < 0)
		return r;
	if (r == 0) {
		answer->gone = true;
		err_set(err, E_NOT_FOUND, "the sandbox is gone at %.*s", STR_FMT(s->place.text));
		err_hint(err, "a sandbox there ends by itself if nobody has reached it for five "
			      "minutes");
		return -E_NOT_FOUND;
	}
	snprintf(path, sizeof(path), "/sandboxes/%s/connect", found);
	r = main_ask(s,
		&(struct service_ask){.method = "POST",
			.path = path,
			.body = str_from(wish),
			.patience_sec = FIND_SEC},
		(const unsigned[]){200, 201}, &body, err);
	if (r < 0)
		return r;
	return answer_read_sandbox(buf_str(&body), ret) < 0 ? main_no_sense(s, err) : 0;
}

/* --- what is asked --- */

/* Become the stream to a process that runs. Never return. */
_noreturn_ static void main_carry(struct stream *stream, const struct request *q)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct str answer = q->image ? STR("root image\nfar\n") : STR("far\n");
	int r = fd_write_all(STDOUT_FILENO, answer.p, answer.n);

	if (r == 0)
		r = stream_run(stream, &err);
	if (r < 0)
		fprintf(stderr, "cloche-provider-e2b: %s\n",
			err.message[0] ? err.message : "nobody reads");
	_exit(r < 0 ? FAILED : r);
}

static int main_create(
	struct service *s, const struct request *q, bool again, struct asked_answer *answer)
{
	static struct stream stream;
	struct cloche_err *err = &answer->err;
	struct answer_sandbox sandbox;
	int r = main_check(q, err);

	if (r == 0 && !q->script)
		r = err_set(err, E_PROTOCOL, "the request has no script for the other place");
	if (r == 0)
		r = again ? main_find(s, q->id, &sandbox, answer) : main_make(s, q, &sandbox, err);
	if (r < 0)
		return r;
	r = stream_open(&stream, s, &sandbox, q->script, err);
	if (r == 0)
		main_carry(&stream, q);
	stream_done(&stream);
	if (!again)
		(void)main_remove(s, sandbox.id, NULL);
	return r;
}

/* To try what a sandbox lets us do, one would have to be made. */
static int main_probe(struct service *s, const struct request *q, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(ANSWER_MAX);

	if (!q->place) {
		puts("hint a room is made where --place says, as e2b.app; whether the key is "
		     "good there was not tried");
		return 0;
	}
	return main_ask(s,
		&(struct service_ask){.method = "GET",
			.path = "/v2/sandboxes?limit=1",
			.patience_sec = PROBE_SEC},
		(const unsigned[]){200, 200}, &body, err);
}

struct main_removal {
	struct service *service;
	struct cloche_err *err;
	int r;
};

static int main_remove_found(void *user, const char *id)
{
	struct main_removal *m = user;
	int r = main_remove(m->service, id, m->err);

	if (r < 0)
		m->r = r;
	return 0;
}

static int main_reap(struct service *s, const struct request *q, struct cloche_err *err)
{
	struct main_removal m = {s, err, 0};
	int r = main_check(q, err);

	if (r == 0)
		r = main_each(s, q->id, main_remove_found, &m, err);
	return r < 0 ? r : m.r;
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
	r = service_init(&s, q.place, &ret->err);
	if (r < 0)
		return r;
	if (strcmp(verb, "probe") == 0)
		return main_probe(&s, &q, &ret->err);
	if (strcmp(verb, "reap") == 0)
		return main_reap(&s, &q, &ret->err);
	return main_create(&s, &q, strcmp(verb, "connect") == 0, ret);
}

int main(int argc, char **argv)
{
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? FAILED : asked_main(argc, argv, main_answer);
}
