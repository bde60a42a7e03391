/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a context that are damaged, or not there yet, or lack something. */
#include "base/fd.h"
#include "fs/fs.h"
#include "session/store.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static char dir[256], file[512];

/* Each test has a directory of its own. */
static void fresh(void)
{
	static int n;

	snprintf(dir, sizeof(dir), "%s/%d", top, n++);
	snprintf(file, sizeof(file), "%s/" SESSION_FILE, dir);
	must(mkdir(dir, 0700) == 0);
}

static void put(const char *text)
{
	must(fs_write_atomic(AT_FDCWD, file, str_from(text), 0600, false, NULL) == 0);
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

#define SESSION(name) _cleanup_(cloche_session_freep) cloche_session *name

static bool any_damaged(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	must(d);
	while ((e = readdir(d)))
		found |= strstr(e->d_name, ".damaged-") != NULL;
	closedir(d);
	return found;
}

static void test_damaged_file_is_set_aside(void)
{
	static const char *const bad[] = {"", "{", "[]", "null",
		"{\"execution_context_id\":5,\"replies\":[]}",
		"{\"execution_context_id\":\"c\",\"replies\":{}}",
		"{\"execution_context_id\":\"c\",\"replies\":[1]}",
		"{\"execution_context_id\":\"c\",\"replies\":[{\"session_id\":\"x\"}]}",
		"{\"replies\":[{\"usage\":{}}]}",
		"{\"execution_context_id\":\"c\",\"replies\":[]}x",
		"{\"execution_context_id\":\"\xff\",\"replies\":[]}"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cloche_session *reader = NULL;

		fresh();
		put(bad[i]);
		check_int(cloche_session_load(dir, &reader, NULL), -E_CORRUPT);
		check(!any_damaged()); /* looking changes nothing */
		SESSION(s) = open_ok("n");
		check(cloche_session_info_of(s)->warning != NULL);
		check_z(cloche_session_info_of(s)->context_id, "n");
		check(any_damaged());
	}
}

/* A session that is opened only to look for something changes nothing. */
static void test_damaged_file_stays_until_the_first_write(void)
{
	_cleanup_(buf_donep) struct buf before = BUF_INIT(4096);
	cloche_session *s = NULL;

	fresh();
	put("{");
	must(session_open_unwritten(dir, "n", &s, NULL) == 0);
	check(session_damage(s) && strstr(session_damage(s), "context.json is damaged (line 1"));
	check(cloche_session_info_of(s)->id_for_resume == NULL);
	cloche_session_free(s);
	must(fd_read_file(AT_FDCWD, file, &before, NULL) == 0);
	check_str(buf_str(&before), "{");
	check(!any_damaged());
	must(session_open_unwritten(dir, "n", &s, NULL) == 0);
	must(cloche_session_set_model(s, "opus", NULL) == 0);
	check(any_damaged());
	cloche_session_free(s);
	s = open_ok("n");
	check(cloche_session_info_of(s)->warning == NULL && session_damage(s) == NULL);
	check_z(cloche_session_info_of(s)->model, "opus");
	cloche_session_free(s);
}

static void test_new_context_is_not_there_until_the_first_write(void)
{
	cloche_session *s = NULL;

	fresh();
	must(session_open_unwritten(dir, "n", &s, NULL) == 0);
	check_z(cloche_session_info_of(s)->context_id, "n");
	check(cloche_session_info_of(s)->warning == NULL && access(file, F_OK) < 0);
	must(session_begin_reply(s, "task", NULL) == 0);
	check(access(file, F_OK) == 0);
	cloche_session_free(s);
}

/* Whoever else writes contexts leaves out what has a default. */
static void test_usage_and_id_may_be_missing(void)
{
	static const char reply[] =
		"{\"replies\":[{\"session_id\":\"s1\",\"timestamp\":\"2026-01-15T12:00:00+00:00\","
		"\"duration_ms\":5000,\"total_cost_usd\":0.05,\"num_turns\":3,"
		"\"is_error\":false}],\"mood\":\"fine\"}";
	const json_t *usage;

	fresh();
	put(reply);
	SESSION(s) = open_ok(NULL);
	check(cloche_session_info_of(s)->warning == NULL && !any_damaged());
	check_z(cloche_session_info_of(s)->context_id, "");
	check_z(cloche_session_info_of(s)->id_for_resume, "s1");
	usage = json_object_get(session_reply(s, 0), "usage");
	check_int(json_object_size(usage), 4);
	check(json_integer_value(json_object_get(usage, "input_tokens")) == 0);
	cloche_session_freep(&s);
	s = open_ok("named"); /* a name can still be given to it */
	check_z(cloche_session_info_of(s)->context_id, "named");
	cloche_session_freep(&s);
	s = open_ok("named");
	check(strstr(cloche_session_json(s), "\"mood\": \"fine\""));
	check_int(cloche_session_info_of(s)->reply_count, 1);
}

int main(void)
{
	tap_fast_dir(top);
	run_test(test_damaged_file_is_set_aside);
	run_test(test_damaged_file_stays_until_the_first_write);
	run_test(test_new_context_is_not_there_until_the_first_write);
	run_test(test_usage_and_id_may_be_missing);
	must(fs_remove_tree(AT_FDCWD, top) == 0);
	return tap_done();
}
