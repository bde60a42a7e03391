/* SPDX-License-Identifier: Apache-2.0 */
/* What a room set in a configuration of git is taken over, and what is not (INV-NOTHING-PLANTED).
 */
#include "base/fd.h"
#include "base/macro.h"
#include "tap.h"
#include "workspace/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOOKS "/run/cloche/hooks/"
#define BEFORE                                                                                     \
	"[core]\n\thooksPath = .husky/_\n\tbare = false\n[user]\n\tname = me\n[remote "            \
	"\"origin\"]\n\turl = "                                                                    \
	"https://github.com/me/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch "         \
	"\"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"

struct judged {
	struct buf add, said, refused;
	int r;
};

static void judged_done(struct judged *j)
{
	buf_done(&j->add);
	buf_done(&j->said);
	buf_done(&j->refused);
}

static void judge(struct judged *j, const char *room, const char *now)
{
	*j = (struct judged){BUF_INIT(1 << 20), BUF_INIT(1 << 20), BUF_INIT(1 << 20), 0};
	j->r = carry_judge(str_from(BEFORE), str_from(room), str_from(now), HOOKS, &j->add,
		&j->said, &j->refused);
}

#define ORIGIN_NEW                                                                                 \
	"[remote \"up\"]\n\turl = \"ssh://git@example.com/x\"\n\tfetch = "                         \
	"\"+refs/heads/*:refs/remotes/up/*\"\n"

static void test_taken(void)
{
	static const struct {
		const char *set, *add, *said;
	} cases[] = {{"", "", ""}, {"[core]\n\thooksPath = " HOOKS "3/view\n", "", ""},
		{"[user]\n\temail = a@b\n", "[user]\n\temail = \"a@b\"\n", "user.email"},
		{"[user]\n\tname = Me \\\"X\\\"\n", "[user]\n\tname = \"Me \\\"X\\\"\"\n",
			"user.name"},
		{"[branch \"x/y\"]\n\tremote = origin\n\tmerge = refs/heads/x/y\n",
			"[branch \"x/y\"]\n\tremote = \"origin\"\n\tmerge = \"refs/heads/x/y\"\n",
			""},
		{"[branch \"l\"]\n\tremote = .\n\tmerge = refs/heads/main\n\tdescription = a\\nb\n",
			"[branch \"l\"]\n\tremote = \".\"\n\tmerge = "
			"\"refs/heads/main\"\n\tdescription "
			"= \"a\\nb\"\n",
			""},
		{ORIGIN_NEW, ORIGIN_NEW, "remote.up.url (ssh://git@example.com/x)"},
		{"[remote \"up\"]\n\turl = git@example.com:a/b.git\n[branch \"n\"]\n\tremote = "
		 "up\n",
			"[remote \"up\"]\n\turl = \"git@example.com:a/b.git\"\n[branch "
			"\"n\"]\n\tremote = \"up\"\n",
			"remote.up.url (git@example.com:a/b.git)"},
		{"[remote \"origin\"]\n\tfetch = +refs/heads/b:refs/remotes/origin/b\n",
			"[remote \"origin\"]\n\tfetch = \"+refs/heads/b:refs/remotes/origin/b\"\n",
			""},
		{"[submodule \"l/x\"]\n\turl = https://e.test/x\n\tactive = true\n",
			"[submodule \"l/x\"]\n\turl = \"https://e.test/x\"\n\tactive = \"true\"\n",
			"submodule.l/x.url (https://e.test/x)"},
		{"[extensions]\n\tworktreeConfig = true\n",
			"[extensions]\n\tworktreeconfig = \"true\"\n",
			"extensions.worktreeconfig"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(freep) char *room = NULL;
		struct judged j;

		check(asprintf(&room, "%s%s", BEFORE, cases[i].set) > 0);
		judge(&j, room, BEFORE);
		if (j.r != 0 || !str_eq(buf_str(&j.add), str_from(cases[i].add)) ||
			!str_eq(buf_str(&j.said), str_from(cases[i].said)) || buf_len(&j.refused))
			tap_fail("%s: %d, %.*s; %.*s; %.*s", cases[i].set, j.r,
				STR_FMT(buf_str(&j.add)), STR_FMT(buf_str(&j.said)),
				STR_FMT(buf_str(&j.refused)));
		judged_done(&j);
	}
	check(true);
}

static void test_refused(void)
{
	static const char *const sets[] = {"[core]\n\tfsmonitor = x\n", "[core]\n\thooksPath = x\n",
		"[core]\n\tsshCommand = x\n", "[core]\n\tbare = true\n", "[core]\n\tworktree = /\n",
		"[alias]\n\tst = !x\n", "[include]\n\tpath = x\n", "[credential]\n\thelper = x\n",
		"[filter \"x\"]\n\tclean = y\n",
		"[url \"https://e.test/\"]\n\tinsteadOf = https://g/\n",
		"[http]\n\tproxy = http://e.test\n", "[push]\n\tdefault = matching\n",
		"[remote]\n\tpushDefault = up\n", "[user]\n\tsigningKey = x\n", "[user]\n\tname\n",
		"[user]\n\tname = a\\nb\n", "[user \"x\"]\n\tname = a\n",
		"[user]\n\tname = a\x1b[0m\n",
		/* Git would not read the repository, or another configuration, any more. */
		"[core]\n\trepositoryFormatVersion = 0\n",
		"[extensions]\n\tworktreeConfig = false\n",
		/* What leads the person's next fetch or push elsewhere. */
		"[remote \"origin\"]\n\turl = https://e.test/x\n",
		"[remote \"origin\"]\n\tpushurl = https://e.test/x\n",
		"[remote \"origin\"]\n\tuploadpack = x\n", "[remote \"origin\"]\n\tproxy = x\n",
		"[remote \"origin\"]\n\tmirror = true\n", "[remote \"origin\"]\n\tpush = +x:y\n",
		"[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/heads/*\n",
		"[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/remotes/other/*\n",
		"[remote \"origin\"]\n\tfetch = +refs/heads/a:refs/remotes/origin/b\n",
		"[remote \"origin\"]\n\tfetch = +refs/heads/a:refs/remotes/origin/../x\n",
		"[branch \"main\"]\n\tremote = .\n", "[branch \"main\"]\n\tmerge = refs/heads/x\n",
		"[branch \"main\"]\n\tpushRemote = origin\n",
		"[branch \"n\"]\n\tremote = nothing\n",
		"[branch \"n\"]\n\tremote = https://e.test/\n",
		"[branch \"n\"]\n\tmerge = refs/tags/x\n", "[branch \"n\"]\n\trebase = \"!x\"\n",
		"[branch \"-n\"]\n\tmerge = refs/heads/x\n",
		/* Addresses, and names that stand for one. */
		"[remote \"up\"]\n\turl = ext::sh\n", "[remote \"up\"]\n\turl = /tmp/x\n",
		"[remote \"up\"]\n\turl = ../x\n", "[remote \"up\"]\n\turl = file:///x\n",
		"[remote \"up\"]\n\turl = http://e.test/x\n",
		"[remote \"up\"]\n\turl = git://e.test/x\n", "[remote \"up\"]\n\turl = -x\n",
		"[remote \"up\"]\n\turl = ssh://-oProxyCommand=x/y\n",
		"[remote \"up\"]\n\turl = ssh://a@-oProxyCommand=x/y\n",
		"[remote \"up\"]\n\turl = -oProxyCommand=x:y\n",
		"[remote \"up\"]\n\turl = a@-x:y\n", "[remote \"up\"]\n\turl = host:-x\n",
		"[remote \"up\"]\n\turl = https://e.test/a b\n",
		"[remote \"up\"]\n\turl = \"https://e.test/\\n\"\n", "[remote \"up\"]\n\turl\n",
		"[remote \"up\"]\n\turl = foo::https://e.test/\n", "[remote \"up\"]\n\turl = x\n",
		"[remote \".\"]\n\turl = https://e.test/x\n",
		"[remote \"-x\"]\n\turl = https://e.test/x\n",
		"[remote \"https://github.com/me/x\"]\n\turl = https://e.test/x\n",
		"[remote \"../lib\"]\n\turl = https://e.test/x\n",
		"[remote \"a/b\"]\n\turl = https://e.test/\n",
		"[remote \"up\"]\n\tfetch = +refs/heads/*:refs/remotes/up/*\n",
		"[remote \"up\"]\n\tvcs = x\n\turl = https://e.test/x\n",
		"[remote \"up\"]\n\turl = https://e.test/x\n\tpushurl = /tmp/x\n",
		"[submodule \"s\"]\n\turl = ../x\n", "[submodule \"s\"]\n\tupdate = !x\n",
		"[submodule \"s\"]\n\tactive = x\n", "[extensions]\n\tpartialClone = up\n"};

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		_cleanup_(freep) char *room = NULL;
		struct judged j;

		check(asprintf(&room, "%s%s", BEFORE, sets[i]) > 0);
		judge(&j, room, BEFORE);
		if (j.r != 0 || buf_len(&j.add) || !buf_len(&j.refused) ||
			memchr(buf_data(&j.refused), '\x1b', buf_len(&j.refused)))
			tap_fail("%s: %d, %.*s; %.*s", sets[i], j.r, STR_FMT(buf_str(&j.add)),
				STR_FMT(buf_str(&j.refused)));
		judged_done(&j);
	}
	check(true);
}

static void test_others_changes(void)
{
	struct judged j;

	/* What the room removed stays; of a branch silently, as git does that by itself. */
	judge(&j, "[core]\n\tbare = false\n[user]\n\tname = me\n", BEFORE);
	check(j.r == 0 && buf_len(&j.add) == 0 &&
		str_eq(buf_str(&j.refused),
			STR("core.hookspath, remote.origin.url, remote.origin.fetch")));
	judged_done(&j);
	/* The person has set the same meanwhile, or has it otherwise. */
	judge(&j, BEFORE "[branch \"x\"]\n\tmerge = refs/heads/x\n[user]\n\temail = a@b\n",
		BEFORE "[branch \"x\"]\n\tmerge = refs/heads/y\n[user]\n\temail = a@b\n");
	check(j.r == 0 && buf_len(&j.add) == 0 && buf_len(&j.said) == 0 &&
		str_eq(buf_str(&j.refused), STR("branch.x.merge")));
	judged_done(&j);
	judge(&j, BEFORE ORIGIN_NEW, BEFORE "[remote \"up\"]\n\turl = https://mine.test/\n");
	check(j.r == 0 && !memmem(buf_data(&j.add), buf_len(&j.add), "url", 3));
	judged_done(&j);
	judge(&j, "[core", BEFORE);
	check_int(j.r, -EINVAL);
	judged_done(&j);
	judge(&j, BEFORE, "[core");
	check_int(j.r, -ESTALE);
	judged_done(&j);
}

static int told_lines(struct carry *c, int dir)
{
	struct look_told told = {.text = BUF_INIT(1 << 20)};
	int n;

	check_int(carry_over(c, dir, HOOKS, &told), 0);
	n = (int)told.told;
	buf_done(&told.text);
	return n;
}

static void put(int dir, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	check(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static bool is(int dir, const char *text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);

	return fd_read_file(dir, "git/config", &b, NULL) >= 0 &&
	       str_eq(buf_str(&b), str_from(text));
}

static void test_files(void)
{
	char path[TAP_DIR_BYTES];
	_cleanup_(freep) char *text = NULL, *own = NULL;
	_cleanup_fd_ int dir = -1;
	_cleanup_(carry_donep) struct carry c = {0};
	struct stat before, after;
	int status = 1;
	char *big;
	pid_t pid;

	tap_dir(path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(mkdirat(dir, "git", 0755) == 0 && mkdirat(dir, "7", 0755) == 0);
	put(dir, "git/config", BEFORE "# mine");
	check_int(carry_add(&c, dir, "git/config", "/p/.git/config", 7,
			  &(struct carry_ours){HOOKS "7/view", true}, &text, &own),
		0);
	check(c.n == 1 && text && own && strcmp(own, ".husky/_") == 0 &&
		strstr(text, "hookspath = \"" HOOKS "7/view\"") && !strstr(text, ".husky") &&
		strstr(text, "reflogExpire = never"));
	put(dir, "7/config", text);
	check_int(told_lines(&c, dir), 0);
	check(is(dir, BEFORE "# mine"));

	/* What is set goes to the end of the same file, after what the person wrote meanwhile. */
	check(fstatat(dir, "git/config", &before, 0) == 0);
	put(dir, "7/config", BEFORE "[user]\n\temail = a@b\n[core]\n\tpager = x\n");
	put(dir, "git/config", BEFORE "# mine, and more");
	check_int(told_lines(&c, dir), 2);
	check(is(dir, BEFORE "# mine, and more\n[user]\n\temail = \"a@b\"\n"));
	check(fstatat(dir, "git/config", &after, 0) == 0 && before.st_ino == after.st_ino);
	check(faccessat(dir, "git/config.lock", F_OK, 0) < 0);
	check_int(told_lines(&c, dir), 1);

	/* A line that goes on would take what is added for its value. */
	put(dir, "git/config", "[core]\n\tpager = a\\\n");
	put(dir, "7/config", BEFORE "[user]\n\temail = b@b\n");
	check_int(told_lines(&c, dir), 1);
	check(is(dir, "[core]\n\tpager = a\\\n"));

	/* Somebody else writes. */
	put(dir, "git/config", BEFORE);
	put(dir, "git/config.lock", "theirs");
	check_int(told_lines(&c, dir), 1);
	check(is(dir, BEFORE));
	pid = fork();
	if (pid == 0) {
		usleep(20000);
		_exit(unlinkat(dir, "git/config.lock", 0) < 0);
	}
	check_int(told_lines(&c, dir), 1);
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	check(is(dir, BEFORE "[user]\n\temail = \"b@b\"\n"));
	put(dir, "git/config", BEFORE);

	check(linkat(dir, "git/config", dir, "other", 0) == 0);
	check_int(told_lines(&c, dir), 1);
	check(is(dir, BEFORE) && unlinkat(dir, "other", 0) == 0);

	/* What a room can put in place of the copy, and somebody in place of the file. */
	unlinkat(dir, "7/config", 0);
	check(mkfifoat(dir, "7/config", 0600) == 0);
	check_int(told_lines(&c, dir), 1);
	unlinkat(dir, "7/config", 0);
	check(symlinkat("../git/config", dir, "7/config") == 0);
	check_int(told_lines(&c, dir), 1);
	unlinkat(dir, "7/config", 0);
	check_int(told_lines(&c, dir), 1);
	big = malloc((2 << 20) + 1);
	check(big != NULL);
	memset(big, '\n', 2 << 20);
	big[2 << 20] = '\0';
	put(dir, "7/config", big);
	check_int(told_lines(&c, dir), 1);
	free(big);
	put(dir, "7/config", "[user]\n\tname = x\n");
	check(unlinkat(dir, "git/config", 0) == 0 && mkfifoat(dir, "git/config", 0600) == 0);
	check_int(told_lines(&c, dir), 1);
	check(unlinkat(dir, "git/config", 0) == 0 &&
		symlinkat("/etc/hostname", dir, "git/config") == 0);
	check_int(told_lines(&c, dir), 1);
	check(faccessat(dir, "git/config.lock", F_OK, 0) < 0);
}

static void test_unreadable(void)
{
	char path[TAP_DIR_BYTES];
	_cleanup_(freep) char *text = NULL, *own = NULL;
	_cleanup_fd_ int dir = -1;
	_cleanup_(carry_donep) struct carry c = {0};

	tap_dir(path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* It stays as it is. */
	check_int(carry_add(&c, dir, "config", "/c", 1, &(struct carry_ours){HOOKS, false}, &text,
			  &own),
		0);
	put(dir, "config", "[core");
	check_int(carry_add(&c, dir, "config", "/c", 1, &(struct carry_ours){HOOKS, false}, &text,
			  &own),
		0);
	check(c.n == 0 && !text && !own);
	put(dir, "config", "[core]\n\thooksPath = .git/hooks\n");
	check_int(carry_add(&c, dir, "config", "/c", 1, &(struct carry_ours){HOOKS, false}, &text,
			  &own),
		0);
	check(c.n == 1 && text && !own && strstr(text, ".git/hooks"));
}

int main(void)
{
	run_test(test_taken);
	run_test(test_refused);
	run_test(test_others_changes);
	run_test(test_files);
	run_test(test_unreadable);
	return tap_done();
}
