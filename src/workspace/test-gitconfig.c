/* SPDX-License-Identifier: Apache-2.0 */
/* Which configurations of git are harmless (INV-NOTHING-PLANTED). */
#include "base/macro.h"
#include "tap.h"
#include "workspace/gitconfig.h"

static bool inside(void *user, const char *value)
{
	return strcmp(value, user) == 0;
}

static bool is_harmless(const char *text)
{
	char worktree[] = "../../../sub";

	return gitconfig_is_harmless(str_from(text), inside, worktree);
}

static void test_harmless(void)
{
	static const char *const texts[] = {"", "\n\n", "# only\n; comments",
		"\xef\xbb\xbf[core]\n", "[core]\n\tbare = false\n\trepositoryformatversion = 0\n",
		"[core] bare = false\n[user]name=x\n", "[CORE]\r\n\tBARE\r\n",
		"[remote \"origin\"]\n\turl = git@example.com:a/b.git\n\tfetch = +refs/*:refs/*\n",
		"[remote \"o\"] url = https://[::1]/x ; really\n",
		"[remote \"a\\\"b]c\"]\n\turl = /x\n[branch \"m\"]\n\tmerge = refs/heads/m\n",
		"[remote.old]\n\turl = /x\n", "[remote]\n\tpushDefault = origin\n",
		"[extensions]\n\tpartialClone = origin\n",
		"[branch \"ext::x\"]\n\tremote = .\n\tpushRemote = me/fork\n",
		"[user]\n\tname = \"a # ; b\" c\n", "[user]\n\tname = a\\\nfsmonitor = x\n",
		"[core]\n\tworktree = ../../../sub\n",
		"[submodule \"s\"]\n\tupdate = rebase\n\tactive = true\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!is_harmless(texts[i]))
			tap_fail("not harmless: %s", texts[i]);
	check(true);
}

static void test_commands(void)
{
	static const char *const texts[] = {"[core]\n\tfsmonitor = x\n", "[core]fsmonitor=x",
		"[Core]\n\tFsMonitor = x\n", "[core]\n\tbare = false\n\thooksPath = h\n",
		"[alias]\n\tst = status\n", "[include]\n\tpath = x\n",
		"[includeIf \"gitdir:/\"]\n\tpath = x\n", "[filter \"x\"]\n\tclean = y\n",
		"[remote \"o\"]\n\turl = ext::sh -c x\n",
		"[remote \"o\"]\n\tpushurl = \"foo\"::x\n", "[remote \"o\"]\n\turl = -x\n",
		"[remote \"o\"]\n\turl = \\\n  ext::x\n", "[remote \"o\"]\n\tuploadpack = x\n",
		"[remote \"o\"]\n\turl = \rext::x\n", "[remote \"o\"]\n\turl = \"\rext::x\"\n",
		"[remote \"ext::sh -c x\"]\n\tfetch = +refs/*:refs/*\n",
		"[remote \"--upload-pack=x\"]\n\tpromisor = true\n",
		"[remote \"\\--upload-pack=x\"]\n\tpromisor = true\n",
		"[remote.-x]\n\tpromisor = true\n", "[remote.o \"p\"]\n\tpromisor = true\n",
		"[extensions]\n\tpartialClone = --upload-pack=x\n",
		"[branch \"m\"]\n\tremote = ext::sh -c x\n",
		"[branch \"m\"]\n\tpushRemote = ext::x\n", "[remote]\n\tpushDefault = ext::x\n",
		"[submodule \"s\"]\n\tupdate = \r!x\n", "[remote]\n\turl = x\n",
		"[submodule \"s\"]\n\tupdate = !x\n", "[submodule \"s\"]\n\tupdate = \"!x\"\n",
		"[core]\n\tworktree = /home\n", "[core]\n\tworktree\n",
		"[user]\n\tname = a ; \\\n[core]\n\tfsmonitor = x\n",
		"[user]\n\tname = \"a\n[core]\n\tfsmonitor = x\n\"\n", "bare = false\n", "[core\n",
		"[core \"x]\n", "[core \"x\ny\"]\n", "[]\nx = y\n", "[core]\n\tbare false\n",
		"[core]\n\tbare = \\x\n", "[core]\n\t= x\n", "[core]\n\t\vbare = x\n",
		"[credential]\n\thelper = !x\n", "[diff \"x\"]\n\ttextconv = y\n",
		"[gpg \"ssh\"]\n\tprogram = x\n", "[merge \"x\"]\n\tdriver = y\n",
		"[sequence]\n\teditor = x\n", "[pager]\n\tlog = x\n",
		"[url \"x\"]\n\tinsteadOf = y\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (is_harmless(texts[i]))
			tap_fail("harmless: %s", texts[i]);
	check(!gitconfig_is_harmless(STR("[core]\nbare\0 = x\n"), NULL, NULL));
	check(!gitconfig_is_harmless(STR("\0"), NULL, NULL));
	check(!gitconfig_is_harmless(STR("[core]\nworktree = ../../../sub\n"), NULL, NULL));
}

static void test_long(void)
{
	char text[20000];

	memset(text, 'a', sizeof(text));
	memcpy(text, "[user]\nname =", 13);
	check(!gitconfig_is_harmless(str_make(text, sizeof(text)), NULL, NULL));
	check(gitconfig_is_harmless(str_make(text, 4000), NULL, NULL));
	check(gitconfig_is_harmless(str_make(text, 13 + 8191), NULL, NULL));
	check(!gitconfig_is_harmless(str_make(text, 13 + 8192), NULL, NULL));
	memcpy(text, "[", 1);
	memset(text + 1, 'b', 200);
	check(!gitconfig_is_harmless(str_make(text, sizeof(text)), NULL, NULL));
}

int main(void)
{
	run_test(test_harmless);
	run_test(test_commands);
	run_test(test_long);
	return tap_done();
}
