/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/sshleg.h"
#include "tap.h"

static void test_commands(void)
{
	static const struct {
		const char *command;
		int method; /* -1: refused */
		const char *path;
	} rows[] = {
		{"git-upload-pack '/org/repo.git'", SSHLEG_FETCH, "/org/repo.git"},
		{"git-receive-pack '/org/repo'", SSHLEG_PUSH, "/org/repo"},
		{"git-upload-pack 'org/repo.git'", SSHLEG_FETCH, "/org/repo.git"},
		{"git-upload-pack org/repo", SSHLEG_FETCH, "/org/repo"},
		{"git-upload-pack '/org/repo/'", SSHLEG_FETCH, "/org/repo"},
		{"git-upload-pack '/a/b//'", SSHLEG_FETCH, "/a/b"},
		{"git-upload-pack '/r'", SSHLEG_FETCH, "/r"},
		{"git-upload-pack '/a/..b/.c/d..'", SSHLEG_FETCH, "/a/..b/.c/d.."},
		{"git-upload-pack", -1, NULL},
		{"git-upload-pack ", -1, NULL},
		{"git-upload-pack ''", -1, NULL},
		{"git-upload-pack '", -1, NULL},
		{"git-upload-pack '/'", -1, NULL},
		{"git-upload-pack '/org/../repo'", -1, NULL},
		{"git-upload-pack '..'", -1, NULL},
		{"git-upload-pack '/org/./repo'", -1, NULL},
		{"git-upload-pack '/org//repo'", -1, NULL},
		{"git-upload-pack '//org/repo'", -1, NULL},
		{"git-upload-pack '~/repo'", -1, NULL},
		{"git-upload-pack '/~git/repo'", -1, NULL},
		{"git-upload-pack '/a/-x'", -1, NULL},
		{"git-upload-pack '-x'", -1, NULL},
		{"git-upload-pack --strict '/a'", -1, NULL},
		{"git-upload-pack '/a' '/b'", -1, NULL},
		{"git-upload-pack '/a'; id", -1, NULL},
		{"git-upload-pack '/a;id'", -1, NULL},
		{"git-upload-pack '/a$(id)'", -1, NULL},
		{"git-upload-pack '/a'\\''b'", -1, NULL},
		{"git-upload-pack \"/a\"", -1, NULL},
		{"git-upload-pack '/a%2fb'", -1, NULL},
		{"git-upload-pack '/a\nb'", -1, NULL},
		{"git-upload-pack '/\xc3\xa4'", -1, NULL},
		{"git-upload-archive '/a'", -1, NULL},
		{"git upload-pack '/a'", -1, NULL},
		{" git-upload-pack '/a'", -1, NULL},
		{"git-upload-packs '/a'", -1, NULL},
		{"git-shell", -1, NULL},
		{"", -1, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum sshleg_method method = SSHLEG_METHOD_END;
		char path[SSHLEG_MAX_PATH + 1];
		const char *why = sshleg_parse_command(str_from(rows[i].command), &method, path);

		if (!why != (rows[i].method >= 0) ||
			(!why &&
				((int)method != rows[i].method || strcmp(path, rows[i].path) != 0)))
			tap_fail("%s: %s", rows[i].command, why ? why : path);
	}
}

static void test_lengths(void)
{
	char command[SSHLEG_MAX_PATH + 64], path[SSHLEG_MAX_PATH + 1];
	enum sshleg_method method;

	for (size_t n = SSHLEG_MAX_PATH - 3; n < SSHLEG_MAX_PATH + 3; n++) {
		snprintf(command, sizeof(command), "git-upload-pack /%0*d", (int)n - 1, 0);
		check((sshleg_parse_command(str_from(command), &method, path) == NULL) ==
			(n <= SSHLEG_MAX_PATH));
		snprintf(command, sizeof(command), "git-upload-pack %0*d", (int)n, 0);
		check((sshleg_parse_command(str_from(command), &method, path) == NULL) ==
			(n < SSHLEG_MAX_PATH));
	}
	/* A NUL ends nothing. */
	check(sshleg_parse_command(str_make("git-upload-pack /a\0b", 20), &method, path) != NULL);
}

static void test_words(void)
{
	check(sshleg_is_protocol(STR("")) && sshleg_is_protocol(STR("version=2:x")));
	check(!sshleg_is_protocol(STR("version=2;id")) && !sshleg_is_protocol(STR("a b")));
	for (enum sshleg_method m = 0; m < SSHLEG_METHOD_END; m++)
		check(sshleg_method_of(sshleg_method_word(m)) == m);
	check(sshleg_method_of(STR("GET")) == SSHLEG_METHOD_END);
}

/* Any part of a record is not one, and what is read is what was written. */
static void test_records(void)
{
	struct sshleg_request in = {.method = SSHLEG_PUSH,
		.user = STR("git"),
		.path = STR("/a/b"),
		.protocol = STR("version=2"),
		.host = STR("h.test"),
		.port = 22};
	struct sshleg_request out;
	struct sshleg_answer answer;
	struct buf b = BUF_INIT(4096);

	must(sshleg_put_request(&b, &in) == 0);
	for (size_t n = 0; n < buf_len(&b); n++)
		check(sshleg_take_request(str_prefix(buf_str(&b), n), &out) == 0);
	check_int(sshleg_take_request(buf_str(&b), &out), buf_len(&b));
	check_str(out.path, "/a/b");
	check_str(out.host, "h.test");
	check(out.method == SSHLEG_PUSH && out.port == 22);
	buf_clear(&b);
	in.path = STR("/a/../b");
	must(sshleg_put_request(&b, &in) == 0);
	check(sshleg_take_request(buf_str(&b), &out) == -EPROTO);
	check(sshleg_take_request(STR("\xff\xff\xff\xff"), &out) == -EPROTO);
	buf_clear(&b);
	must(sshleg_put_answer(&b, &(struct sshleg_answer){403, STR("no")}) == 0);
	check_int(sshleg_take_answer(buf_str(&b), &answer), buf_len(&b));
	check_int(answer.status, 403);
	check_str(answer.text, "no");
	buf_done(&b);
}

int main(void)
{
	run_test(test_commands);
	run_test(test_lengths);
	run_test(test_words);
	run_test(test_records);
	return tap_done();
}
