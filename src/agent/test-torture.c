/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "agent/transcript.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "tap.h"
#include "torture.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Every allocation of ours and of jansson's fails once; the error must be E_NO_MEMORY and nothing
 * may leak. */

/* jansson 2.14's lexer does not notice when its text buffer, which grows by powers of two, could
 * not grow, and then runs over its end. That is not ours to test. */
static void *json_malloc(size_t n)
{
	bool buffer = n >= 32 && (n & (n - 1)) == 0;

	return buffer ? __real_malloc(n) : malloc(n);
}

static int checked(int r)
{
	if (r < 0)
		check_int(r, -E_NO_MEMORY);
	if (!torture_failed)
		check(r >= 0);
	return r;
}

static const char *const lines[] = {
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"i\",\"model\":\"m\"}",
	"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"cut "
	"\\ud83d\"},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"tool_use\",\"input\":{}}]}}",
	"{\"type\":\"x\",\"n\":[1.5,123456789012345678901234]}",
	"{\"type\":\"result\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]},"
	"\"usage\":{\"service_tier\":\"s\"},\"errors\":[\"e\"],\"session_id\":\"s\"}",
	"{\"type\":\"result\",\"result\":\"again\",\"subtype\":\"success\",\"usage\":{\"tier\":1}}",
};

static void transcript(void)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript t = {.events = NULL};
	_cleanup_(freep) char *response = NULL, *summary = NULL;
	_cleanup_json_ json_t *usage = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (checked(agent_transcript_init(&t, AGENT_TRANSCRIPT_MAX, &err)) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_(agent_event_freep) struct agent_event *e = NULL;

		if (checked(agent_event_parse(str_from(lines[i]), &e, &err)) < 0)
			return;
		must(e); /* for want of memory no event may pass for something else */
		if (checked(agent_transcript_add(&t, e, &err)) < 0)
			return;
	}
	if (checked(agent_transcript_response(&t, &response, &err)) < 0 ||
		checked(agent_transcript_error_summary(&t, &summary, &err)) < 0)
		return;
	usage = agent_usage(t.usage);
	check(usage || torture_failed);
	if (!usage)
		return;
	check_z(response, "a\n\nagain");
	check_int(json_object_size(usage), 5);
	check_z(agent_transcript_session_id(&t), "s");
}

static void argv(void)
{
	_cleanup_(strv_freep) char **argv = NULL;
	const struct agent_request rq = {
		.resume = "r", .effort = "high", .max_turns = 3, .system_prompt = "x"};
	_cleanup_(agent_driver_freep) struct agent_driver *d = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (checked(agent_driver_get("claude-subscription", &d, &err)) < 0 ||
		checked(agent_driver_argv(d, &rq, "claude", &argv, &err)) < 0)
		return;
	check_int(strv_count(argv), 16);
}

static char dir[TAP_DIR_BYTES];

static void find(void)
{
	_cleanup_(agent_program_donep) struct agent_program p = {.path = NULL};
	struct cloche_err err = CLOCHE_ERR_INIT;
	const struct agent_search s = {.path = "/nonexistent", .home = dir, .cwd = dir};

	if (checked(claude_code_find(&s, &p, &err)) == 0)
		check(p.path && p.host && p.source && p.destination);
}

static void test_transcript(void)
{
	torture(transcript);
}

static void test_argv(void)
{
	torture(argv);
}

static void test_find(void)
{
	torture(find);
}

int main(void)
{
	_cleanup_(freep) char *bin = NULL, *file = NULL;

	json_set_alloc_funcs(json_malloc, free);
	tap_dir(dir);
	bin = fs_join(dir, ".local/bin");
	file = fs_join(bin, "claude");
	must(fs_mkdirs(bin, 0755, NULL) == 0);
	must(fs_write_atomic(AT_FDCWD, file, STR("#!/bin/sh\n"), 0755, false, NULL) == 0);
	run_test(test_transcript);
	run_test(test_argv);
	run_test(test_find);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
