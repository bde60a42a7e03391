/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/envfile.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static int keep(void *user, const char *name, const char *value, struct cloche_err *err)
{
	struct buf *b = user;

	if (strcmp(name, "BAD") == 0)
		return err_set(err, E_USAGE, "bad name");
	must(buf_add_str(b, str_from(name)) == 0 && buf_add_char(b, '=') == 0 &&
		buf_add_str(b, str_from(value)) == 0 && buf_add_char(b, ';') == 0);
	return 0;
}

static void lines(void)
{
	static const struct {
		struct str text;
		const char *taken; /* NULL: it fails, */
		const char *why;   /* with these words */
	} rows[] = {
		{STR(""), "", NULL},
		{STR("A=1\n\n# no\n  B=two words \r\nC=\"q\"=x\nD="),
			"A=1;B=two words ;C=\"q\"=x;D=;", NULL},
		{STR("A=1\nA=2\n"), "A=1;A=2;", NULL},
		{STR("TEST_HERE\nTEST_NOT_HERE\n"), "TEST_HERE=mine;", NULL},
		{STR("A=1\n=2\n"), NULL, "line 2 is not NAME=VALUE"},
		{STR("export A=1\n"), NULL, "line 1 is not NAME=VALUE"},
		{STR("A=1\0B\n"), NULL, "line 1 is no line of text"},
		{STR("BAD=1\n"), NULL, "bad name"},
	};
	char dir[TAP_DIR_BYTES], path[TAP_DIR_BYTES + 8];

	tap_dir(dir);
	snprintf(path, sizeof(path), "%s/env", dir);
	must(setenv("TEST_HERE", "mine", 1) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
		struct cloche_err err = CLOCHE_ERR_INIT;
		FILE *f = fopen(path, "we");
		int r;

		must(f && fwrite(rows[i].text.p, 1, rows[i].text.n, f) == rows[i].text.n);
		must(fclose(f) == 0);
		r = envfile_read(path, keep, &b, &err);
		check_int(r, rows[i].taken ? 0 : -E_USAGE);
		if (rows[i].taken)
			check_str(buf_str(&b), rows[i].taken);
		else
			check(strstr(err.message, rows[i].why) != NULL);
	}
}

/* A device may have no end, and no end of a line either. */
static void endless_file(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(envfile_read("/dev/zero", keep, NULL, &err), -E_USAGE);
	check(strstr(err.message, "line 1 is no line of text") != NULL);
}

/* The longest line is taken, and one that is a byte longer is not. */
static void long_lines(void)
{
	enum { LONGEST = 128 * 1024 };
	_cleanup_(freep) char *text = malloc(LONGEST + 1);
	char dir[TAP_DIR_BYTES], path[TAP_DIR_BYTES + 8];

	tap_dir(dir);
	snprintf(path, sizeof(path), "%s/env", dir);
	must(text != NULL);
	memset(text, 'A', LONGEST + 1);
	text[1] = '=';
	for (size_t more = 0; more <= 1; more++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * LONGEST);
		struct cloche_err err = CLOCHE_ERR_INIT;
		FILE *f = fopen(path, "we");

		must(f && fwrite(text, 1, LONGEST + more, f) == LONGEST + more);
		must(fputs("\nB=2\n", f) >= 0 && fclose(f) == 0);
		check_int(envfile_read(path, keep, &b, &err), more ? -E_USAGE : 0);
		check_int(buf_len(&b), more ? 0 : LONGEST + 5);
	}
}

static void no_file(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(envfile_read("/no/such/file", keep, NULL, &err), -E_USAGE);
	check(strstr(err.message, "/no/such/file: No such file") != NULL);
}

int main(void)
{
	run_test(lines);
	run_test(endless_file);
	run_test(long_lines);
	run_test(no_file);
	return tap_done();
}
