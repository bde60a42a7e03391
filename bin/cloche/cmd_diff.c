/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: paths come from inside the sandbox and can have any bytes. In lines,
 * terminal controls, line breaks and backslashes are written as \xXX, even into a pipe, so that
 * each line is one path and can be decoded again. In JSON, if a path is not UTF-8, "path" is an
 * approximation and "path_hex" has the bytes. */
#include "cli.h"
#include "json_out.h"
#include "names.h"

#include <cloche/diff.h>
#include <cloche/instance.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct diff_options {
	bool json;
};

static const struct option diff_options[] = {
	{"json", 0, NULL, "print one JSON document a line: kind, path, type, mode, size",
		.at = offsetof(struct diff_options, json)},
};
static const struct option_table diff_table = {.options = diff_options,
	.n = sizeof(diff_options) / sizeof(diff_options[0]),
	.title = "Options"};

static bool print_line(const cloche_change *c, void *user)
{
	printf("%c ", (int)c->kind);
	name_print(c->path, c->path_length);
	putchar('\n');
	return !ferror(stdout);
}

static bool print_json(const cloche_change *c, void *user)
{
	static const struct {
		enum cloche_file_type type;
		const char *name;
	} names[] = {{CLOCHE_FILE_REGULAR, "file"}, {CLOCHE_FILE_DIRECTORY, "directory"},
		{CLOCHE_FILE_LINK, "symlink"}, {CLOCHE_FILE_OTHER, "other"}};
	json_t *o = json_object();
	char kind[2] = {(char)c->kind, 0}, mode[8], *text;
	bool ok;

	snprintf(mode, sizeof(mode), "%04o", c->mode & 07777);
	json_object_set_new(o, "kind", json_string(kind));
	name_to_json(o, "path", c->path, c->path_length);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].type == c->type)
			json_object_set_new(o, "type", json_string(names[i].name));
	json_object_set_new(o, "mode", json_string(mode));
	json_object_set_new(o, "size", json_integer((json_int_t)c->size));
	text = json_line(o);
	ok = text && puts(text) >= 0;
	free(text);
	json_decref(o);
	return ok;
}

/* A name with a slash, or of an existing directory, is a directory in which changes were kept. */
static bool is_directory(const char *what)
{
	struct stat st;

	return strchr(what, '/') || (stat(what, &st) == 0 && S_ISDIR(st.st_mode));
}

static int diff(const char *what, bool json, cloche_err *err)
{
	cloche_change_fn print = json ? print_json : print_line;
	cloche_instance *instance = NULL;
	int r;

	if (is_directory(what))
		return cloche_diff_kept(what, print, NULL, err);
	r = cloche_instance_open(what, &instance, err);
	if (r == 0)
		r = cloche_instance_diff(instance, print, NULL, err);
	cloche_instance_free(instance);
	return r;
}

static int main_diff(int argc, char **argv)
{
	struct diff_options o = {0};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&command_diff, &o, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0 && operands.n != 1)
		r = wrong_usage(
			&err, NULL, "diff: name one sandbox, or one directory of --keep-changes");
	if (r == 0)
		r = diff(operands.v[0], o.json, &err);
	return r < 0 ? complain(&err) : 0;
}

const struct command command_diff = {
	.name = "diff",
	.summary = "list what a sandbox changed in its root",
	.synopsis = "[--json] ID|DIR",
	.text = "Lists what was added (A), changed (C) and deleted (D) in the root of a sandbox\n"
		"that runs, or in a directory of --keep-changes. Mounts, above all the workspace,\n"
		"and /tmp do not belong to the root.\n"
		"\n"
		"  cloche diff web\n"
		"  cloche diff ./changes",
	.tables = {&diff_table},
	.run = main_diff,
};
