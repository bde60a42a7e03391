/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/fs.h"
#include "session/store.h"
#include "tap.h"
#include "torture.h"

#include <fcntl.h>
#include <unistd.h>

/* Every allocation of ours and of jansson's fails once. Whatever was done by then, the context on
 * disk can be opened again afterwards. */

/* In memory if that is possible: each write is synced, and no disk is under test. */
static char dir[TAP_DIR_BYTES];

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

#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"live\"}"
#define RESULT                                                                                     \
	"{\"type\":\"result\",\"is_error\":false,\"result\":\"done\",\"total_cost_usd\":0.5,"      \
	"\"usage\":{\"input_tokens\":1,\"service_tier\":\"s\"}}"

static int add(cloche_session *s, const char *text, struct cloche_err *err)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	int r = checked(agent_event_parse(str_from(text), &e, err));

	return r < 0 ? r : checked(session_add_event(s, e, err));
}

static void begin_and_break_off(void)
{
	_cleanup_(cloche_session_freep) cloche_session *s = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (checked(cloche_session_open(dir, "c", &s, &err)) < 0)
		return;
	check(cloche_session_info_of(s)->warning == NULL); /* too little memory is no damage */
	if (checked(cloche_session_set_model(s, "opus", &err)) < 0 ||
		checked(session_begin_reply(s, "do", &err)) < 0 || add(s, INIT, &err) < 0)
		return;
	add(s, RESULT, &err);
}

static void recover_and_finish(void)
{
	_cleanup_(cloche_session_freep) cloche_session *s = NULL;
	_cleanup_json_ json_t *events = json_pack("[{s:s}]", "type", "x");
	const struct session_reply reply = {
		.request_text = "do", .response_text = "done\xff", .events = events};
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (!events || checked(cloche_session_open(dir, "c", &s, &err)) < 0)
		return;
	check(cloche_session_info_of(s)->warning == NULL);
	if (checked(session_update_or_add_reply(s, &reply, &err)) < 0)
		return;
	if (!torture_failed)
		check_z(cloche_session_info_of(s)->model, "opus");
}

static void clean_up(void)
{
	/* In a static program the failure may come here, in the C library. */
	must(fs_remove_tree(AT_FDCWD, dir) == 0 ||
		(torture_failed && fs_remove_tree(AT_FDCWD, dir) == 0));
}

/* The failure may come anywhere; then a life without one follows. */
static void life_after_failure(void)
{
	unsigned long left;

	clean_up();
	begin_and_break_off();
	recover_and_finish();
	left = torture_countdown;
	torture_countdown = 0;
	torture_failed = false;
	begin_and_break_off();
	recover_and_finish();
	torture_countdown = left;
}

static void test_every_allocation_fails_once(void)
{
	torture(life_after_failure);
}

static void older_file(void)
{
	_cleanup_(cloche_session_freep) cloche_session *s = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (checked(cloche_session_load(dir, &s, &err)) == 0)
		check_z(cloche_session_info_of(s)->context_id, "old");
}

static void test_older_file(void)
{
	_cleanup_(freep) char *file = fs_join(dir, SESSION_FILE_OLD);

	clean_up();
	must(fs_mkdirs(dir, 0700, NULL) == 0);
	must(fs_write_atomic(AT_FDCWD, file,
		     STR("{\"task_id\":\"old\",\"replies\":[{\"session_id\":\"\",\"timestamp\":"
			 "\"\","
			 "\"duration_ms\":0,\"total_cost_usd\":0,\"num_turns\":0,\"is_error\":true,"
			 "\"usage\":{},\"events_offset\":0}]}"),
		     0600, false, NULL) == 0);
	torture(older_file);
}

int main(void)
{
	json_set_alloc_funcs(json_malloc, free);
	tap_fast_dir(dir);
	run_test(test_every_allocation_fails_once);
	run_test(test_older_file);
	clean_up();
	return tap_done();
}
