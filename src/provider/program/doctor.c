/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the doctor for another place. The provider's program is asked `probe` with a
 * script; if it can, it becomes the stream to it, and `cloche-far probe` says there what it finds.
 * Each step that works is told as a check, and the first one that does not ends it. What comes from
 * there is shown as printable ASCII alone. */
#include "base/clock.h"
#include "far/probe.h"
#include "far/room.h"
#include "provider/program/operations.h"

#include <stdio.h>

enum { REQUEST_MAX = 64 * 1024 };
/* The program's own bound; until the other machine says something; all that is said there. */
enum { ANSWER_SEC = 30, SILENCE_SEC = 20, ALL_SEC = 60 };

struct doctor {
	const struct provider *provider;
	const char *place;
	provider_check_fn fn;
	void *user;
};

static void doctor_copy(char ret[PROVIDER_TEXT_MAX], struct str text)
{
	str_copy(ret, PROVIDER_TEXT_MAX, text);
	for (char *c = ret; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* What to do is said by the other machine, and is to be done there. */
static void doctor_copy_remedy(char ret[PROVIDER_TEXT_MAX], struct str remedy)
{
	char text[PROVIDER_TEXT_MAX];

	doctor_copy(text, remedy);
	if (text[0])
		snprintf(ret, PROVIDER_TEXT_MAX, "there: %.*s", PROVIDER_TEXT_MAX - 8, text);
}

static void doctor_tell(const struct doctor *d, const char *name, const char *detail)
{
	struct provider_check c = {.name = name, .works = true, .required = true};

	doctor_copy(c.detail, str_from(detail));
	d->fn(d->user, &c);
}

/* Tell that a step failed. Return 0, or negative with err set: that was not the place's fault. */
static int doctor_tell_error(const struct doctor *d, const char *name, const struct cloche_err *why,
	struct cloche_err *err)
{
	struct provider_check c = {.name = name, .required = true};

	if (why->code == E_CANCELLED || why->code == E_NO_MEMORY)
		return err_set(err, why->code, "%s", why->message);
	doctor_copy(c.detail, str_from(why->message));
	doctor_copy(c.remedy, str_from(why->hint));
	d->fn(d->user, &c);
	return 0;
}

/* It does not become a stream for that: it may even be one that knows nothing of places. */
static void doctor_tell_unknown(const struct doctor *d, const struct words_answer *answer)
{
	struct provider_check c = {.name = "room", .unknown = true};

	snprintf(c.detail, sizeof(c.detail), "provider %s does not say what there is at its places",
		d->provider->name);
	if (answer->hint[0])
		doctor_copy(c.remedy, str_from(answer->hint));
	else
		str_copy(c.remedy, sizeof(c.remedy),
			STR("run \"true\" there: \"cloche run\" with the same --provider and "
			    "--place"));
	d->fn(d->user, &c);
}

static void doctor_tell_all(const struct doctor *d, const struct far_probe *p)
{
	char text[PROVIDER_TEXT_MAX], name[FAR_MAX_NAME + 1], machine[FAR_MAX_NAME + 1];

	snprintf(text, sizeof(text), "%llu.%01llu ms",
		(unsigned long long)p->round_trip_usec / 1000,
		(unsigned long long)p->round_trip_usec % 1000 / 100);
	doctor_tell(d, "round trip", text);
	str_copy(machine, sizeof(machine), p->probed.machine);
	str_copy(name, sizeof(name), p->probed.kernel);
	snprintf(text, sizeof(text), "%s, Linux %s", machine, name);
	doctor_tell(d, "machine", text);
	for (size_t i = 0; i < p->probed.checks_n; i++) {
		const struct far_check *from = &p->probed.checks[i];
		struct provider_check c = {.works = from->works, .required = from->required};

		doctor_copy(text, from->name);
		c.name = text;
		doctor_copy(c.detail, from->detail);
		doctor_copy_remedy(c.remedy, from->remedy);
		d->fn(d->user, &c);
	}
}

/* The program has become a stream. */
static int doctor_ask(
	const struct doctor *d, const struct process_stream *stream, struct cloche_err *err)
{
	struct greet g = {.from = stream->from,
		.to = stream->to,
		.patience_sec = SILENCE_SEC,
		.until = clock_mono_usec() + (uint64_t)ALL_SEC * (uint64_t)USEC_PER_SEC};
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct far_probe p;
	bool copied = false;
	int e = greet_place(&g, &copied, &why);

	if (e == 0)
		e = far_probe_ask(&g, &p, &why);
	if (e < 0)
		return doctor_tell_error(d, "cloche-far", &why, err);
	doctor_tell(d, "cloche-far", copied ? "was copied there" : "was there already");
	doctor_tell_all(d, &p);
	far_probe_done(&p);
	return 0;
}

int program_doctor_place(const struct provider *p, const char *place, provider_check_fn fn,
	void *user, struct cloche_err *err)
{
	const struct doctor d = {p, place, fn, user};
	_cleanup_(freep) char *script = far_script("probe", "", err);
	_cleanup_(buf_donep) struct buf request = BUF_INIT(REQUEST_MAX);
	struct process_stream stream = PROCESS_STREAM_NONE;
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct words_answer answer;
	struct process run;
	int e;

	if (!script)
		return -err->code;
	if (describe_id(&(struct describe_which){.place = place, .script = script}, &request) < 0)
		return err_nomem(err);
	e = process_begin(&run, p,
		&(struct process_ask){.verb = "probe",
			.request = buf_str(&request),
			.patience_sec = ANSWER_SEC,
			.far = true},
		&why);
	if (e == 0)
		e = process_end_or_stream(&run, &answer, &stream, &why);
	if (e < 0)
		return doctor_tell_error(&d, "connection", &why, err);
	doctor_tell(&d, "connection", place);
	if (e == 0) {
		doctor_tell_unknown(&d, &answer);
		return 0;
	}
	e = doctor_ask(&d, &stream, err);
	(void)process_stream_end(&stream);
	return e;
}
