/* SPDX-License-Identifier: Apache-2.0 */
/* What a room says that git could not change there is believed only of what was read-only, and told
 * in one line. */
#include "base/fd.h"
#include "fs/fs.h"
#include "tap.h"
#include "workspace/stuck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stuck guards;

static void setup(void)
{
	static const char *const names[][2] = {{"/h/.envrc", "/w/.envrc"},
		{"/h/.envrc", "/workspace/.envrc"}, {"/h/.vscode", "/w/.vscode"},
		{"/h/s p/.npmrc", "/w/s p/.npmrc"}, {"/h/.mcp.json", "/w/.mcp.json"},
		{"/h/.git/hooks", "/w/.git/hooks"}, {"/h/x/.git", "/w/x/.git"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		must(stuck_add(&guards, names[i][0], names[i][1]) == 0);
}

/* The text that is told if a room leaves this file. */
static const char *told_of(struct look_told *told, const char *text)
{
	char dir[TAP_DIR_BYTES];
	int fd;

	tap_dir(dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(fd >= 0 && (mkdirat(fd, "7", 0700) == 0 || errno == EEXIST));
	unlinkat(fd, "7/" STUCK_NAME, 0);
	if (text)
		must(fs_write_atomic(fd, "7/" STUCK_NAME, str_from(text), 0600, false, NULL) == 0);
	setup();
	stuck_read(&guards, fd, "7");
	*told = (struct look_told){.text = BUF_INIT(1 << 20)};
	must(stuck_tell(&guards, told) == 0);
	stuck_done(&guards);
	fd_close(fd);
	return buf_len(&told->text) ? buf_cstr(&told->text) : "";
}

static void test_names(void)
{
	struct look_told told;
	const char *text = told_of(&told, "/workspace/.envrc\n/w/.envrc\n/w/.vscode/a\n");

	check(told.told == 1 && strstr(text, "change '/h/.envrc', '/h/.vscode': read-only"));
	check(strstr(text, "\"path\":\"/h/.envrc\"") && strstr(text, "\"notice\":true"));
	buf_done(&told.text);
	text = told_of(&told, "/w/.mcp.json\n/w/s p/.npmrc\n/w/.vscode\n/w/.envrc");
	check(strstr(text, "'/h/.envrc', '/h/.vscode', '/h/s p/.npmrc' and 1 more: "));
	buf_done(&told.text);
}

static void test_hostile(void)
{
	static const char *const texts[] = {NULL, "", "\n\n", "/", "/w", "/w/.envrcx\n/w/.env\n",
		"/h/.envrc\n", "/w/.git/hooks\n", "/w/.git/hooks/pre-commit\n", "/w/x/.git\n",
		"x/w/.envrc\n", "\x1b[2J/w/.envrc\n"};
	struct look_told told;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		check(told_of(&told, texts[i])[0] == '\0' && told.told == 0);
		buf_done(&told.text);
	}
}

static void test_odd_files(void)
{
	struct look_told told = {.text = BUF_INIT(1 << 20)};
	char *large = malloc(300000);
	char dir[TAP_DIR_BYTES];
	int fd;

	tap_dir(dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(fd >= 0 && large && mkdirat(fd, "1", 0700) == 0 && mkdirat(fd, "2", 0700) == 0 &&
		mkdirat(fd, "3", 0700) == 0 && mkfifoat(fd, "1/" STUCK_NAME, 0600) == 0 &&
		symlinkat("../x", fd, "2/" STUCK_NAME) == 0);
	must(fs_write_atomic(fd, "x", STR("/w/.envrc\n"), 0600, false, NULL) == 0);
	memset(large, '/', 300000);
	must(fs_write_atomic(fd, "3/" STUCK_NAME, str_make(large, 300000), 0600, false, NULL) == 0);
	setup();
	stuck_read(&guards, fd, "1");
	stuck_read(&guards, fd, "2");
	stuck_read(&guards, fd, "3");
	stuck_read(&guards, fd, "4");
	check(stuck_tell(&guards, &told) == 0 && told.told == 0);
	memcpy(large, "/w/.envrc\n", 10);
	must(fs_write_atomic(fd, "3/" STUCK_NAME, str_make(large, 300000), 0600, false, NULL) == 0);
	stuck_read(&guards, fd, "3");
	check(stuck_tell(&guards, &told) == 0 && told.told == 1);
	stuck_done(&guards);
	buf_done(&told.text);
	free(large);
	fd_close(fd);
}

/* A room may leave more lines than anybody would wait for, in the file of each repository. */
static void test_many_lines(void)
{
	struct look_told told = {.text = BUF_INIT(1 << 20)};
	char *lines = malloc(STUCK_MAX_LINES);
	char dir[TAP_DIR_BYTES];
	int fd;

	tap_dir(dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0 && lines && mkdirat(fd, "1", 0700) == 0 && mkdirat(fd, "2", 0700) == 0);
	memset(lines, '\n', STUCK_MAX_LINES);
	must(fs_write_atomic(fd, "1/" STUCK_NAME, str_make(lines, STUCK_MAX_LINES - 1), 0600, false,
		     NULL) == 0);
	must(fs_write_atomic(
		     fd, "2/" STUCK_NAME, STR("/w/.envrc\n/w/.vscode\n"), 0600, false, NULL) == 0);
	setup();
	stuck_read(&guards, fd, "1");
	stuck_read(&guards, fd, "2");
	check(stuck_tell(&guards, &told) == 0 && told.told == 1 && buf_cstr(&told.text));
	check(strstr(buf_data(&told.text), "change '/h/.envrc': read-only"));
	stuck_done(&guards);
	buf_done(&told.text);
	free(lines);
	fd_close(fd);
}

int main(void)
{
	run_test(test_names);
	run_test(test_hostile);
	run_test(test_odd_files);
	run_test(test_many_lines);
	return tap_done();
}
