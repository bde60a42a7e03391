/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each command has tables of options, from which both the parser and the help
 * are made, so they always agree. Arguments are given as "--name value", "--name=value", "-x value"
 * or "-xvalue". Letters without an argument can be combined. */
#include "base/near.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 28, WIDTH = 80 };

static int options_fail(
	cloche_err *err, const struct command *c, const char *what, const char *which)
{
	char hint[64];

	/* The agent's own --help is another one. */
	if (c == &command_word)
		snprintf(hint, sizeof(hint), "\"cloche help claude\" lists the options");
	else
		snprintf(hint, sizeof(hint), "\"cloche %s --help\" lists the options", c->name);
	return wrong_usage(err, hint, "%s: %s%s", c->name, what, which);
}

static const struct option *options_find(
	const struct command *c, const char *name, size_t n, char letter)
{
	for (size_t t = 0; c->tables[t]; t++)
		for (const struct option *o = c->tables[t]->options; o->name; o++)
			if (letter ? o->letter == letter
				   : strlen(o->name) == n && strncmp(o->name, name, n) == 0)
				return o;
	return NULL;
}

bool options_takes(const struct command *c, const struct option *o)
{
	return !o->instead && options_find(c, o->name, strlen(o->name), 0) == o;
}

static const char *options_similar(const struct command *c, const char *name, size_t n)
{
	struct near best = {0};

	for (size_t t = 0; c->tables[t]; t++)
		for (const struct option *o = c->tables[t]->options; o->name; o++)
			if (options_takes(c, o))
				near_try(str_make(name, n), o->name, &best);
	return best.name;
}

/* Whether this word is one of those in text, which ", " separates. */
static bool options_has_word(const char *text, const char *word)
{
	for (size_t n; *text; text += n + strspn(text + n, ", ")) {
		n = strcspn(text, ",");
		if (strlen(word) == n && strncmp(text, word, n) == 0)
			return true;
	}
	return false;
}

int options_check_operation(const struct command *command, const struct operands *operands,
	const char *operation, cloche_err *err)
{
	for (size_t i = 0; i < operands->of_operations_n; i++) {
		const struct option *o = operands->of_operations[i];
		char hint[128];

		if (options_has_word(o->of, operation))
			continue;
		snprintf(hint, sizeof(hint), "--%s is for: %s (\"cloche %s --help\")", o->name,
			o->of, command->name);
		return wrong_usage(
			err, hint, "%s %s: takes no --%s", command->name, operation, o->name);
	}
	return 0;
}

static void options_note(const struct option *o, struct operands *operands)
{
	size_t i = 0;

	while (i < operands->of_operations_n && operands->of_operations[i] != o)
		i++;
	if (o->of && i == operands->of_operations_n && i < OF_OPERATIONS_MAX)
		operands->of_operations[operands->of_operations_n++] = o;
}

static int option_apply(const struct option *o, void *ctx, const char *value, cloche_err *err)
{
	void *at = (char *)ctx + o->at;

	if (o->of_sandbox)
		return sandbox_options_give(ctx, o->name, value, err);
	if (o->set)
		return o->set(o, at, value, err);
	if (o->arg)
		*(const char **)at = value;
	else
		*(bool *)at = true;
	if (o->off)
		*(bool *)(void *)((char *)ctx + o->off) = false;
	return 0;
}

static int read_long(const struct command *c, int argc, char **argv, int *at,
	struct operands *operands, cloche_err *err)
{
	const char *name = argv[*at] + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	const struct option *o = options_find(c, name, n, 0);
	const char *value = equals ? equals + 1 : NULL;

	if (!o) {
		const char *near = options_similar(c, name, n);

		options_fail(err, c, "unknown option ", argv[*at]);
		if (near)
			snprintf(err->hint, sizeof(err->hint), "did you mean --%s?", near);
		return -CLOCHE_E_USAGE;
	}
	if (o->instead)
		return wrong_usage(err, o->instead, "%s: takes no --%s", c->name, o->name);
	if (!o->arg && value)
		return options_fail(err, c, "this option takes no value: --", o->name);
	if (o->arg && !value) {
		if (*at + 1 >= argc)
			return options_fail(err, c, "a value is missing after --", o->name);
		value = argv[++*at];
		/* "--" ends the options and is not a value. */
		if (strcmp(value, "--") == 0)
			return options_fail(err, c, "a value is missing after --", o->name);
	}
	options_note(o, operands);
	return option_apply(o, c->ctx, value, err);
}

static int read_letters(const struct command *c, int argc, char **argv, int *at,
	struct operands *operands, cloche_err *err)
{
	const char *letters = argv[*at] + 1;

	for (; *letters; letters++) {
		const struct option *o = options_find(c, NULL, 0, *letters);
		const char *value = NULL;
		int r;

		if (!o)
			return options_fail(err, c, "unknown option -", letters);
		if (o->instead)
			return wrong_usage(err, o->instead, "%s: takes no --%s", c->name, o->name);
		if (o->arg && letters[1])
			value = letters + 1;
		else if (o->arg && *at + 1 < argc && strcmp(argv[*at + 1], "--") != 0)
			value = argv[++*at];
		else if (o->arg)
			return options_fail(err, c, "a value is missing after -", letters);
		options_note(o, operands);
		r = option_apply(o, c->ctx, value, err);
		if (r < 0 || value)
			return r;
	}
	return 0;
}

/* Return 1 if help was requested and printed: there is nothing more to do. */
static int options_read(
	const struct command *command, int argc, char **argv, struct operands *ret, cloche_err *err)
{
	int kept = 1, i; /* operands are collected in argv[1..kept) */

	*ret = (struct operands){.called = argv[0]};
	for (i = 1; i < argc; i++) {
		int r;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			options_help(command);
			return 1;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			if (command->command_line && kept > command->leading)
				break;
			argv[kept++] = argv[i];
			continue;
		}
		r = (argv[i][1] == '-' ? read_long : read_letters)(
			command, argc, argv, &i, ret, err);
		if (r < 0)
			return r;
	}
	while (i < argc)
		argv[kept++] = argv[i++];
	argv[kept] = NULL;
	ret->v = argv + 1;
	ret->n = kept - 1;
	if (command->no_operands && ret->n > 0)
		return options_fail(err, command, "takes no operand, but was given ", ret->v[0]);
	return 0;
}

int command_execute(const struct command *command, int argc, char **argv)
{
	struct operands operands;
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(command, argc, argv, &operands, &err);

	if (r == 0)
		r = command->run(command->ctx, &operands, &err);
	else if (r > 0)
		r = 0;
	if (command->done)
		command->done(command->ctx);
	return r < 0 ? complain(&err) : r;
}

/* The words of text, broken so that lines end at WIDTH. The first one begins at column `at`, which
 * has been printed, the others at `column`. */
static void show_text(const char *text, size_t n, size_t at, size_t column)
{
	bool begins = true;

	while (n > 0) {
		size_t word = 0;

		while (word < n && text[word] != ' ' && text[word] != '\n')
			word++;
		if (!begins && at + 1 + word > WIDTH) {
			printf("\n%*s", (int)column, "");
			at = column;
			begins = true;
		}
		if (!begins)
			at += (size_t)printf(" ");
		if (word > 0)
			at += (size_t)printf("%.*s", (int)word, text);
		begins = begins && word == 0;
		text += word + (word < n);
		n -= word + (word < n);
	}
	printf("\n");
}

static void show_usage(const struct command *c)
{
	size_t at = (size_t)printf("Usage: cloche %s ", c->name);

	for (const char *line = c->synopsis; line; at = (size_t)printf("       ")) {
		size_t n = strcspn(line, "\n");

		show_text(line, n, at, sizeof("Usage: cloche"));
		line = line[n] ? line + n + 1 : NULL;
		if (!line)
			return;
		line += strspn(line, " ");
	}
}

const char *options_text(const struct option *o, char *ret, size_t size)
{
	if (!o->of)
		return o->help;
	snprintf(ret, size, "%s: %s", o->of, o->help);
	return ret;
}

static void show_option(const struct option *o)
{
	char left[128], letter[8] = "    ", space[512];
	const char *text = options_text(o, space, sizeof(space));

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
		o->arg ? o->arg : "");
	printf("%-*s", COLUMN, left);
	if (strlen(left) >= COLUMN)
		printf("\n%*s", COLUMN, "");
	show_text(text, strlen(text), COLUMN, COLUMN);
}

/* What most people need of the many options of a sandbox. */
static const char *const options_everyday[] = {"allow", "mount", "env", "secret", "workspace",
	"workdir", "name", "memory", "timeout", "detach"};

static bool option_is_everyday(const struct command *c, const char *name)
{
	for (size_t i = 0; c->tables[0] == &sandbox_option_table &&
			   i < sizeof(options_everyday) / sizeof(options_everyday[0]);
		i++)
		if (strcmp(options_everyday[i], name) == 0)
			return true;
	return false;
}

static void options_help_everyday(const struct command *c)
{
	if (c->tables[0] != &sandbox_option_table)
		return;
	printf("\nEveryday options (all: below, and man cloche-run):\n");
	for (size_t i = 0; i < sizeof(options_everyday) / sizeof(options_everyday[0]); i++) {
		const char *name = options_everyday[i];
		const struct option *o = options_find(c, name, strlen(name), 0);

		if (o && options_takes(c, o))
			show_option(o);
	}
}

void options_help(const struct command *command)
{
	show_usage(command);
	printf("\n%s\n", command->text);
	options_help_everyday(command);
	for (size_t t = 0; command->tables[t]; t++) {
		printf("\n%s:\n", command->tables[t]->title);
		for (const struct option *o = command->tables[t]->options; o->name; o++)
			if (options_takes(command, o) && !option_is_everyday(command, o->name))
				show_option(o);
	}
}
