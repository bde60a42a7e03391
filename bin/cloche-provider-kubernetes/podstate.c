/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: which words of a pod's state say how it is depends on what has happened.
 * There is a phase, a reason of the pod, conditions, and a state of its container, and none of them
 * is always there (of an evicted pod, only the reason is). So the most certain is looked at first.
 */
#include "podstate.h"

#include <stdio.h>
#include <string.h>

void podstate_show(struct str text, char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n && n + 1 < size; i++) {
		char c = text.p[i];

		if (c == '\n' || c == '\t' || c == '\r')
			c = ' ';
		if (c == ' ' && (n == 0 || ret[n - 1] == ' '))
			continue;
		ret[n++] = c >= ' ' && c <= '~' ? c : '?';
	}
	while (n > 0 && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
}

/* Set why to "what: message (reason)", without what is not said. */
static void podstate_say(
	struct podstate *s, const char *what, struct str message, struct str reason)
{
	char said[PODSTATE_WHY_MAX - 120], word[64];
	size_t told = str_find(message, STR(" desc = "));

	/* How the node has asked its runtime. */
	if (str_starts(message, STR("rpc error: ")) && told < message.n)
		message = str_from_index(message, told + strlen(" desc = "));
	podstate_show(message, said, sizeof(said));
	podstate_show(reason, word, sizeof(word));
	snprintf(s->why, sizeof(s->why), "%s%s%s%s%s%s", what, said[0] ? ": " : "", said,
		word[0] ? " (" : "", word, word[0] ? ")" : "");
}

struct podstate_row {
	struct str reason;
	const char *what, *hint;
};

static const struct podstate_row *podstate_find(
	const struct podstate_row *rows, size_t n, struct str reason)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(rows[i].reason, reason))
			return &rows[i];
	return NULL;
}

#define IMAGE_HINT                                                                                 \
	"--root image:NAME is an image that the cluster can pull, with sh and coreutils in it"

static const struct podstate_row podstate_pod_reasons[] = {
	{STR("Evicted"), "its node has evicted it", "ask for what it needs (--memory)"},
	{STR("DeadlineExceeded"), "its lifetime is over", "--ttl says how long it lives"},
	{STR("NodeLost"), "its node is lost", NULL},
	{STR("Preempting"), "its node has given its place to another pod", NULL},
	{STR("Shutdown"), "its node is shut down", NULL},
	{STR("Terminated"), "its node is shut down", NULL},
	{STR("NodeAffinity"), "its node does not take it any more", NULL},
};

static const struct podstate_row podstate_end_reasons[] = {
	{STR("OOMKilled"), "it has used up its memory", "give it more with --memory"},
	{STR("StartError"), "its first process does not start", IMAGE_HINT},
	{STR("ContainerCannotRun"), "its first process does not start", IMAGE_HINT},
	{STR("DeadlineExceeded"), "its lifetime is over", "--ttl says how long it lives"},
};

/* Those that do not pass by themselves. */
static const struct podstate_row podstate_wait_reasons[] = {
	{STR("ImagePullBackOff"), "its image cannot be had", IMAGE_HINT},
	{STR("ErrImageNeverPull"), "its image cannot be had", IMAGE_HINT},
	{STR("InvalidImageName"), "its image cannot be had", IMAGE_HINT},
	{STR("ImageInspectError"), "its image cannot be had", IMAGE_HINT},
	{STR("CreateContainerConfigError"), "its container cannot be made", NULL},
	{STR("CreateContainerError"), "its container cannot be made", NULL},
	{STR("RunContainerError"), "its container cannot be made", NULL},
	{STR("CrashLoopBackOff"), "its first process does not start", IMAGE_HINT},
};

/* Return the condition of that type, or NULL. */
static const json_t *podstate_condition(const json_t *status, struct str type)
{
	const json_t *all = json_object_get(status, "conditions");

	for (size_t i = 0; i < json_array_size(all); i++)
		if (str_eq(json_str_at(json_array_get(all, i), "type"), type))
			return json_array_get(all, i);
	return NULL;
}

static bool podstate_is_false(const json_t *condition)
{
	struct str status = json_str_at(condition, "status");

	return str_eq(status, STR("False")) || str_eq(status, STR("Unknown"));
}

static void podstate_set_row(struct podstate *s, const struct podstate_row *row, const json_t *from)
{
	podstate_say(s, row->what, json_str_at(from, "message"), json_str_at(from, "reason"));
	s->hint = row->hint;
}

/* The container's process has ended. */
static void podstate_read_end(const json_t *end, struct podstate *s)
{
	const struct podstate_row *row = podstate_find(
		podstate_end_reasons, ARRAY_SIZE(podstate_end_reasons), json_str_at(end, "reason"));
	char what[64];

	s->kind = PODSTATE_ENDED;
	if (row) {
		podstate_set_row(s, row, end);
		return;
	}
	snprintf(what, sizeof(what), "its first process has ended with %llu",
		(unsigned long long)json_count_at(end, "exitCode"));
	podstate_say(s, what, json_str_at(end, "message"), json_str_at(end, "reason"));
}

static void podstate_read_wait(const json_t *wait, struct podstate *s)
{
	struct str reason = json_str_at(wait, "reason");
	const struct podstate_row *row =
		podstate_find(podstate_wait_reasons, ARRAY_SIZE(podstate_wait_reasons), reason);

	s->kind = row ? PODSTATE_ENDED : PODSTATE_WAITS;
	if (row) {
		podstate_set_row(s, row, wait);
	} else if (str_eq(reason, STR("ErrImagePull"))) {
		/* The node tries again; if it has to wait for that, it no longer says this. */
		podstate_say(s, "its image cannot be had", json_str_at(wait, "message"), reason);
		s->hint = IMAGE_HINT;
	} else {
		podstate_say(s, "it is being made", json_str_at(wait, "message"), reason);
	}
}

/* There is no word of its container yet. */
static void podstate_read_new(const json_t *status, struct podstate *s)
{
	const json_t *scheduled = podstate_condition(status, STR("PodScheduled"));

	s->kind = PODSTATE_WAITS;
	if (!podstate_is_false(scheduled)) {
		podstate_say(s, "it waits for its node", STR_NULL, STR_NULL);
		return;
	}
	s->kind = PODSTATE_NOWHERE;
	podstate_say(s, "no node takes it", json_str_at(scheduled, "message"),
		json_str_at(scheduled, "reason"));
	s->hint = "ask for less (--memory, --cpus), or see the pod template's nodeSelector and "
		  "tolerations";
}

/* Phase Failed or Succeeded. */
static void podstate_read_over(const json_t *status, const json_t *end, struct podstate *s)
{
	struct str reason = json_str_at(status, "reason");
	const struct podstate_row *row =
		podstate_find(podstate_pod_reasons, ARRAY_SIZE(podstate_pod_reasons), reason);

	s->kind = PODSTATE_ENDED;
	if (row)
		podstate_set_row(s, row, status);
	else if (reason.n || !end)
		podstate_say(s, "it has ended", json_str_at(status, "message"), reason);
	else
		podstate_read_end(end, s);
}

void podstate_read(const json_t *pod, struct podstate *ret)
{
	const json_t *status = json_object_get(pod, "status");
	const json_t *container = json_array_get(json_object_get(status, "containerStatuses"), 0);
	const json_t *state = json_object_get(container, "state");
	const json_t *end = json_object_get(state, "terminated");
	struct str phase = json_str_at(status, "phase");

	*ret = (struct podstate){.kind = PODSTATE_WAITS};
	if (str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		podstate_read_over(status, end, ret);
	else if (json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp")) {
		ret->kind = PODSTATE_ENDED;
		podstate_say(
			ret, "somebody has deleted it", STR_NULL, json_str_at(status, "reason"));
	} else if (end)
		podstate_read_end(end, ret);
	else if (json_object_get(state, "running")) {
		ret->kind = PODSTATE_RUNS;
		ret->silent = json_is_true(json_object_get(container, "ready")) &&
			      podstate_is_false(podstate_condition(status, STR("Ready")));
		if (ret->silent)
			podstate_say(ret, "its node does not answer", STR_NULL, STR_NULL);
	} else if (json_object_get(state, "waiting"))
		podstate_read_wait(json_object_get(state, "waiting"), ret);
	else
		podstate_read_new(status, ret);
}

void podstate_read_started(const json_t *pod, struct podstate *ret)
{
	podstate_read(pod, ret);
	if (ret->kind != PODSTATE_WAITS)
		return;
	ret->hint = NULL;
	podstate_say(ret, "its node has not yet said that it runs", STR_NULL, STR_NULL);
}

bool podstate_take(struct buf *b, struct str *ret)
{
	struct str text = buf_str(b);
	bool quoted = false, escaped = false;
	size_t depth = 0, from = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (escaped || (quoted && c != '"')) {
			escaped = !escaped && c == '\\';
		} else if (c == '"') {
			quoted = !quoted;
		} else if (c == '{' || c == '[') {
			if (depth++ == 0)
				from = i;
		} else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
			*ret = str_make(text.p + from, i + 1 - from);
			buf_consume(b, i + 1);
			return true;
		}
	}
	return false;
}
