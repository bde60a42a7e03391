/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the words come from the same tables as the help. If none of them matches,
 * the shell completes file names itself. */
#include "cli.h"

#include <cloche/agent.h>
#include <stdio.h>
#include <string.h>

static void completion_options(const struct command *c)
{
	sandbox_options_prepare(c->name);
	for (size_t t = 0; c->tables[t]; t++)
		for (const struct option *o = c->tables[t]->options; o->name; o++)
			if (options_takes(c, o))
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

static int main_completion(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct command *c;

	printf("_cloche() {\n\tlocal now=${COMP_WORDS[COMP_CWORD]} words=\n"
	       "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\twords='");
	completion_commands();
	printf("'\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; (c = command_at(i)); i++) {
		printf("\t\t%s) words='--help", c->name);
		completion_options(c);
		if (strcmp(c->name, "help") == 0)
			completion_commands();
		printf("' ;;\n");
	}
	printf("\t\tesac\n\tfi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$now\"))\n}\n"
	       "complete -o default -F _cloche cloche\n");
	return 0;
}

const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion of commands and options for bash",
	.synopsis = "",
	.text = "For bash, in ~/.bashrc:\n"
		"\n"
		"  source <(cloche completion)\n"
		"\n"
		"For zsh, put the same line into ~/.zshrc, after this one:\n"
		"\n"
		"  autoload -U bashcompinit && bashcompinit",
	.no_operands = true,
	.run = main_completion,
};
