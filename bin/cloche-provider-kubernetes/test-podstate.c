/* SPDX-License-Identifier: Apache-2.0 */
#include "podstate.h"
#include "tap.h"

#define STATE(status) "{\"metadata\":{},\"status\":{" status "}}"
#define ONE(state) "\"containerStatuses\":[{\"ready\":true,\"state\":{" state "}}]"

static void read_pod(const char *text, struct podstate *ret)
{
	_cleanup_json_ json_t *pod = NULL;

	must(json_text_read(str_from(text), 0, &pod, NULL) == 0);
	podstate_read(pod, ret);
}

/* What a cluster of version 1.20 has said (or would say, where that takes a broken machine). */
static void states_are_told_in_a_sentence(void)
{
	static const struct {
		const char *pod, *why;
		enum podstate_kind kind;
	} rows[] = {
		{"{}", "it waits for its node", PODSTATE_WAITS},
		{STATE("\"phase\":\"Pending\""), "it waits for its node", PODSTATE_WAITS},
		{STATE("\"phase\":\"Pending\",\"conditions\":[{\"status\":\"False\"},{\"type\":"
		       "\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		       "\"message\":\"0/2 nodes are available: 2 Insufficient memory.\"}]"),
			"no node takes it: 0/2 nodes are available: 2 Insufficient memory. "
			"(Unschedulable)",
			PODSTATE_NOWHERE},
		{STATE("\"phase\":\"Pending\"," ONE(
			 "\"waiting\":{\"reason\":\"ContainerCreating\"}")),
			"it is being made (ContainerCreating)", PODSTATE_WAITS},
		{STATE("\"phase\":\"Pending\"," ONE(
			 "\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"rpc error: code = "
			 "Unknown desc = not found\"}")),
			"its image cannot be had: not found (ErrImagePull)", PODSTATE_WAITS},
		{STATE("\"phase\":\"Pending\"," ONE(
			 "\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"Back-off\"}")),
			"its image cannot be had: Back-off (ImagePullBackOff)", PODSTATE_ENDED},
		{STATE("\"phase\":\"Pending\"," ONE(
			 "\"waiting\":{\"reason\":\"CreateContainerConfigError\",\"message\":"
			 "\"container has runAsNonRoot and image will run as root\"}")),
			"its container cannot be made: container has runAsNonRoot and image will "
			"run as root (CreateContainerConfigError)",
			PODSTATE_ENDED},
		{STATE("\"phase\":\"Running\"," ONE("\"running\":{}")), "", PODSTATE_RUNS},
		{STATE("\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
		       "\"False\"}]," ONE("\"running\":{}")),
			"its node does not answer", PODSTATE_RUNS},
		{STATE("\"phase\":\"Failed\"," ONE(
			 "\"terminated\":{\"reason\":\"OOMKilled\",\"exitCode\":137}")),
			"it has used up its memory (OOMKilled)", PODSTATE_ENDED},
		{STATE("\"phase\":\"Succeeded\"," ONE(
			 "\"terminated\":{\"reason\":\"OOMKilled\",\"exitCode\":0}")),
			"it has used up its memory (OOMKilled)", PODSTATE_ENDED},
		{STATE("\"phase\":\"Failed\"," ONE(
			 "\"terminated\":{\"reason\":\"StartError\",\"message\":\"no such "
			 "file\",\"exitCode\":128}")),
			"its first process does not start: no such file (StartError)",
			PODSTATE_ENDED},
		{STATE("\"phase\":\"Succeeded\"," ONE(
			 "\"terminated\":{\"reason\":\"Completed\",\"exitCode\":0}")),
			"its first process has ended with 0 (Completed)", PODSTATE_ENDED},
		{STATE("\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"The node was low "
		       "on resource: ephemeral-storage.\""),
			"its node has evicted it: The node was low on resource: ephemeral-storage. "
			"(Evicted)",
			PODSTATE_ENDED},
		{STATE("\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"message\":\"Pod was "
		       "active\"," ONE("\"running\":{}")),
			"its lifetime is over: Pod was active (DeadlineExceeded)", PODSTATE_ENDED},
		{STATE("\"phase\":\"Failed\",\"reason\":\"Later\""), "it has ended (Later)",
			PODSTATE_ENDED},
		{"{\"metadata\":{\"deletionTimestamp\":\"x\"},\"status\":{\"phase\":"
		 "\"Running\"," ONE("\"running\":{}") "}}",
			"somebody has deleted it", PODSTATE_ENDED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct podstate s;

		read_pod(rows[i].pod, &s);
		check_z(s.why, rows[i].why);
		check_int((int)s.kind, (int)rows[i].kind);
		check_int(s.silent, rows[i].kind == PODSTATE_RUNS && rows[i].why[0] != '\0');
	}
}

/* A node says up to a second late that a container runs, and never if it is lost before. */
static void a_node_may_be_lost_before_it_says_what_runs(void)
{
	static const char creating[] = STATE(
		"\"phase\":\"Pending\"," ONE("\"waiting\":{\"reason\":\"ContainerCreating\"}"));
	static const char runs[] = STATE("\"phase\":\"Running\"," ONE("\"running\":{}"));
	_cleanup_json_ json_t *late = NULL, *pod = NULL;
	struct podstate s;

	must(json_text_read(str_from(creating), 0, &late, NULL) == 0);
	must(json_text_read(str_from(runs), 0, &pod, NULL) == 0);
	podstate_read_started(late, &s);
	check_z(s.why, "its node has not yet said that it runs");
	check_int((int)s.kind, PODSTATE_WAITS);
	podstate_read_started(pod, &s);
	check_z(s.why, "");
	check_int((int)s.kind, PODSTATE_RUNS);
}

/* Values of any type in any place, and text of any length. */
static void what_the_cluster_says_is_hostile(void)
{
	static const char *const rows[] = {"[]", "{\"status\":[]}", "{\"status\":{\"phase\":7}}",
		STATE("\"containerStatuses\":{},\"conditions\":7"),
		STATE("\"phase\":\"Failed\"," ONE("\"terminated\":[]")),
		STATE("\"conditions\":[7,[],{\"type\":[]}]")};
	_cleanup_(buf_donep) struct buf b = BUF_INIT(64 * 1024);
	struct podstate s;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		read_pod(rows[i], &s);
		check(s.why[0] != '\0');
	}
	must(buf_printf(&b, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"%0*d\",\"message\":\"",
		     2000, 0) == 0);
	for (int i = 0; i < 2000; i++)
		must(buf_add_str(&b, STR("\\u001b[31m\\u202e \\n ")) == 0);
	must(buf_add_str(&b, STR("\"}}")) == 0 && buf_cstr(&b));
	read_pod(buf_data(&b), &s);
	check(strlen(s.why) <= PODSTATE_WHY_MAX);
	check(str_starts(str_from(s.why), STR("it has ended: ?[31m??? ?[31m")));
	for (const char *c = s.why; *c; c++)
		check(*c >= ' ' && *c <= '~');
}

static void objects_are_taken_one_by_one(void)
{
	static const char text[] = "\n{\"a\": \"}\\\"{[\"}\n{\"b\":\n[{}, \"\\\\\"]}{\"c\"";
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	struct str one;
	size_t given = 0, found = 0;
	static const char *const want[] = {"{\"a\": \"}\\\"{[\"}", "{\"b\":\n[{}, \"\\\\\"]}"};

	/* However it is cut. */
	while (given < strlen(text)) {
		must(buf_add(&b, text + given++, 1) == 0);
		if (podstate_take(&b, &one)) {
			must(found < ARRAY_SIZE(want));
			check_str(one, want[found++]);
		}
	}
	check_int((int)found, 2);
	check(buf_len(&b) > 0);
}

int main(void)
{
	run_test(states_are_told_in_a_sentence);
	run_test(a_node_may_be_lost_before_it_says_what_runs);
	run_test(what_the_cluster_says_is_hostile);
	run_test(objects_are_taken_one_by_one);
	return tap_done();
}
