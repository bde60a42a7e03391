/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "config/always.h"
#include "config/consent.h"
#include "fs/fs.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char host[] = "api.test", words[] = "GET https://git.test/x",
	    rules[] = "url_prefixes:\n- host: git.test\n  path: /x\n";
static const struct allow_source one_host = {.text = host};
static const struct allow_source one_rule = {.name = words, .text = rules};

static size_t count(const char *dir)
{
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *list = NULL;
	_cleanup_(freep) char *file = NULL;

	must(always_load(dir, &list, &file, NULL) == 0);
	check((list != NULL) == (file != NULL));
	check(!file || access(file, F_OK) == 0);
	return list ? list->sources_n : 0;
}

static void what_is_added_is_there(void)
{
	check_int((int)count("/a"), 0);
	check_int(always_remove("/a", NULL), 0);
	for (int i = 0; i < 2; i++) {
		check_int(always_add("/a", &one_host, NULL), 0);
		check_int(always_add("/a", &one_rule, NULL), 0);
	}
	check_int((int)count("/a"), 2);
	check_int((int)count("/a/b"), 0);
	check_int(always_remove("/a", NULL), 1);
	check_int((int)count("/a"), 0);
}

static void there_is_an_end(void)
{
	enum { MOST = 1000, LEFT = 3 };
	_cleanup_(freep) char *path = consent_path("/many", ".always");
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	struct cloche_err err = CLOCHE_ERR_INIT;
	char text[32];

	/* As if by so many calls, which each would read and write the whole file. */
	for (int i = 0; i < MOST - LEFT; i++)
		must(buf_printf(&b, "%s{\"host\":\"h%d.test\"}",
			     i > 0 ? "," : "{\"directory\":\"/many\",\"allow\":[", i) == 0);
	must(buf_add_str(&b, STR("]}")) == 0);
	must(path && fs_write_atomic(AT_FDCWD, path, buf_str(&b), 0600, false, NULL) == 0);
	for (int i = 0; i < LEFT; i++) {
		snprintf(text, sizeof(text), "new%d.test", i);
		check_int(always_add("/many", &(struct allow_source){.text = text}, &err), 0);
	}
	check_int(always_add("/many", &one_host, &err), -E_LIMIT);
	check_int((int)count("/many"), MOST);
}

/* Nothing of what a person has answered is lost in silence. */
static void a_damaged_file_is_an_error(void)
{
	static const char *const texts[] = {"", "{", "[]", "{\"allow\": 7}",
		"{\"allow\": [{\"host\": \"a b\"}]}", "{\"allow\": [7]}",
		"{\"allow\": [{\"rules\": \"domains: 7\"}]}"};
	_cleanup_(freep) char *path = consent_path("/a", ".always");

	must(path);
	check_int(always_add("/a", &one_host, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cloche_allowlist *list = NULL;
		char *file = NULL;

		must(fs_write_atomic(AT_FDCWD, path, str_from(texts[i]), 0600, false, NULL) == 0);
		check(always_load("/a", &list, &file, NULL) < 0);
		check(!list && !file);
	}
	check_int(always_remove("/a", NULL), 1);
	check_int(always_add("/a", &one_host, NULL), 0);
	check_int((int)count("/a"), 1);
}

int main(void)
{
	char dir[64];

	tap_dir(dir);
	setenv("CLOCHE_STATE_DIR", dir, 1);
	run_test(what_is_added_is_there);
	run_test(there_is_an_end);
	run_test(a_damaged_file_is_an_error);
	return tap_done();
}
