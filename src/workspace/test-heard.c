/* SPDX-License-Identifier: Apache-2.0 */
/* What a command says that it could not change is told if it is protected, and nothing else. */
#include "base/macro.h"
#include "tap.h"
#include "workspace/heard.h"

#include <string.h>

static struct heard heard;
static struct buf out;

static void setup(void)
{
	static const char *const names[][3] = {
		{".envrc", "/h/p/.envrc", "/workspace/.envrc"},
		{".vscode", "/h/p/.vscode", "/workspace/.vscode"},
		{"a b/.npmrc", "/h/p/a b/.npmrc", NULL},
		{".git/hooks", "/h/p/.git/hooks", "/workspace/.git/hooks"},
	};

	heard_done(&heard);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		must(heard_add(&heard, names[i][0], names[i][1], names[i][2]) == 0);
}

/* What is told of it. */
static const char *told(void)
{
	buf_done(&out);
	out = (struct buf)BUF_INIT(4096);
	must(heard_tell(&heard, &out) == 0 && buf_cstr(&out));
	return buf_cstr(&out);
}

static const char *told_of(const char *text)
{
	setup();
	heard_feed(&heard, text, strlen(text));
	return told();
}

static void test_words_of_programs(void)
{
	static const char *const lines[] = {
		"mv: cannot move 'x' to '.envrc': Device or resource busy\n",
		"sh: 1: cannot create .envrc: Read-only file system\n",
		"rm: cannot remove './.envrc': Device or resource busy",
		"Error: EBUSY: resource busy or locked, rename '/h/p/t' -> '/h/p/.envrc'\r\n",
		"Error: EROFS: read-only file system, open '/workspace/.envrc'\n",
		"OSError: [Errno 30] Read-only file system: '/h/p/.envrc'\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check_z(told_of(lines[i]),
			"the command says that it could not change '.envrc': read-only inside; "
			"--allow-write FILE lets it");
}

static void test_what_is_below(void)
{
	check(strstr(told_of("x\ncp: '.vscode/a/b': Read-only file system\n"), "'.vscode':"));
	check(strstr(told_of("open a b/.npmrc: EROFS\n"), "'a b/.npmrc':"));
}

static void test_others(void)
{
	static const char *const lines[] = {
		"rm: cannot remove '.envrc': Permission denied\n",
		"rm: cannot remove '/etc/.envrc': Read-only file system\n",
		"rm: cannot remove 'x.envrc', '.envrc.bak', '.envrc-2': Read-only file system\n",
		"rm: cannot remove 'b/.npmrc': Read-only file system\n",
		"cat .envrc\nrm: cannot remove 'x': Read-only file system\n",
		"Read-only file system\n.envrc\n",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check_z(told_of(lines[i]), "");
}

/* A hostile room says so to have the person open the hooks. */
static void test_git(void)
{
	const char *text = told_of("cp: '.git/hooks/pre-commit': Read-only file system\n");

	check(strstr(text, "could not change '.git/hooks': ") && strstr(text, "cloche-run(1)"));
	check(!strstr(text, "--allow-write"));
	text = told_of(".envrc: EROFS\n.git/hooks: EROFS\n");
	check(strstr(text, "lets it; likewise '.git/hooks': read-only"));
}

static void test_pieces(void)
{
	static const char line[] = "mv: to '.envrc': Device or resource busy\n";
	static char noise[3 * HEARD_LINE_MAX];

	setup();
	for (size_t i = 0; i < sizeof(line) - 1; i++)
		heard_feed(&heard, line + i, 1);
	check(strstr(told(), "'.envrc'"));
	memset(noise, 'x', sizeof(noise));
	setup();
	heard_feed(&heard, noise, sizeof(noise));
	heard_feed(&heard, line, sizeof(line) - 1);
	check_z(told(), "");
	heard_feed(&heard, line, sizeof(line) - 1);
	check(strstr(told(), "'.envrc'"));
}

/* So much is compared, and no more. */
static void test_bounds(void)
{
	setup();
	for (size_t i = 0; i < HEARD_MAX_LINES; i++)
		heard_feed(&heard, "EROFS\n", 6);
	heard_feed(&heard, ".envrc EROFS\n", 13);
	check_z(told(), "");
	heard_done(&heard);
	heard_feed(&heard, ".envrc EROFS\n", 13);
	check_z(told(), "");
	buf_done(&out);
}

int main(void)
{
	run_test(test_words_of_programs);
	run_test(test_what_is_below);
	run_test(test_others);
	run_test(test_git);
	run_test(test_pieces);
	run_test(test_bounds);
	return tap_done();
}
