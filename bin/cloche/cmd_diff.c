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
#include <string.h>
#include <sys/stat.h>

struct diff_options {
	bool json;
};

static const struct option diff_options[] = {
	{"json", 0, NULL, "print one JSON document a line: kind, path, type, mode, size",
		.at = offsetof(struct diff_options, json)},
	{0},
};

static bool print_line(const cloche_change *c, void *user)
{
	printf("%c ", (int)c->kind);
	name_print(c->path, c->path_length);
	putchar('\n');
	return !ferror(stdout);
}

static bool diff_print_json(const cloche_change *c, void *user)
{
	static const struct {
		enum cloche_file_type type;
		const char *name;
	} names[] = {{CLOCHE_FILE_REGULAR, "file"}, {CLOCHE_FILE_DIRECTORY, "directory"},
		{CLOCHE_FILE_LINK, "symlink"}, {CLOCHE_FILE_OTHER, "other"}};
	json_t *o = json_object();
	char kind[2] = {(char)c->kind, 0}, mode[8];

	snprintf(mode, sizeof(mode), "%04o", c->mode & 07777);
	json_object_set_new(o, "kind", json_string(kind));
	name_to_json(o, "path", c->path, c->path_length);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].type == c->type)
			json_object_set_new(o, "type", json_string(names[i].name));
	json_object_set_new(o, "mode", json_string(mode));
	json_object_set_new(o, "size", json_integer((json_int_t)c->size));
	return json_print_line(o);
}

/* A name with a slash, or of an existing directory, is a directory in which changes were kept. */
static bool is_directory(const char *what)
{
	struct stat st;

	return strchr(what, '/') || (stat(what, &st) == 0 && S_ISDIR(st.st_mode));
}

static int main_diff(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct diff_options *o = ctx;
	cloche_change_fn print = o->json ? diff_print_json : print_line;
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r;

	if (operands->n != 1)
		return wrong_usage(
			err, NULL, "diff: name one sandbox, or one directory of --keep-changes");
	if (is_directory(operands->v[0]))
		return cloche_diff_kept(operands->v[0], print, NULL, err);
	r = cloche_instance_open(operands->v[0], &i, err);
	return r < 0 ? r : cloche_instance_diff(i, print, NULL, err);
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
	.tables = {&(const struct option_table){"Options", diff_options}},
	.ctx = &(struct diff_options){0},
	.run = main_diff,
};
