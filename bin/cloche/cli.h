/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the commands share: messages, the table of options, the options that make a sandbox. */

#include "policy_files.h"

#include <cloche/sandbox.h>
#include <stdbool.h>
#include <stddef.h>

/* --- messages (cli.c) --- */

enum { EXIT_CLOCHE = 125 };

/* "cloche: text" on standard error, nothing a terminal would obey. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The error with its hint; returns the exit status that belongs to it. */
int complain(const cloche_err *err);
/* Writes all to a descriptor; false where that failed. */
bool put(int fd, const void *p, size_t n);
/* The same with a text of somebody else's, of which a terminal (and only that) sees no controls. */
bool put_shown(int fd, const char *text);

/* --- options (options.c) --- */

struct option {
	const char *name; /* without "--" */
	char letter;      /* 0: none */
	const char *arg;  /* name of its argument; NULL: takes none */
	const char *help; /* "\n" starts a line of its own */
	int (*set)(void *ctx, const char *value, cloche_err *err);
};

struct option_table {
	const struct option *options;
	size_t n;
	const char *title; /* heading in the help */
};

struct command {
	const char *name;
	const char *summary;                  /* one line, for the list of commands */
	const char *synopsis;                 /* after "cloche NAME " */
	const char *text;                     /* paragraphs of the help */
	const struct option_table *tables[3]; /* up to the first NULL */
	bool command_line; /* the first operand begins a command line of its own */
	int (*run)(int argc, char **argv);
};

struct operands {
	char **v; /* borrowed from argv, ends with NULL */
	int n;
	bool help; /* --help was asked for and printed: there is nothing more to do */
};

/* Reads the options and gathers the operands, which may stand among them unless
 * command->command_line. Returns 0 or a negative code. */
int options_read(const struct command *command, void *ctx, int argc, char **argv,
	struct operands *ret, cloche_err *err);
void options_help(const struct command *command);

/* --- the options of a sandbox (sandbox_options.c) --- */

struct sandbox_options {
	cloche_sandbox *sb;
	cloche_allowlist *allow;
	cloche_secrets *secrets;
	const char *workspace, *config, *allowlist_file;
	bool no_workspace, network_log_live, tty, interactive, json, verbose, debug;
	bool allow_unsandboxed;
	struct policy_files policy; /* as it was before the run */
	/* pairs, applied after the configuration file so that they win over it */
	const struct option *late[256];
	const char *late_values[256];
	size_t late_n;
};

extern const struct option_table sandbox_option_table;

int sandbox_options_init(struct sandbox_options *o, cloche_err *err);
void sandbox_options_done(struct sandbox_options *o);
/* After all options were read: configuration file, workspace, allowlist and secrets into o->sb. */
int sandbox_options_finish(struct sandbox_options *o, cloche_err *err);
/* After a run: warns of policy that the inside made or changed. */
void sandbox_options_check_workspace(const struct sandbox_options *o);

extern const struct command command_run, command_agent, command_net, command_doctor;
