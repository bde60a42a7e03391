/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: all words come from what the help is made of: the tables of options, the
 * alternatives in the names of their arguments (none|gateway), the operations that a synopsis or a
 * text lists. bash and zsh share one body, which collects words in an array `found`; fish has its
 * own commands. Names of sandboxes and images are asked for when they are needed, by "cloche
 * completion sandboxes" and "images". If no word matches, the shell completes file names. */
#include "cli.h"

#include <cloche/agent.h>
#include <cloche/allowlist.h>
#include <cloche/image.h>
#include <stdio.h>
#include <string.h>

#define COMPLETION_WORD "abcdefghijklmnopqrstuvwxyz0123456789-+"

/* Call fn for each option that a command takes. */
static void completion_options(
	const struct command *c, void (*fn)(const struct command *c, const struct option *o))
{
	sandbox_options_prepare(c->name);
	for (size_t t = 0; c->tables[t]; t++)
		for (const struct option *o = c->tables[t]->options; o->name; o++)
			if (options_takes(c, o))
				fn(c, o);
}

static void completion_print_option(const struct command *c, const struct option *o)
{
	printf(" --%s", o->name);
}

static void completion_agent(const char *name, const char *title, void *user)
{
	printf(" %s", name);
}

static void completion_commands(void)
{
	const struct command *c;

	for (size_t i = 0; (c = command_at(i)); i++)
		if (c != &command_word)
			printf(" %s", c->name);
	(void)cloche_agent_list(completion_agent, NULL, NULL);
}

/* The alternatives in text, which a character of `between` separates: those that are words, not
 * names of what to put there. "image:NAME" is the beginning of a word. Return whether there are
 * any. */
static bool completion_alternatives(const char *text, const char *between, bool print)
{
	bool any = false;

	for (size_t n; *text; text += n + (text[n] != '\0')) {
		size_t word = strspn(text, COMPLETION_WORD);

		n = strcspn(text, between);
		if (word == 0 || (word < n && text[word] != ':') ||
			strncmp(text, "or ", n + 1) == 0)
			continue;
		any = true;
		if (print)
			printf(" %.*s", (int)(word < n ? word + 1 : word), text);
	}
	return any;
}

static void completion_preset(const char *name, const char *yaml, void *user)
{
	printf(" %s", name);
}

/* Print the values of an option; return whether there are some. */
static bool completion_values(const struct option *o, bool print)
{
	char first[256];

	if (!o->arg)
		return false;
	if (strcmp(o->name, "preset") == 0) {
		if (print)
			(void)cloche_preset_list(completion_preset, NULL, NULL);
		return true;
	}
	if (strchr(o->arg, '|'))
		return completion_alternatives(o->arg, "|", print);
	/* The help of --provider begins with all of them. */
	if (strncmp(o->help, "auto or ", 8) != 0)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(o->help, "\n"), o->help);
	return completion_alternatives(first, " ", print);
}

static void completion_print_values(const struct command *c, const struct option *o)
{
	if (!completion_values(o, false))
		return;
	printf("\t\t%s:--%s) found=(", c->name, o->name);
	completion_values(o, true);
	printf(" ) ;;\n");
}

/* The operations of a command, which its text lists, or its synopsis with the command's name. */
static void completion_operations(const struct command *c)
{
	const char *at = strstr(c->text, "Operations:\n");
	char again[64];

	if (c->synopsis[0] >= 'a' && c->synopsis[0] <= 'z')
		printf(" %.*s", (int)strspn(c->synopsis, COMPLETION_WORD), c->synopsis);
	snprintf(again, sizeof(again), "cloche %s ", c->name);
	for (const char *s = c->synopsis; (s = strstr(s, again));) {
		s += strlen(again);
		if (*s >= 'a' && *s <= 'z')
			printf(" %.*s", (int)strspn(s, COMPLETION_WORD), s);
	}
	for (at = at ? strchr(at, '\n') + 1 : NULL; at && strncmp(at, "  ", 2) == 0;
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strspn(at + 2, COMPLETION_WORD) > 0)
			printf(" %.*s", (int)strspn(at + 2, COMPLETION_WORD), at + 2);
}

/* Whether its operands are sandboxes. */
static bool completion_wants_sandbox(const struct command *c)
{
	const char *at = strstr(c->synopsis, "ID");

	return at && (at == c->synopsis || strchr(" [|", at[-1])) && strchr(" .|]\n", at[2]);
}

static void completion_print_command(const struct command *c)
{
	printf("\t\t%s:*)\n\t\t\tif [[ $now == -* ]]; then\n\t\t\t\tfound=( --help", c->name);
	completion_options(c, completion_print_option);
	printf(" )\n\t\t\telse\n\t\t\t\tfound=(");
	if (completion_wants_sandbox(c))
		printf(" $(cloche completion sandboxes 2>/dev/null)");
	if (strcmp(c->name, "image") == 0)
		printf(" $(cloche completion images 2>/dev/null)");
	if (strcmp(c->name, "help") == 0)
		completion_commands();
	completion_operations(c);
	printf(" )\n\t\t\tfi ;;\n");
}

/* now, before, command: the word to complete, the one before it, the name of the command. */
static void completion_print_body(const char *is_first)
{
	const struct command *c;

	printf("\tif %s; then\n\t\tfound=(", is_first);
	completion_commands();
	printf(" )\n\telse\n\t\tcase $command:$before in\n"
	       "\t\t*:--root) found=( host $(cloche completion images 2>/dev/null | sed "
	       "'s/^/image:/') "
	       ") ;;\n");
	for (size_t i = 0; (c = command_at(i)); i++) {
		completion_options(c, completion_print_values);
		completion_print_command(c);
	}
	printf("\t\tesac\n\tfi\n");
}

static void completion_bash(void)
{
	printf("_cloche() {\n"
	       "\tlocal now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tlocal command=${COMP_WORDS[1]} found=()\n"
	       "\t[ \"$before\" != = ] || before=${COMP_WORDS[COMP_CWORD-2]}\n"
	       "\tif [ \"$now\" = = ]; then now=; fi\n"
	       /* A colon is a word of its own here. */
	       "\tif [ \"$before\" = : ] && [ \"${COMP_WORDS[COMP_CWORD-2]}\" = image ]; then\n"
	       "\t\tfound=( $(cloche completion images 2>/dev/null) )\n"
	       "\t\tCOMPREPLY=($(compgen -W \"${found[*]}\" -- \"$now\"))\n\t\treturn\n\tfi\n");
	completion_print_body("[ \"$COMP_CWORD\" = 1 ]");
	printf("\tCOMPREPLY=($(compgen -W \"${found[*]}\" -- \"$now\"))\n}\n"
	       "complete -o default -F _cloche cloche\n");
}

static void completion_zsh(void)
{
	printf("#compdef cloche\n_cloche() {\n"
	       "\tlocal now=$words[CURRENT] before=$words[CURRENT-1] command=$words[2]\n"
	       "\tlocal -a found\n");
	completion_print_body("(( CURRENT == 2 ))");
	printf("\tcompadd -a found || _files\n}\n"
	       "if [[ $funcstack[1] == _cloche ]]; then _cloche; else compdef _cloche cloche; "
	       "fi\n");
}

/* One argument of fish, which knows only these two in single quotes. */
static void completion_fish_quote(const char *text, size_t n)
{
	printf("'");
	for (size_t i = 0; i < n; i++)
		printf("%s%c", strchr("'\\", text[i]) ? "\\" : "", text[i] == '\n' ? ' ' : text[i]);
	printf("'");
}

static void completion_fish_option(const struct command *c, const struct option *o)
{
	char space[512];
	const char *text = options_text(o, space, sizeof(space));

	printf("complete -c cloche -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (strcmp(o->name, "root") == 0) {
		printf(" -x -a 'host (cloche completion images 2>/dev/null | sed s/^/image:/)'");
	} else if (completion_values(o, false)) {
		printf(" -x -a '");
		completion_values(o, true);
		printf("'");
	} else if (o->arg) {
		printf(" -r");
	}
	printf(" -d ");
	completion_fish_quote(text, strcspn(text, "\n"));
	printf("\n");
}

static void completion_fish_agent(const char *name, const char *title, void *user)
{
	printf("complete -c cloche -n __fish_use_subcommand -f -a %s -d ", name);
	completion_fish_quote(title, strlen(title));
	printf("\n");
}

static void completion_fish(void)
{
	const struct command *c;

	(void)cloche_agent_list(completion_fish_agent, NULL, NULL);
	for (size_t i = 0; (c = command_at(i)); i++) {
		if (c == &command_word)
			continue; /* what follows an agent's name is the agent's */
		printf("complete -c cloche -n __fish_use_subcommand -f -a %s -d ", c->name);
		completion_fish_quote(c->summary, strlen(c->summary));
		printf("\n");
		completion_options(c, completion_fish_option);
		printf("complete -c cloche -n '__fish_seen_subcommand_from %s' -l help\n", c->name);
		printf("complete -c cloche -n '__fish_seen_subcommand_from %s' -a '", c->name);
		completion_operations(c);
		if (completion_wants_sandbox(c))
			printf(" (cloche completion sandboxes 2>/dev/null)");
		if (strcmp(c->name, "image") == 0)
			printf(" (cloche completion images 2>/dev/null)");
		if (strcmp(c->name, "help") == 0)
			completion_commands();
		printf("'\n");
	}
}

/* A shell expands what it completes, so anything else is left out. */
static void completion_print_name(const char *name)
{
	if (*name && name[strspn(name, COMPLETION_WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZ._/:@")] == '\0')
		printf("%s\n", name);
}

static bool completion_on_instance(const cloche_instance *i, void *user)
{
	const char *name = cloche_instance_info_of(i)->name;

	completion_print_name(*name ? name : cloche_instance_id(i));
	return true;
}

static bool completion_on_image(const cloche_image *image, void *user)
{
	for (size_t i = 0; image->names[i]; i++)
		completion_print_name(image->names[i]);
	return true;
}

static int main_completion(void *ctx, const struct operands *operands, cloche_err *err)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = {
		{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
	const char *wanted = operands->n ? operands->v[0] : "bash";

	if (operands->n > 1)
		return wrong_usage(err, "for example: cloche completion zsh",
			"completion: one shell at a time");
	if (strcmp(wanted, "sandboxes") == 0)
		return cloche_instance_list(true, completion_on_instance, NULL, err);
	if (strcmp(wanted, "images") == 0)
		return cloche_image_list(completion_on_image, NULL, err);
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(shells[i].name, wanted) == 0) {
			shells[i].print();
			return 0;
		}
	return wrong_usage(err, "it is for bash, zsh and fish", "completion: no \"%s\"", wanted);
}

const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion for bash, zsh or fish",
	.synopsis = "[bash|zsh|fish]",
	.text = "\"make install\" installs all three. By hand:\n"
		"\n"
		"  source <(cloche completion)            in ~/.bashrc\n"
		"  source <(cloche completion zsh)        in ~/.zshrc, after compinit\n"
		"  cloche completion fish | source        in ~/.config/fish/config.fish\n"
		"\n"
		"They complete commands, options and their values, operations, sandboxes and\n"
		"images.",
	.run = main_completion,
};
