/* SPDX-License-Identifier: Apache-2.0 */
/* A context that is written by who drives an agent without a task. */
#include "base/json.h"
#include "fs/fs.h"
#include "tap.h"
#include <cloche/session.h>

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static char dir[TAP_DIR_BYTES];
static cloche_err err;

static cloche_session *open_ok(const char *id)
{
	cloche_session *session = NULL;

	if (cloche_session_open(dir, id, &session, &err) < 0)
		tap_fail("%s", err.message);
	must(session);
	return session;
}

static json_t *document(cloche_session *session)
{
	json_t *doc = json_loads(cloche_session_json(session), 0, NULL);

	must(doc);
	return doc;
}

static void test_a_context_is_made_and_locked(void)
{
	cloche_session *session = open_ok("c"), *other = NULL;

	check_z(cloche_session_info_of(session)->context_id, "c");
	check_int(cloche_session_open(dir, NULL, &other, &err), -CLOCHE_E_BUSY);
	must(cloche_session_load(dir, &other, &err) == 0);
	check_int(cloche_session_set_model(other, "opus", &err), -CLOCHE_E_DENIED);
	check_int(cloche_session_update_or_add_reply(
			  other, &(cloche_session_reply)CLOCHE_SESSION_REPLY_INIT, &err),
		-CLOCHE_E_DENIED);
	check(cloche_session_info_of(other)->model == NULL &&
		cloche_session_info_of(other)->reply_count == 0);
	cloche_session_free(other);
	cloche_session_free(session);
	check_int(cloche_session_open(dir, "d", &other, &err), -CLOCHE_E_USAGE);
	cloche_session_free(NULL);
}

static void test_the_model_is_on_disk_at_once(void)
{
	cloche_session *session = open_ok(NULL), *reader = NULL;

	must(cloche_session_set_model(session, "opus", &err) == 0);
	check_z(cloche_session_info_of(session)->model, "opus");
	must(cloche_session_load(dir, &reader, &err) == 0);
	check_z(cloche_session_info_of(reader)->model, "opus");
	cloche_session_free(reader);
	check_int(cloche_session_set_model(session, "\xff", &err), -CLOCHE_E_USAGE);
	must(cloche_session_set_model(session, NULL, &err) == 0);
	check(cloche_session_info_of(session)->model == NULL);
	cloche_session_free(session);
}

static const char events[] =
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}\nno event\n[]\n"
	"{\"type\":\"assistant\",\"message\":{\"content\":[]}}";

static void test_a_reply_grows_in_place(void)
{
	cloche_session *session = open_ok(NULL), *reader = NULL;
	cloche_session_reply reply = {.size = sizeof(reply),
		.request_text = "do it",
		.is_error = true,
		.events = events,
		.events_length = 57};
	_cleanup_json_ json_t *first = NULL, *last = NULL;
	json_t *r;

	must(cloche_session_update_or_add_reply(session, &reply, &err) == 0);
	check_int(cloche_session_info_of(session)->reply_count, 1);
	check_z(cloche_session_info_of(session)->id_for_resume, "s-1");
	check(cloche_session_info_of(session)->last_successful_response == NULL);
	first = document(session);
	reply.events_length = strlen(events);
	reply.is_error = false;
	reply.response_text = "done";
	reply.duration_ms = 1500;
	reply.num_turns = 2;
	reply.total_cost_usd = 0.25;
	reply.usage = (cloche_event_usage){
		.input_tokens = 3, .cache_read_input_tokens = 4, .extra = "{\"tier\":\"x\"}"};
	must(cloche_session_update_or_add_reply(session, &reply, &err) == 0);
	/* A reader has it, while we have the context. */
	must(cloche_session_load(dir, &reader, &err) == 0);
	last = document(reader);
	r = json_array_get(json_object_get(last, "replies"), 0);
	check_int(cloche_session_info_of(reader)->reply_count, 1);
	check_z(cloche_session_info_of(reader)->last_successful_response, "done");
	check_int(json_count_at(r, "duration_ms"), 1500);
	check_int(json_count_at(r, "num_turns"), 2);
	check(json_real_value(json_object_get(r, "total_cost_usd")) == 0.25);
	check_int(json_count_at(json_object_get(r, "usage"), "input_tokens"), 3);
	check_int(json_count_at(json_object_get(r, "usage"), "output_tokens"), 0);
	check(json_object_get(json_object_get(r, "usage"), "output_tokens") != NULL);
	check_int(json_count_at(json_object_get(r, "usage"), "cache_read_input_tokens"), 4);
	check_str(json_str_at(json_object_get(r, "usage"), "tier"), "x");
	check_int(json_array_size(json_object_get(r, "events")), 2);
	check_str(json_str_at(r, "timestamp"),
		json_string_value(json_object_get(
			json_array_get(json_object_get(first, "replies"), 0), "timestamp")));
	cloche_session_free(reader);
	cloche_session_free(session);
}

static void test_another_prompt_is_another_reply(void)
{
	static const char *const prompts[] = {"and then", "do it", NULL, NULL, "do it"};
	cloche_session *session = open_ok(NULL);
	size_t n = cloche_session_info_of(session)->reply_count;

	for (size_t i = 0; i < ARRAY_SIZE(prompts); i++)
		must(cloche_session_update_or_add_reply(session,
			     &(cloche_session_reply){.size = sizeof(cloche_session_reply),
				     .request_text = prompts[i]},
			     &err) == 0);
	check_int(cloche_session_info_of(session)->reply_count, n + 4);
	cloche_session_free(session);
}

static void test_what_cannot_be_is_refused(void)
{
	cloche_session_reply bad[] = {
		{.total_cost_usd = NAN},
		{.total_cost_usd = INFINITY},
		{.total_cost_usd = -1},
		{.usage = {.extra = "[]"}},
		{.usage = {.extra = "{"}},
		{.usage = {.extra = ""}},
	};
	cloche_session *session = open_ok(NULL);
	size_t n = cloche_session_info_of(session)->reply_count;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].size = sizeof(bad[i]);
		check_int(cloche_session_update_or_add_reply(session, &bad[i], &err),
			-CLOCHE_E_USAGE);
	}
	check_int(cloche_session_update_or_add_reply(session, &(cloche_session_reply){0}, &err),
		-CLOCHE_E_USAGE);
	check(strstr(err.message, "the size of cloche_session_reply is not set"));
	check_int(cloche_session_info_of(session)->reply_count, n);
	must(cloche_session_update_or_add_reply(session,
		     &(cloche_session_reply){.size = sizeof(cloche_session_reply),
			     .request_text = "\xff",
			     .duration_ms = UINT64_MAX,
			     .usage = {.input_tokens = UINT64_MAX}},
		     &err) == 0);
	cloche_session_free(session);
	session = open_ok(NULL); /* it can be read again */
	check_int(cloche_session_info_of(session)->reply_count, n + 1);
	cloche_session_free(session);
}

static void test_a_damaged_file_is_told(void)
{
	_cleanup_(freep) char *path = fs_join(dir, "context.json");
	cloche_session *session = open_ok(NULL);

	check(cloche_session_info_of(session)->warning == NULL);
	cloche_session_free(session);
	must(fs_write_atomic(AT_FDCWD, path, STR("{"), 0600, false, NULL) == 0);
	session = open_ok("anew");
	check(cloche_session_info_of(session)->warning &&
		strstr(cloche_session_info_of(session)->warning, "damaged"));
	check_int(cloche_session_info_of(session)->reply_count, 0);
	cloche_session_free(session);
}

int main(void)
{
	tap_dir(dir);
	run_test(test_a_context_is_made_and_locked);
	run_test(test_the_model_is_on_disk_at_once);
	run_test(test_a_reply_grows_in_place);
	run_test(test_another_prompt_is_another_reply);
	run_test(test_what_cannot_be_is_refused);
	run_test(test_a_damaged_file_is_told);
	must(fs_remove_tree(AT_FDCWD, dir) == 0);
	return tap_done();
}
