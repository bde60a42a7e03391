/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"
#include "cli.h"
#include "planted.h"

#include <cloche/agent.h>
#include <cloche/version.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command command_version, command_help;

static const struct command *const commands[] = {&command_word, &command_run, &command_agent,
	&command_home, &command_create, &command_exec, &command_shell, &command_eval, &command_ps,
	&command_inspect, &command_stats, &command_logs, &command_attach, &command_port,
	&command_fs, &command_cp, &command_sync, &command_env, &command_kv, &command_log,
	&command_undo, &command_replay, &command_fork, &command_snapshot, &command_stop,
	&command_rm, &command_prune, &command_diff, &command_image, &command_net, &command_preset,
	&command_init, &command_config, &command_trust, &command_planted, &command_status,
	&command_doctor, &command_srt_settings, &command_completion, &command_version,
	&command_help};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

const struct command *command_at(size_t i)
{
	return i < COMMANDS ? commands[i] : NULL;
}

/* Map SandboX's names for commands to ours. "sandbox run node FILE" is "cloche run node FILE"
 * here. */
static const char *name_here(const char *name)
{
	if (strcmp(name, "list") == 0)
		return "ps";
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return "version";
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return "help";
	return strcmp(name, "destroy") == 0 ? "rm" : name;
}

static const struct command *command_find(const char *name)
{
	name = name_here(name);
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return cloche_agent_exists(name) ? &command_word : NULL;
}

/* Options of cloche may stand in front of an agent's name. */
static bool names_agent(char *const *words)
{
	for (; *words; words++)
		if (cloche_agent_exists(*words))
			return true;
	return false;
}

static void commands_help(void)
{
	printf("Usage: cloche COMMAND [OPTIONS] ...\n\n"
	       "Runs coding agents and other untrusted commands so that they reach only the\n"
	       "files, hosts and credentials they were granted.\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
	printf("\nStart here:\n"
	       "  cloche doctor               does it work on this machine?\n"
	       "  cloche claude               an agent, with this directory and your key outside\n"
	       "  cloche run -- ls -la        a command with this directory and nothing else\n"
	       "  cloche help run             what can be granted, and how\n");
}

struct meant {
	const char *name;
	struct near best;
	char agent[64]; /* what best names, if that is an agent */
};

static void command_try_agent(const char *name, const char *title, void *user)
{
	struct meant *m = user;

	near_try(str_from(m->name), name, &m->best);
	if (m->best.name == name) {
		snprintf(m->agent, sizeof(m->agent), "%s", name);
		m->best.name = m->agent;
	}
}

static int command_unknown(const char *name)
{
	struct meant m = {.name = name};
	const struct near *best = &m.best;

	for (size_t i = 0; i < COMMANDS; i++)
		near_try(str_from(name), commands[i]->name, &m.best);
	(void)cloche_agent_list(command_try_agent, &m, NULL);
	say("unknown command \"%s\"", name);
	if (best->name && best->wrong <= 2)
		say("did you mean \"cloche %s\"? To run a program: cloche run -- %s", best->name,
			name);
	else
		say("\"cloche help\" lists the commands; to run a program: cloche run -- %s", name);
	return EXIT_CLOCHE;
}

/* Open closed standard descriptors, so that no file of ours gets their numbers. As if they were
 * closed, nothing can be read from standard input then or written to standard output: what is lost
 * there is an error. Messages may get lost. */
static int open_stdio(void)
{
	static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};

	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* Those below are open, so this number is the lowest that is free. */
		if (open("/dev/null", modes[fd]) != fd)
			return -1;
	}
	return 0;
}

static int main_version(void *ctx, const struct operands *operands, cloche_err *err)
{
	printf("cloche %s\n", cloche_version());
	return 0;
}

static const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.synopsis = "",
	.text = "Prints the version of cloche.",
	.no_operands = true,
	.run = main_version,
};

/* name: of a command, or NULL; more: the word after it, or NULL. */
static int help_of(const char *name, const char *more)
{
	const struct command *command = name ? command_find(name) : NULL;

	if (name && more) {
		say("help: one command at a time, but was also given %s", more);
		return EXIT_CLOCHE;
	}
	if (!name) {
		commands_help();
		return 0;
	}
	if (!command)
		return command_unknown(name);
	sandbox_options_prepare(command->name);
	options_help(command);
	return 0;
}

/* It has no options, so run() does without command_execute(). */
static const struct command command_help = {
	.name = "help",
	.summary = "this text, or the help of a command",
	.synopsis = "[COMMAND]",
	.text = "Lists the commands, or explains COMMAND and its options.",
};

static int main_command(int argc, char **argv)
{
	const struct command *command;
	const char *name = argc > 1 ? argv[1] : "";

	if (!*name) {
		commands_help();
		return EXIT_CLOCHE;
	}
	command = command_find(name);
	if (!command && name[0] == '-' && names_agent(argv + 2))
		command = &command_word;
	if (!command || strcmp(name, command_word.name) == 0)
		return command_unknown(name);
	if (command == &command_help)
		return help_of(argv[2], argc > 3 ? argv[3] : NULL);
	sandbox_options_prepare(command->name);
	/* What a shell asks to complete a word nobody sees. */
	if (command != &command_version && command != &command_completion &&
		command != &command_planted)
		planted_say_others();
	/* The name of an agent is the first operand of its command. */
	return command == &command_word ? command_execute(command, argc, argv)
					: command_execute(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	static char buffer[64 << 10];

	if (open_stdio() < 0)
		return EXIT_CLOCHE;
	/* Exceeding RLIMIT_FSIZE is an error to report, not a reason to die. */
	signal(SIGXFSZ, SIG_IGN);
	/* stdio does not keep the errno of a write; of the last one we know it. */
	if (!isatty(STDOUT_FILENO))
		(void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	return finish_output(main_command(argc, argv));
}
