/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each command has tables of options; reading them and showing their help come
 * from the same tables, so that neither can lie. Arguments follow as "--name value",
 * "--name=value",
 * "-x value" or "-xvalue"; letters without argument can stand together. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMN = 34 };

static int fail(cloche_err *err, const struct command *c, const char *what, const char *which)
{
	memset(err, 0, sizeof(*err));
	err->code = CLOCHE_E_USAGE;
	snprintf(err->message, sizeof(err->message), "%s: %s%s", c->name, what, which);
	snprintf(err->hint, sizeof(err->hint), "\"cloche %s --help\" lists what there is", c->name);
	return -CLOCHE_E_USAGE;
}

static const struct option *find(const struct command *c, const char *name, size_t n, char letter)
{
	for (size_t t = 0; c->tables[t]; t++) {
		for (size_t i = 0; i < c->tables[t]->n; i++) {
			const struct option *o = &c->tables[t]->options[i];

			if (letter ? o->letter == letter
				   : strlen(o->name) == n && strncmp(o->name, name, n) == 0)
				return o;
		}
	}
	return NULL;
}

/* The nearest name that begins alike, for the message about an unknown one. */
static const char *similar(const struct command *c, const char *name)
{
	const char *best = NULL;
	size_t best_n = 2;

	for (size_t t = 0; c->tables[t]; t++) {
		for (size_t i = 0; i < c->tables[t]->n; i++) {
			const char *candidate = c->tables[t]->options[i].name;
			size_t n = 0;

			while (candidate[n] && candidate[n] == name[n])
				n++;
			if (n > best_n) {
				best = candidate;
				best_n = n;
			}
		}
	}
	return best;
}

static int read_long(
	const struct command *c, void *ctx, int argc, char **argv, int *at, cloche_err *err)
{
	const char *name = argv[*at] + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	const struct option *o = find(c, name, n, 0);
	const char *value = equals ? equals + 1 : NULL;

	if (!o) {
		const char *near = similar(c, name);

		fail(err, c, "unknown option ", argv[*at]);
		if (near)
			snprintf(err->hint, sizeof(err->hint), "did you mean --%s?", near);
		return -CLOCHE_E_USAGE;
	}
	if (!o->arg && value)
		return fail(err, c, "this option takes no value: --", o->name);
	if (o->arg && !value) {
		if (*at + 1 >= argc)
			return fail(err, c, "a value is missing after --", o->name);
		value = argv[++*at];
	}
	return o->set(ctx, value, err);
}

static int read_letters(
	const struct command *c, void *ctx, int argc, char **argv, int *at, cloche_err *err)
{
	const char *letters = argv[*at] + 1;

	for (; *letters; letters++) {
		const struct option *o = find(c, NULL, 0, *letters);
		const char *value = NULL;
		int r;

		if (!o)
			return fail(err, c, "unknown option -", letters);
		if (o->arg && letters[1])
			value = letters + 1;
		else if (o->arg && *at + 1 < argc)
			value = argv[++*at];
		else if (o->arg)
			return fail(err, c, "a value is missing after -", letters);
		r = o->set(ctx, value, err);
		if (r < 0 || value)
			return r;
	}
	return 0;
}

int options_read(const struct command *command, void *ctx, int argc, char **argv,
	struct operands *ret, cloche_err *err)
{
	int kept = 1, i; /* operands are gathered at argv[1..kept) */

	*ret = (struct operands){.v = argv + 1};
	for (i = 1; i < argc; i++) {
		int r;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			options_help(command);
			ret->help = true;
			return 0;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			if (command->command_line && kept > command->leading)
				break;
			argv[kept++] = argv[i];
			continue;
		}
		r = argv[i][1] == '-' ? read_long(command, ctx, argc, argv, &i, err)
				      : read_letters(command, ctx, argc, argv, &i, err);
		if (r < 0)
			return r;
	}
	while (i < argc)
		argv[kept++] = argv[i++];
	argv[kept] = NULL;
	ret->n = kept - 1;
	return 0;
}

static void show_option(const struct option *o)
{
	char left[128], letter[8] = "    ";
	const char *text = o->help;

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
		o->arg ? o->arg : "");
	printf("%-*s", COLUMN, left);
	if (strlen(left) >= COLUMN)
		printf("\n%*s", COLUMN, "");
	for (;;) {
		size_t n = strcspn(text, "\n");

		printf("%.*s\n", (int)n, text);
		if (!text[n])
			break;
		text += n + 1;
		printf("%*s", COLUMN, "");
	}
}

void options_help(const struct command *command)
{
	printf("Usage: cloche %s %s\n\n%s\n", command->name, command->synopsis, command->text);
	for (size_t t = 0; command->tables[t]; t++) {
		printf("\n%s:\n", command->tables[t]->title);
		for (size_t i = 0; i < command->tables[t]->n; i++)
			show_option(&command->tables[t]->options[i]);
	}
}
