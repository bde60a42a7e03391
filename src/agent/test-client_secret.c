/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];

static void put(const char *name, size_t before, const char *text)
{
	_cleanup_(freep) char *path = fs_join(dir, name);
	_cleanup_(freep) char *pad = calloc(1, before + 1);
	int fd = path && pad ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755) : -1;

	must(fd >= 0);
	memset(pad, 'x', before);
	must(write(fd, pad, before) == (ssize_t)before);
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	fd_close(fd);
}

static void check_found(const char *program, const char *want)
{
	_cleanup_(freep) char *path = fs_join(dir, program);
	_cleanup_(freep) char *found = NULL;

	must(path);
	check_int(agent_client_secret(path, "KEY-", &found), 0);
	check_str(str_from(found ? found : "none"), want ? want : "none");
}

static void test_only_a_whole_string_counts(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"s = \"KEY-ab_c-1.2~\";", "KEY-ab_c-1.2~"},
		{"s = 'KEY-a'", "KEY-a"},
		{"s = `KEY-a`", "KEY-a"},
		{"KEY-a", NULL},
		{"\"KEY-a", NULL},
		{"\"KEY-a'", NULL},
		{"KEY-a\"", NULL},
		{"\"KEY-\"", NULL},
		{"\"KEY-a b\"", NULL},
		{"\"KEY-a\\nb\"", NULL},
		{"// KEY-a\n\"KEY-KEY-\" 'KEY-b'", "KEY-KEY-"},
		{"\"aKEY-a\" + 'KEY-b'", "KEY-b"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put("program", 0, cases[i].text);
		check_found("program", cases[i].want);
	}
}

static void test_it_may_lie_across_pieces(void)
{
	for (size_t before = (1 << 20) - 12; before <= (1 << 20) + 2; before++) {
		put("program", before, "\"KEY-abcd\"");
		check_found("program", "KEY-abcd");
	}
}

static void test_length(void)
{
	char text[140] = "'KEY-";

	memset(text + 5, 'a', 124);
	text[129] = '\'';
	put("program", 0, text);
	text[129] = '\0';
	check_found("program", text + 1);
	text[129] = 'a';
	text[130] = '\'';
	put("program", 0, text);
	check_found("program", NULL);
}

static void test_files_beside_it(void)
{
	_cleanup_(freep) char *link = fs_join(dir, "link.js"), *fifo = fs_join(dir, "fifo.js");

	must(link && fifo);
	put("program", 0, "nothing");
	put("secret", 0, "'KEY-of-another-file'");
	must(symlink("secret", link) == 0 && mkfifo(fifo, 0600) == 0);
	check_found("program", NULL);
	put("chunk.mjs", 0, "'KEY-of-the-chunk'");
	check_found("program", "KEY-of-the-chunk");
	must(unlink(fifo) == 0 && symlink("program", fifo) == 0);
	/* The program itself may be reached by a link. */
	check_found("fifo.js", "KEY-of-the-chunk");
	check_found("missing", NULL);
}

int main(void)
{
	tap_dir(dir);
	run_test(test_only_a_whole_string_counts);
	run_test(test_it_may_lie_across_pieces);
	run_test(test_length);
	run_test(test_files_beside_it);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
