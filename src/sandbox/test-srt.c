/* SPDX-License-Identifier: Apache-2.0 */
/* What mounts the rules of files become. (tests/integration/test-srt has what they do in a room.)
 */
#include "fs/fs.h"
#include "sandbox/sandbox.h"
#include "tap.h"

#include <cloche/srt.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];

/* "ro src" or "rw src" for each mount below the working directory, "-- src" for what is hidden. */
static void check_mounts(const char *rules, const char *want)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(buf_donep) struct buf got = BUF_INIT(4096);
	struct cloche_err err = CLOCHE_ERR_INIT;
	char text[512];

	snprintf(text, sizeof(text), "{\"filesystem\":{%s}}", rules);
	must(fs_write_atomic(AT_FDCWD, "settings", str_from(text), 0600, false, &err) == 0);
	must(sb != NULL);
	check_int(cloche_sandbox_load_srt_settings(sb, "settings", &err), 0);
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		bool hidden = strstr(m->source, "/empty/") != NULL;

		must(buf_printf(&got, "%s%s .%s", i ? ", " : "",
			     hidden ? "--" : (m->ro ? "ro" : "rw"), m->target + strlen(top)) >= 0);
	}
	check_str(buf_str(&got), want);
}

static void rules_become_mounts(void)
{
	check_mounts("", "ro .");
	check_mounts("\"allowWrite\":[\".\"]", "ro ., rw .");
	check_mounts("\"allowWrite\":[\"src\"]", "ro ., rw ./src");
	check_mounts("\"allowWrite\":[\"src\"],\"denyRead\":[\"src\"]", "ro ., rw ./src, -- ./src");
	check_mounts("\"allowWrite\":[\"src\"],\"denyWrite\":[\"src\"]", "ro .");
	check_mounts("\"denyRead\":[\".\"],\"allowRead\":[\"src\"]", "ro ./src");
	check_mounts("\"denyRead\":[\".\"]", "ro ., -- .");
}

/* "/a-b" sorts between "/a" and "/a/c". */
static void neighbour_does_not_hide_what_is_allowed(void)
{
	_cleanup_(freep) char *beside = NULL, *rules = NULL;

	must(asprintf(&beside, "%s-b", top) > 0 && mkdir(beside, 0700) == 0);
	must(asprintf(&rules, "\"denyRead\":[\".\"],\"allowRead\":[\"%s\",\"src\"]", beside) > 0);
	check_mounts(rules, "ro .-b, ro ./src");
	must(rmdir(beside) == 0);
}

/* Each directory on the way once, and before what lies in it. */
static void ways_to_what_is_denied_are_mounted(void)
{
	check_mounts("\"allowWrite\":[\".\"],\"denyWrite\":[\"src/a/b/c\"]",
		"ro ., rw ., rw ./src, rw ./src/a, rw ./src/a/b, ro ./src/a/b/c");
	check_mounts(
		"\"allowWrite\":[\".\"],\"denyWrite\":[\"src/a/b/c\"],\"denyRead\":[\"src/d\"]",
		"ro ., rw ., rw ./src, rw ./src/a, rw ./src/a/b, ro ./src/a/b/c, -- ./src/d");
	check_mounts("\"allowWrite\":[\"src/a\"],\"denyWrite\":[\"src/a/b/c\",\"src/d\"]",
		"ro ., rw ./src/a, rw ./src/a/b, ro ./src/a/b/c");
}

int main(void)
{
	static const char *const dirs[] = {"src", "src/a", "src/a/b", "src/a/b/c", "src/d"};

	tap_dir(top);
	must(chdir(top) == 0);
	must(setenv("CLOCHE_STATE_DIR", top, 1) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		must(mkdir(dirs[i], 0700) == 0);
	run_test(rules_become_mounts);
	run_test(neighbour_does_not_hide_what_is_allowed);
	run_test(ways_to_what_is_denied_are_mounted);
	must(chdir("/") == 0 && fs_remove_tree(AT_FDCWD, top) == 0);
	return tap_done();
}
