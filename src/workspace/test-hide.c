/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are hidden: by their names, by what is in them, and by what git has of them. */
#include "base/fd.h"
#include "base/sha1.h"
#include "base/strv.h"
#include "tap.h"
#include "workspace/hide.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int top;

static void put(const char *path, struct str text)
{
	_cleanup_fd_ int fd =
		openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	must(fd >= 0 && fd_write_all(fd, text.p, text.n) == 0);
}

static enum hidden judge(const char *const *rules, const char *path)
{
	_cleanup_(strv_freep) char **copy = NULL;
	_cleanup_(hide_done) struct hide h = HIDE_INIT(top, NULL);
	const char *slash = strrchr(path, '/');
	_cleanup_(freep) char *dir = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	_cleanup_fd_ int fd = openat(top, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	must(fd >= 0);
	for (; rules && *rules; rules++)
		must(strv_add(&copy, str_from(*rules)) == 0);
	h.rules = copy;
	return hide_judge(&h, path, fd, slash ? slash + 1 : path);
}

static void test_names(void)
{
	static const char *const hidden[] = {".env", ".env.local", "d/.env.production", ".pypirc",
		"id_ed25519", "d/terraform.tfvars", "x.auto.tfvars", "store.p12"};
	static const char *const shown[] = {".env.example", "d/.env.sample", ".environment",
		"id_ed25519.pub", "env", "x.tfvars", ".envrc"};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		put(hidden[i], STR("A=1\n"));
		check_int(judge(NULL, hidden[i]), HIDDEN_BY_DEFAULT);
	}
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		put(shown[i], STR("A=1\n"));
		check_int(judge(NULL, shown[i]), HIDDEN_NOT);
	}
}

static void test_contents(void)
{
	static char large[HIDE_MAX_FILE + 1];

	put(".npmrc", STR("registry=https://npm.test/\n"));
	check_int(judge(NULL, ".npmrc"), HIDDEN_NOT);
	put(".npmrc", STR("//npm.test/:_authToken=secret\n"));
	check_int(judge(NULL, ".npmrc"), HIDDEN_BY_DEFAULT);
	put("x.pem", STR("-----BEGIN CERTIFICATE-----\n"));
	check_int(judge(NULL, "x.pem"), HIDDEN_NOT);
	put("x.pem", STR("-----BEGIN EC PRIVATE KEY-----\n"));
	check_int(judge(NULL, "x.pem"), HIDDEN_BY_DEFAULT);
	put("empty.pem", STR_NULL);
	check_int(judge(NULL, "empty.pem"), HIDDEN_NOT);
	/* What cannot be judged may be a secret: it is too large, a link, a pipe. */
	put("x.key", str_make(large, sizeof(large)));
	check_int(judge(NULL, "x.key"), HIDDEN_BY_DEFAULT);
	must(symlinkat("empty.pem", top, "link.pem") == 0 && mkfifoat(top, "pipe.pem", 0600) == 0);
	check_int(judge(NULL, "link.pem"), HIDDEN_BY_DEFAULT);
	check_int(judge(NULL, "pipe.pem"), HIDDEN_BY_DEFAULT);
}

static void test_rules(void)
{
	static const struct {
		const char *rules[4], *path;
		enum hidden want;
	} rows[] = {
		{{"!.env"}, ".env", HIDDEN_NOT},
		{{"!.env"}, ".env.local", HIDDEN_BY_DEFAULT},
		{{"!.env*"}, ".env.local", HIDDEN_NOT},
		{{"none"}, ".env", HIDDEN_NOT},
		{{"none", ".env"}, ".env", HIDDEN_BY_RULE},
		{{".env", "none"}, ".env", HIDDEN_NOT},
		{{"!.env", ".env"}, ".env", HIDDEN_BY_RULE},
		{{"d/*.txt"}, "d/x.txt", HIDDEN_BY_RULE},
		{{"d/*.txt"}, "x.txt", HIDDEN_NOT},
		{{"x.txt"}, "d/x.txt", HIDDEN_BY_RULE},
		{{"d/*", "!d/x.txt"}, "d/x.txt", HIDDEN_NOT},
		{{"none.txt"}, "none.txt", HIDDEN_BY_RULE},
		/* A directory is all that is in it. */
		{{"d"}, "d/x.txt", HIDDEN_BY_RULE},
		{{"d"}, "d/e/x.txt", HIDDEN_BY_RULE},
		{{"e"}, "d/e/x.txt", HIDDEN_BY_RULE},
		{{"d/e"}, "d/e/x.txt", HIDDEN_BY_RULE},
		{{"d/e"}, "d/x.txt", HIDDEN_NOT},
		{{"e/x.txt"}, "d/e/x.txt", HIDDEN_NOT},
		{{"x"}, "d/x.txt", HIDDEN_NOT},
		{{"d", "!e"}, "d/e/x.txt", HIDDEN_NOT},
		{{"d", "!d/e"}, "d/x.txt", HIDDEN_BY_RULE},
		{{"!d"}, "d/.env.local", HIDDEN_NOT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put(rows[i].path, STR("A=1\n"));
		check_int(judge(rows[i].rules, rows[i].path), rows[i].want);
	}
}

static void test_good_rules(void)
{
	static const char *const good[] = {
		".env", "!.env", "none", "a/b", "*", "..a", "!a/*", ".a/.b"};
	static const char *const bad[] = {"", "!", "!!a", "/a", "!/a", "a/", "../a", "a/../b",
		"./a", "!./a", "a/./b", "a//b", ".", "a/."};
	static char longest[HIDE_MAX_RULE + 2];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		check(hide_rule_is_good(str_from(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(!hide_rule_is_good(str_from(bad[i])));
	memset(longest, 'a', HIDE_MAX_RULE);
	check(hide_rule_is_good(str_from(longest)));
	longest[HIDE_MAX_RULE] = 'a';
	check(!hide_rule_is_good(str_from(longest)));
	check(hide_rule_shows(STR("none")) && hide_rule_shows(STR("!a")));
	check(!hide_rule_shows(STR("nonet")) && !hide_rule_shows(STR("a")));
}

/* Write an index with one file in it. */
static void put_index(const char *name, struct str contents, uint32_t version)
{
	char index[256] = "DIRC", blob[128];
	int n = snprintf(blob, sizeof(blob), "blob %zu%c%.*s", contents.n, 0, STR_FMT(contents));
	size_t length = strlen(name), whole = 12 + (62 + length + 8) / 8 * 8;

	index[7] = (char)version;
	index[11] = 1;
	sha1_text(str_make(blob, (size_t)n), (uint8_t *)index + 12 + 40);
	index[12 + 61] = (char)length;
	memcpy(index + 12 + 62, name, length);
	put(".git/index", str_make(index, whole + SHA1_BYTES));
}

static void test_committed(void)
{
	static const char *const rules[] = {".env", NULL};

	must(mkdirat(top, ".git", 0700) == 0);
	put(".env", STR("A=default\n"));
	put_index(".env", STR("A=default\n"), 2);
	check_int(judge(NULL, ".env"), HIDDEN_NOT);
	check_int(judge(rules, ".env"), HIDDEN_BY_RULE);
	/* It is the person's own by now, or the room has put the name there. */
	put(".env", STR("A=secret\n"));
	check_int(judge(NULL, ".env"), HIDDEN_BY_DEFAULT);
	/* That of another file, or of no index that is read. */
	put_index("d/.env", STR("A=secret\n"), 2);
	check_int(judge(NULL, ".env"), HIDDEN_BY_DEFAULT);
	put_index(".env", STR("A=secret\n"), 4);
	check_int(judge(NULL, ".env"), HIDDEN_BY_DEFAULT);
	put_index(".env", STR("A=secret\n"), 3);
	check_int(judge(NULL, ".env"), HIDDEN_NOT);
	/* Through no link. */
	must(renameat(top, ".git/index", top, "index") == 0 &&
		symlinkat("../index", top, ".git/index") == 0);
	check_int(judge(NULL, ".env"), HIDDEN_BY_DEFAULT);
}

int main(void)
{
	char dir[TAP_DIR_BYTES];

	tap_dir(dir);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top >= 0 && mkdirat(top, "d", 0700) == 0 && mkdirat(top, "d/e", 0700) == 0);
	run_test(test_names);
	run_test(test_contents);
	run_test(test_rules);
	run_test(test_good_rules);
	run_test(test_committed);
	return tap_done();
}
