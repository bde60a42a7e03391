/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a pod is made, and then its policy, while a watch of events waits for the
 * word that its container has started. A node says so at once; that the pod runs it says up to a
 * second later, as it looks at its containers once in a second. So the pod itself is watched only
 * if that takes long, or who asks may not read events: whichever is heard first counts. If the
 * cluster says that the pod will not run, that is the error, in the cluster's own words. A pod that
 * no node takes is given a minute; everything else has as long as whoever asks waits. What was made
 * is left for `reap`, which is asked after every room. */
#include "pod.h"
#include "base/clock.h"
#include "base/fd.h"
#include "podspec.h"
#include "podstate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE "CLOCHE_POD_TEMPLATE"

enum {
	CALL_SEC = 30,
	LOOK_SEC = 15,
	DELETE_SEC = 15, /* whoever asks waits for 20 */
	MAKE_SEC = 500,  /* ... for 540 */
	NOWHERE_SEC = 60,
	TEMPLATE_MAX = 256 * 1024,
	SPEC_MAX = 1024 * 1024,
	PROGRESS_MAX = 20, /* lines */
};

/* --- the template --- */

static int pod_read_template(json_t **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(TEMPLATE_MAX);
	_cleanup_json_ json_t *template = NULL;
	const char *file = getenv(TEMPLATE);
	json_error_t why;
	int r;

	*ret = NULL;
	if (!file || !file[0])
		return 0;
	if (file[0] != '/')
		return err_set(err, E_CONFIG, TEMPLATE " has to be an absolute path, not %s", file);
	r = fd_read_file(AT_FDCWD, file, &text, err);
	if (r < 0)
		return err_wrap(err, r, "the pod template");
	if (json_text_read(buf_str(&text), JSON_REJECT_DUPLICATES, &template, &why) < 0) {
		err_set(err, E_CONFIG, "the pod template %s is no JSON: %s (line %d)", file,
			why.text, why.line);
		err_hint(err, "\"kubectl create --dry-run=client -o json -f FILE\" makes JSON of "
			      "YAML");
		return -E_CONFIG;
	}
	r = podspec_check_template(template, file, err);
	if (r == 0)
		*ret = TAKE_PTR(template);
	return r;
}

/* --- making it --- */

struct pod_making {
	const struct kubectl *k;
	char name[PODSPEC_NAME_MAX + 1];
	struct kubectl_run create, watch, events, policy;
	struct buf text, policy_text;
	bool watched;
	struct podstate state;
	uint64_t until, nowhere_until; /* nowhere_until 0: a node takes it */
	uint64_t look_at; /* when the pod is watched, and a person is told what is waited for */
	char told[PODSTATE_WHY_MAX + 1];
	int told_n;
};

static void pod_making_donep(struct pod_making *m)
{
	kubectl_end(&m->create);
	kubectl_end(&m->watch);
	kubectl_end(&m->events);
	kubectl_end(&m->policy);
	buf_done(&m->text);
	buf_done(&m->policy_text);
}

static int pod_begin_create(struct pod_making *m, struct cloche_err *err)
{
	static const char *const words[] = {
		"create", "--validate=false", "--output=json", "--filename=-", NULL};

	return kubectl_begin(m->k, words, buf_str(&m->text), &m->create, err);
}

/* Create it. kubectl takes a while to begin, and says nothing to a cluster before it is given what
 * it is to create: meanwhile it is found out what the place means. *ret: the pod as made. */
static int pod_create(struct pod_making *m, struct kubectl *k, const json_t *pod, const char *place,
	json_t **ret, struct cloche_err *err)
{
	int r;

	if (json_text_write(&m->text, pod, JSON_TEXT_COMPACT) < 0)
		return err_set(err, E_LIMIT, "the description of the pod is too long");
	r = kubectl_guess(k, place, err);
	if (r == 0)
		r = pod_begin_create(m, err);
	if (r == 0)
		r = kubectl_confirm(k, place, err);
	if (r == 1) {
		kubectl_end(&m->create);
		r = pod_begin_create(m, err);
	}
	return r == 0 ? kubectl_finish_json(k, &m->create, CALL_SEC, ret, err) : r;
}

/* Begin to make its policy. */
static int pod_begin_policy(
	struct pod_making *m, const struct request *q, struct str uid, struct cloche_err *err)
{
	/* Without an answer, the pod is not waited for in vain. */
	static const char *const words[] = {
		"create", "--validate=false", "--filename=-", "--request-timeout=30s", NULL};
	_cleanup_json_ json_t *policy = podspec_make_policy(q, uid, err);

	if (!policy)
		return -err->code;
	if (json_text_write(&m->policy_text, policy, JSON_TEXT_COMPACT) < 0)
		return err_nomem(err);
	return kubectl_begin(m->k, words, buf_str(&m->policy_text), &m->policy, err);
}

static int pod_begin_watch(struct pod_making *m, struct cloche_err *err)
{
	const char *const words[] = {"get", "pod", m->name, "--watch", "--output=json", NULL};

	return kubectl_begin(m->k, words, STR_NULL, &m->watch, err);
}

/* Wait for the word that its container has started. */
static int pod_begin_events(struct pod_making *m, struct cloche_err *err)
{
	char selector[PODSPEC_NAME_MAX + 96];
	const char *const words[] = {"get", "events", selector, "--watch", "--output=name", NULL};

	snprintf(selector, sizeof(selector),
		"--field-selector=involvedObject.kind=Pod,involvedObject.name=%s,reason=Started",
		m->name);
	return kubectl_begin(m->k, words, STR_NULL, &m->events, err);
}

/* Whether commands can be executed in it. */
static bool pod_is_up(const struct pod_making *m)
{
	return m->state.kind == PODSTATE_RUNS || str_starts(buf_str(&m->events.out), STR("event"));
}

/* Watch the pod itself, if it is time to, or nothing is heard otherwise. */
static int pod_look_closer(struct pod_making *m, struct cloche_err *err)
{
	if (m->watched || (clock_mono_usec() < m->look_at && !m->events.ended))
		return 0;
	m->watched = true;
	return pod_begin_watch(m, err);
}

/* Say what a person waits for, each thing once. */
static void pod_tell(struct pod_making *m)
{
	if (clock_mono_usec() < m->look_at || m->told_n == PROGRESS_MAX || !m->state.why[0] ||
		strcmp(m->told, m->state.why) == 0)
		return;
	str_copy(m->told, sizeof(m->told), str_from(m->state.why));
	m->told_n++;
	fprintf(stderr, "cloche: waiting for pod %s: %s\n", m->name, m->state.why);
}

/* Take what the watch has said. */
static int pod_take_states(struct pod_making *m, struct cloche_err *err)
{
	struct str text;

	while (m->state.kind != PODSTATE_RUNS && podstate_take(&m->watch.out, &text)) {
		_cleanup_json_ json_t *pod = NULL;
		struct podstate before = m->state;

		if (json_text_read(text, 0, &pod, NULL) < 0)
			return err_set(err, E_PROTOCOL, "kubectl get: what it says is no JSON");
		podstate_read(pod, &m->state);
		/* Why an image cannot be had is said only before the node waits to try again. */
		if (m->state.kind == PODSTATE_ENDED && before.hint && m->state.hint == before.hint)
			memcpy(m->state.why, before.why, sizeof(before.why));
	}
	if (m->state.kind != PODSTATE_NOWHERE)
		m->nowhere_until = 0;
	else if (!m->nowhere_until)
		m->nowhere_until = clock_mono_usec() + NOWHERE_SEC * USEC_PER_SEC;
	return 0;
}

static int pod_fail(const char *name, const struct podstate *s, struct cloche_err *err)
{
	err_set(err, E_UNSUPPORTED, "pod %s: %s", name,
		s->why[0] ? s->why : "the cluster says nothing of it");
	if (s->hint)
		err_hint(err, "%s", s->hint);
	return -E_UNSUPPORTED;
}

/* Wait until it runs and its policy is made, or cannot be. */
static int pod_wait(struct pod_making *m, struct cloche_err *err)
{
	struct kubectl_run *const runs[] = {&m->watch, &m->events, &m->policy};

	while (!pod_is_up(m) || !m->policy.ended) {
		uint64_t until = m->nowhere_until ? m->nowhere_until : m->until;
		bool early = clock_mono_usec() < m->look_at;
		int r = kubectl_turn(runs, ARRAY_SIZE(runs), early ? m->look_at : until);

		if (r < 0 && !early)
			return pod_fail(m->name, &m->state, err);
		r = pod_look_closer(m, err);
		if (r == 0)
			r = pod_take_states(m, err);
		if (r < 0)
			return r;
		if (m->state.kind == PODSTATE_ENDED)
			return pod_fail(m->name, &m->state, err);
		if (!pod_is_up(m) && m->watched && m->watch.ended)
			return kubectl_fail(m->k, &m->watch, err);
		pod_tell(m);
	}
	return 0;
}

/* The room has walls of its own, so it may do without. */
static void pod_judge_policy(const struct pod_making *m)
{
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (m->policy.status == 0)
		return;
	(void)kubectl_fail(m->k, &m->policy, &why);
	fprintf(stderr,
		"cloche: no NetworkPolicy keeps pod %s from its network, only the room's own "
		"walls: %s\n",
		m->name, why.message);
}

int pod_make(struct kubectl *k, const struct request *q, struct cloche_err *err)
{
	_cleanup_(pod_making_donep) struct pod_making m = {.k = k,
		.create = KUBECTL_RUN_NONE,
		.watch = KUBECTL_RUN_NONE,
		.events = KUBECTL_RUN_NONE,
		.policy = KUBECTL_RUN_NONE,
		.text = BUF_INIT(SPEC_MAX),
		.policy_text = BUF_INIT(SPEC_MAX),
		.until = clock_mono_usec() + MAKE_SEC * USEC_PER_SEC};
	_cleanup_json_ json_t *template = NULL, *pod = NULL, *made = NULL;
	struct str uid;
	int r = podspec_name(q->id, m.name, err);

	if (r == 0)
		r = pod_read_template(&template, err);
	if (r == 0)
		pod = podspec_make(q, template, err);
	if (r < 0 || !pod)
		return r < 0 ? r : -err->code;
	r = pod_create(&m, k, pod, q->place, &made, err);
	if (r < 0)
		return r;
	uid = json_str_at(json_object_get(made, "metadata"), "uid");
	if (!uid.n)
		return err_set(
			err, E_PROTOCOL, "kubectl create: the pod that it has made has no uid");
	m.look_at = clock_mono_usec() + USEC_PER_SEC;
	r = pod_begin_events(&m, err);
	if (r == 0)
		r = pod_begin_policy(&m, q, uid, err);
	if (r == 0)
		r = pod_wait(&m, err);
	if (r == 0)
		pod_judge_policy(&m);
	return r;
}

/* --- later --- */

int pod_look(
	const struct kubectl *k, const struct request *q, bool *ret_gone, struct cloche_err *err)
{
	char name[PODSPEC_NAME_MAX + 1];
	const char *const words[] = {
		"get", "pod", name, "--output=json", "--ignore-not-found", NULL};
	_cleanup_json_ json_t *pod = NULL;
	struct podstate state;
	int r = podspec_name(q->id, name, err);

	if (r == 0)
		r = kubectl_ask(k, words, STR_NULL, LOOK_SEC, &pod, err);
	if (r < 0)
		return r;
	if (!pod) {
		*ret_gone = true;
		return err_set(err, E_NOT_FOUND, "pod %s was deleted", name);
	}
	podstate_read_started(pod, &state);
	if (state.kind == PODSTATE_RUNS && !state.silent)
		return 0;
	*ret_gone = state.kind == PODSTATE_ENDED;
	return pod_fail(name, &state, err);
}

int pod_become(const struct kubectl *k, const struct request *q, struct cloche_err *err)
{
	char name[PODSPEC_NAME_MAX + 1];
	const char *const words[] = {"exec", "--stdin", name, "--container=" PODSPEC_CONTAINER,
		"--", "sh", "-c", q->script, NULL};
	int r = podspec_name(q->id, name, err);

	if (r < 0)
		return r;
	if (q->image)
		puts("root image");
	return kubectl_become(k, words, err);
}

int pod_delete(const struct kubectl *k, const struct request *q, struct cloche_err *err)
{
	char selector[128];
	const char *const words[] = {"delete", "pods", selector, "--grace-period=1", "--wait=false",
		"--ignore-not-found", NULL};
	int n = snprintf(selector, sizeof(selector),
		"--selector=" PODSPEC_LABEL_SANDBOX "=%s," PODSPEC_LABEL_OWNER "=%u", q->id,
		(unsigned)geteuid());

	return n < (int)sizeof(selector) ? kubectl_call(k, words, STR_NULL, DELETE_SEC, NULL, err)
					 : err_set(err, E_PROTOCOL, "the id is too long");
}
