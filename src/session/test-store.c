/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "session/document.h"
#include "session/store.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static char dir[256];

/* Each test has a directory of its own. */
static void fresh(void)
{
	static int n;

	snprintf(dir, sizeof(dir), "%s/%d", top, n++);
	must(mkdir(dir, 0700) == 0);
}

static void put(const char *name, const char *text)
{
	_cleanup_(freep) char *path = fs_join(dir, name);

	must(fs_write_atomic(AT_FDCWD, path, str_from(text), 0600, false, NULL) == 0);
}

static char *text_of(const char *name)
{
	_cleanup_(freep) char *path = fs_join(dir, name);
	struct buf text = BUF_INIT(16 << 20);

	must(fd_read_file(AT_FDCWD, path, &text, NULL) == 0 && buf_cstr(&text));
	return text.mem;
}

static bool exists(const char *name)
{
	_cleanup_(freep) char *path = fs_join(dir, name);

	return access(path, F_OK) == 0;
}

static cloche_session *open_ok(const char *id)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	cloche_session *s = NULL;

	if (cloche_session_open(dir, id, &s, &err) < 0)
		printf("# %s\n", err.message);
	must(s);
	return s;
}

static struct agent_event *event(const char *text)
{
	struct agent_event *e = NULL;

	must(agent_event_parse(str_from(text), &e, NULL) == 0);
	return e;
}

static void add(cloche_session *s, const char *text)
{
	_cleanup_(agent_event_freep) struct agent_event *e = event(text);

	must(session_add_event(s, e, NULL) == 0);
}

#define SESSION(name) _cleanup_(cloche_session_freep) cloche_session *name

static void test_new_context(void)
{
	fresh();
	SESSION(s) = open_ok("conversation-1");
	_cleanup_(freep) char *text = text_of(SESSION_FILE), *path = fs_join(dir, SESSION_FILE);
	struct stat st;

	check_z(text, "{\n  \"execution_context_id\": \"conversation-1\",\n  \"replies\": []\n}");
	check_z(cloche_session_info_of(s)->context_id, "conversation-1");
	check(cloche_session_info_of(s)->model == NULL &&
		cloche_session_info_of(s)->id_for_resume == NULL);
	check(cloche_session_info_of(s)->last_successful_response == NULL &&
		cloche_session_info_of(s)->warning == NULL);
	check_int(cloche_session_info_of(s)->reply_count, 0);
	must(stat(path, &st) == 0);
	check_int(st.st_mode & 0777, 0600);
}

static void test_made_ids_differ(void)
{
	fresh();
	SESSION(a) = open_ok(NULL);
	fresh();
	SESSION(b) = open_ok(NULL);

	check(strncmp(cloche_session_info_of(a)->context_id, "ctx-", 4) == 0);
	check(strcmp(cloche_session_info_of(a)->context_id,
		      cloche_session_info_of(b)->context_id) != 0);
}

static void test_id_must_agree(void)
{
	cloche_session *s = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;

	fresh();
	cloche_session_free(open_ok("one"));
	cloche_session_free(open_ok("one"));
	cloche_session_free(open_ok(NULL));
	check_int(cloche_session_open(dir, "two", &s, &err), -E_USAGE);
	check_int(cloche_session_open(dir, "", &s, &err), -E_USAGE);
	check_int(cloche_session_open(dir, "a\nb", &s, &err), -E_USAGE);
	check_int(cloche_session_open(dir, "a\xff", &s, &err), -E_USAGE);
	check(s == NULL);
}

/* The exact text of a finished reply. */
static void test_format(void)
{
	_cleanup_json_ json_t *usage =
		json_loads("{\"input_tokens\":3,\"service_tier\":\"standard\"}", 0, NULL);
	_cleanup_json_ json_t *events = json_loads("[{\"type\":\"system\",\"n\":1}]", 0, NULL);
	const struct session_reply reply = {.session_id = "s-1",
		.duration_ms = 1500,
		.num_turns = 2,
		.total_cost_usd = 0.18651,
		.usage = usage,
		.request_text = "do \xc3\xa9",
		.response_text = NULL,
		.events = events};
	_cleanup_(freep) char *text = NULL;
	char *at;

	fresh();
	SESSION(s) = open_ok("c");
	must(session_update_or_add_reply(s, &reply, NULL) == 0);
	must(cloche_session_set_model(s, "opus", NULL) == 0);
	text = text_of(SESSION_FILE);
	at = strstr(text, "\"timestamp\": \"");
	must(at);
	memcpy(at + 14, "YYYY-MM-DDTHH:MM:SS.UUUUUU", 26);
	check_z(text, "{\n"
		      "  \"execution_context_id\": \"c\",\n"
		      "  \"replies\": [\n"
		      "    {\n"
		      "      \"session_id\": \"s-1\",\n"
		      "      \"timestamp\": \"YYYY-MM-DDTHH:MM:SS.UUUUUU+00:00\",\n"
		      "      \"duration_ms\": 1500,\n"
		      "      \"total_cost_usd\": 0.18651,\n"
		      "      \"num_turns\": 2,\n"
		      "      \"is_error\": false,\n"
		      "      \"usage\": {\n"
		      "        \"input_tokens\": 3,\n"
		      "        \"output_tokens\": 0,\n"
		      "        \"cache_creation_input_tokens\": 0,\n"
		      "        \"cache_read_input_tokens\": 0,\n"
		      "        \"service_tier\": \"standard\"\n"
		      "      },\n"
		      "      \"request_text\": \"do \\u00e9\",\n"
		      "      \"response_text\": null,\n"
		      "      \"events\": [\n"
		      "        {\n"
		      "          \"type\": \"system\",\n"
		      "          \"n\": 1\n"
		      "        }\n"
		      "      ]\n"
		      "    }\n"
		      "  ],\n"
		      "  \"model\": \"opus\"\n"
		      "}");
}

static void test_model(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	must(cloche_session_set_model(s, "opus", NULL) == 0);
	check_z(cloche_session_info_of(s)->model, "opus");
	cloche_session_freep(&s);
	s = open_ok(NULL);
	check_z(cloche_session_info_of(s)->model, "opus");
	must(cloche_session_set_model(s, "", NULL) == 0);
	check(cloche_session_info_of(s)->model == NULL);
	_cleanup_(freep) char *text = text_of(SESSION_FILE);
	check(strstr(text, "model") == NULL);
	check_int(cloche_session_set_model(s, "\xff", NULL), -E_USAGE);
}

#define REPLY(id, more)                                                                            \
	"{\"session_id\":\"" id                                                                    \
	"\",\"timestamp\":\"2026-02-14T10:00:00+00:00\",\"duration_ms\":1,"                        \
	"\"total_cost_usd\":0.5,\"num_turns\":1,\"is_error\":false,\"usage\":{}" more "}"

static void test_unknown_members_are_kept(void)
{
	fresh();
	put(SESSION_FILE,
		"{\"x\":{\"deep\":[1]},\"execution_context_id\":\"c\",\"replies\":[" REPLY(
			"s", ",\"mood\":\"fine\",\"request_text\":\"q\"") "],\"effort\":\"high\"}");
	SESSION(s) = open_ok("c");
	must(session_update_or_add_reply(s,
		     &(struct session_reply){.session_id = "t", .request_text = "q"}, NULL) == 0);
	cloche_session_freep(&s);
	s = open_ok("c");
	check(strstr(cloche_session_json(s), "\"effort\": \"high\""));
	check(strstr(cloche_session_json(s), "\"x\": {"));
	must(cloche_session_info_of(s)->reply_count == 1);
	check_str(json_str_at(session_reply(s, 0), "mood"), "fine");
	check_str(json_str_at(session_reply(s, 0), "session_id"), "t");
	check_str(json_str_at(session_reply(s, 0), "timestamp"), "2026-02-14T10:00:00+00:00");
}

static void test_older_file_is_carried_over(void)
{
	fresh();
	put(SESSION_FILE_OLD, "{\"task_id\":\"t-9\",\"model\":\"opus\",\"replies\":[" REPLY(
				      "old", ",\"response_text\":\"hello\"") "]}");
	SESSION(s) = open_ok("t-9");
	check_z(cloche_session_info_of(s)->context_id, "t-9");
	check_z(cloche_session_info_of(s)->id_for_resume, "old");
	check_z(cloche_session_info_of(s)->last_successful_response, "hello");
	must(cloche_session_set_model(s, "sonnet", NULL) == 0);
	_cleanup_(freep) char *text = text_of(SESSION_FILE);
	check(strstr(text, "{\n  \"execution_context_id\": \"t-9\",") == text);
	check(strstr(text, "task_id") == NULL);
	check(exists(SESSION_FILE_OLD));
	/* from now on the newer one counts */
	put(SESSION_FILE_OLD, "{\"task_id\":\"other\",\"replies\":[]}");
	cloche_session_freep(&s);
	s = open_ok(NULL);
	check_z(cloche_session_info_of(s)->context_id, "t-9");
}

static void test_load_is_tolerant(void)
{
	fresh();
	put(SESSION_FILE, "{\"execution_context_id\":\"c\",\"replies\":[" REPLY(
				  "", ",\"events\":[1,null,{\"type\":\"x\"},\"s\"]") "," REPLY("",
				  ",\"events\":\"none\",\"response_text\":7") "]}");
	SESSION(s) = open_ok(NULL);
	check_int(json_array_size(json_object_get(session_reply(s, 0), "events")), 1);
	check_int(json_array_size(json_object_get(session_reply(s, 1), "events")), 0);
	check(cloche_session_info_of(s)->last_successful_response == NULL);
	check(cloche_session_info_of(s)->id_for_resume == NULL);
	fresh();
	put(SESSION_FILE, "{\"execution_context_id\":\"c\"}");
	cloche_session_freep(&s);
	s = open_ok(NULL);
	check_int(cloche_session_info_of(s)->reply_count, 0);
}

static void test_resume_id(void)
{
	fresh();
	put(SESSION_FILE,
		"{\"execution_context_id\":\"c\",\"replies\":[" REPLY("first", "") "," REPLY("",
			",\"events\":[{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":"
			"\"i\"},"
			"{\"type\":\"result\",\"session_id\":\"r\"},{\"type\":\"result\",\"session_"
			"id\":\"\"}]") "," REPLY("",
			",\"events\":[{\"type\":\"assistant\",\"session_id\":\"no\"}]") "]}");
	SESSION(s) = open_ok(NULL);
	check_z(cloche_session_info_of(s)->id_for_resume, "r");
}

#define LOST                                                                                       \
	"{\"type\":\"result\",\"session_id\":\"gone\",\"errors\":[\"No conversation found with "   \
	"session ID: gone\"]}"

static void test_lost_session_is_not_resumed(void)
{
	fresh();
	put(SESSION_FILE,
		"{\"execution_context_id\":\"c\",\"replies\":[" REPLY("kept", "") "," REPLY("gone",
			",\"events\":[" LOST "]") "," REPLY("", ",\"events\":[" LOST "]") "]}");
	SESSION(s) = open_ok(NULL);
	check_z(cloche_session_info_of(s)->id_for_resume, "kept");
	check_int(cloche_session_info_of(s)->reply_count, 3);
}

static void test_last_successful_response(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	const struct session_reply replies[] = {
		{.request_text = "1", .response_text = "good"},
		{.request_text = "2", .response_text = ""},
		{.request_text = "3", .response_text = "bad", .is_error = true},
		{.request_text = "4"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(replies); i++)
		must(session_update_or_add_reply(s, &replies[i], NULL) == 0);
	check_int(cloche_session_info_of(s)->reply_count, 4);
	check_z(cloche_session_info_of(s)->last_successful_response, "good");
}

static void test_update_or_add(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	must(session_update_or_add_reply(s, &(struct session_reply){.request_text = "a"}, NULL) ==
		0);
	must(session_update_or_add_reply(
		     s, &(struct session_reply){.request_text = "a", .num_turns = 2}, NULL) == 0);
	check_int(cloche_session_info_of(s)->reply_count, 1);
	check_int(json_integer_value(json_object_get(session_reply(s, 0), "num_turns")), 2);
	must(session_update_or_add_reply(s, &(struct session_reply){.request_text = "b"}, NULL) ==
		0);
	must(session_update_or_add_reply(s, &(struct session_reply){.request_text = "a"}, NULL) ==
		0);
	check_int(cloche_session_info_of(s)->reply_count, 3);
	must(session_update_or_add_reply(s, &(struct session_reply){.request_text = NULL}, NULL) ==
		0);
	must(session_update_or_add_reply(s, &(struct session_reply){.request_text = NULL}, NULL) ==
		0);
	check_int(cloche_session_info_of(s)->reply_count, 4);
}

#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"live\"}"
#define SAY(s)                                                                                     \
	"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"" s       \
	"\"}]}}"
#define RESULT                                                                                     \
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"live\"," \
	"\"num_turns\":3,\"duration_ms\":40,\"total_cost_usd\":0.25,\"result\":\"done\"}"

static void test_a_run(void)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript t;
	static const char *const lines[] = {INIT, SAY("hi"), RESULT};
	struct session_reply reply;

	fresh();
	SESSION(s) = open_ok("c");
	must(agent_transcript_init(&t, AGENT_TRANSCRIPT_MAX, NULL) == 0);
	must(session_begin_reply(s, "task", NULL) == 0);
	check_int(session_begin_reply(s, "task", NULL), -E_BUSY);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_(agent_event_freep) struct agent_event *e = event(lines[i]);

		must(agent_transcript_add(&t, e, NULL) == 0 && session_add_event(s, e, NULL) == 0);
	}
	reply = session_reply_from(&t, AGENT_SUCCESS, 99, "task", "hi");
	must(session_finish_reply(s, &reply, NULL) == 0);
	check_int(session_add_event(s, NULL, NULL), -E_INTERNAL);
	cloche_session_freep(&s);
	s = open_ok(NULL);
	must(cloche_session_info_of(s)->reply_count == 1);
	const json_t *r = session_reply(s, 0);
	check_str(json_str_at(r, "session_id"), "live");
	check_str(json_str_at(r, "response_text"), "hi");
	check_int(json_integer_value(json_object_get(r, "duration_ms")), 40);
	check_int(json_integer_value(json_object_get(r, "num_turns")), 3);
	check(json_is_false(json_object_get(r, "is_error")));
	check_int(json_array_size(json_object_get(r, "events")), 3);
	check(json_object_get(r, "events_offset") == NULL);
}

/* A run that could not begin holds up no other. */
static void test_a_beginning_that_cannot_be_written(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	_cleanup_(freep) char *path = fs_join(dir, SESSION_FILE);
	struct cloche_err err = CLOCHE_ERR_INIT;

	/* A file cannot replace a directory. */
	must(unlink(path) == 0 && mkdir(path, 0700) == 0);
	check_int(session_begin_reply(s, "first", &err), -E_SYSTEM);
	check_int(cloche_session_info_of(s)->reply_count, 0);
	must(rmdir(path) == 0);
	check_int(session_begin_reply(s, "second", NULL), 0);
	check_int(cloche_session_info_of(s)->reply_count, 1);
	check_str(json_str_at(session_reply(s, 0), "request_text"), "second");
}

/* Two runs with the same prompt are two replies. */
static void test_same_prompt_twice(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	for (int i = 0; i < 2; i++) {
		must(session_begin_reply(s, "continue", NULL) == 0);
		add(s, INIT);
		must(session_finish_reply(
			     s, &(struct session_reply){.request_text = "continue"}, NULL) == 0);
	}
	check_int(cloche_session_info_of(s)->reply_count, 2);
}

static void test_unfinished_reply_is_rebuilt(void)
{
	cloche_session *reader = NULL;

	fresh();
	SESSION(s) = open_ok("c");
	must(session_begin_reply(s, "first", NULL) == 0);
	add(s, INIT);
	must(session_finish_reply(s, &(struct session_reply){.request_text = "first"}, NULL) == 0);
	must(session_begin_reply(s, "second", NULL) == 0);
	add(s, INIT);
	add(s, SAY("half"));
	/* somebody looks at it meanwhile */
	must(cloche_session_load(dir, &reader, NULL) == 0);
	check_int(json_array_size(json_object_get(session_reply(reader, 1), "events")), 2);
	check_int(cloche_session_set_model(reader, "x", NULL), -E_DENIED);
	check(cloche_session_info_of(reader)->model == NULL);
	check_int(session_update_or_add_reply(reader, &(struct session_reply){0}, NULL), -E_DENIED);
	check_int(cloche_session_info_of(reader)->reply_count, 2);
	check_int(session_begin_reply(reader, "x", NULL), -E_DENIED);
	cloche_session_free(reader);
	cloche_session_freep(&s); /* as a crash would */
	s = open_ok(NULL);
	must(cloche_session_info_of(s)->reply_count == 2);
	const json_t *r = session_reply(s, 1);
	check_str(json_str_at(r, "request_text"), "second");
	check_str(json_str_at(r, "session_id"), "live");
	check(json_is_true(json_object_get(r, "is_error")));
	check(json_is_null(json_object_get(r, "response_text")));
	check_int(json_array_size(json_object_get(r, "events")), 2);
	check_z(cloche_session_info_of(s)->id_for_resume, "live");
	_cleanup_(freep) char *text = text_of(SESSION_FILE);
	check(strstr(text, "\"second\"") && !strstr(text, REPLY_PENDING)); /* it was written */
}

/* The crash came after the result: nothing of it is lost. */
static void test_crash_after_the_result(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	must(session_begin_reply(s, "task", NULL) == 0);
	add(s, INIT);
	add(s, SAY("answer"));
	add(s, RESULT);
	cloche_session_freep(&s);
	s = open_ok(NULL);
	check_z(cloche_session_info_of(s)->last_successful_response, "answer");
	check(json_real_value(json_object_get(session_reply(s, 0), "total_cost_usd")) == 0.25);
}

/* A result may say by its subtype alone that it is an error. */
static void test_crash_after_an_error(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	must(session_begin_reply(s, "task", NULL) == 0);
	add(s, SAY("so far"));
	add(s, "{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":false}");
	cloche_session_freep(&s);
	s = open_ok(NULL);
	check(json_is_true(json_object_get(session_reply(s, 0), "is_error")));
	check(cloche_session_info_of(s)->last_successful_response == NULL);
}

static void test_lock(void)
{
	cloche_session *second = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int status;
	pid_t pid;

	fresh();
	SESSION(s) = open_ok("c");
	check_int(cloche_session_open(dir, NULL, &second, &err), -E_BUSY);
	check(strstr(err.message, dir) != NULL && err.hint[0]);
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		_exit(cloche_session_open(dir, NULL, &second, NULL) == -E_BUSY ? 0 : 1);
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	cloche_session_freep(&s);
	s = open_ok(NULL);
}

static void test_leftovers_are_removed(void)
{
	fresh();
	put(SESSION_FILE ".0badcafe.tmp", "half");
	put("notes.tmp", "mine");
	SESSION(s) = open_ok("c");
	check(cloche_session_info_of(s)->warning == NULL);
	check(!exists(SESSION_FILE ".0badcafe.tmp"));
	check(exists("notes.tmp"));
}

static void test_not_found(void)
{
	cloche_session *s = NULL;

	fresh();
	check_int(cloche_session_load(dir, &s, NULL), -E_NOT_FOUND);
	check_int(cloche_session_load("/nonexistent/x", &s, NULL), -E_NOT_FOUND);
	must(chmod(dir, 0777) == 0);
	check_int(
		cloche_session_open(dir, NULL, &s, NULL), -E_DENIED); /* others could write there */
	check(s == NULL);
}

/* What the agent or the person wrote may be no UTF-8; the file still is. */
static void test_bytes_that_are_no_utf8(void)
{
	fresh();
	SESSION(s) = open_ok("c");
	must(session_update_or_add_reply(s,
		     &(struct session_reply){.session_id = "\xff",
			     .request_text = "a\xff",
			     .response_text = "\xc3"},
		     NULL) == 0);
	cloche_session_freep(&s);
	s = open_ok(NULL);
	check(cloche_session_info_of(s)->warning == NULL);
	must(cloche_session_info_of(s)->reply_count == 1);
	check_str(json_str_at(session_reply(s, 0), "request_text"), "a\xef\xbf\xbd");
}

int main(void)
{
	tap_fast_dir(top);
	run_test(test_new_context);
	run_test(test_made_ids_differ);
	run_test(test_id_must_agree);
	run_test(test_format);
	run_test(test_model);
	run_test(test_unknown_members_are_kept);
	run_test(test_older_file_is_carried_over);
	run_test(test_load_is_tolerant);
	run_test(test_resume_id);
	run_test(test_lost_session_is_not_resumed);
	run_test(test_last_successful_response);
	run_test(test_update_or_add);
	run_test(test_a_run);
	run_test(test_a_beginning_that_cannot_be_written);
	run_test(test_same_prompt_twice);
	run_test(test_unfinished_reply_is_rebuilt);
	run_test(test_crash_after_the_result);
	run_test(test_crash_after_an_error);
	run_test(test_lock);
	run_test(test_leftovers_are_removed);
	run_test(test_not_found);
	run_test(test_bytes_that_are_no_utf8);
	must(fs_remove_tree(AT_FDCWD, top) == 0);
	return tap_done();
}
